"""What was proved before is not proved again, unless something that it depends on was changed."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reassure_proofs.engine import cache, runner
from reassure_proofs.engine.cache import Cache, digest_module
from reassure_proofs.engine.register import get_theorems
from reassure_proofs.engine.runner import TheoremResult, prove_all

DROP = "reassure_proofs.protocols.kip_236.drop"
INSYNC = "reassure_proofs.protocols.kafka_4485.insync"


def prove(folder: Path, *names: str, timeout_s: float = 60.0) -> dict[str, TheoremResult]:
    """Prove theorems of one and two replicas with a cache in a folder."""
    kept = Cache(folder)
    results = prove_all(list(names), 2, timeout_s=timeout_s, processes=1, tier="full", cache=kept)
    return {result.theorem.name: result for result in results}


def test_second_time_nothing_is_proved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same question is answered from the folder, with the same report, and that is said."""
    names = ("drop-leader-kept", "drop-exclusive-leader-kept", "hw-never-decreases")
    first = prove(tmp_path, *names)
    monkeypatch.setattr(runner, "run_task", lambda _: pytest.fail("it was proved again"))
    again = prove(tmp_path, *names)
    for name, result in again.items():
        assert (result.cached, first[name].cached) == (True, False)
        assert {**result.to_json(), "cached": False} == first[name].to_json()


def test_what_cannot_be_read_is_proved_anew(tmp_path: Path) -> None:
    """A file that was cut is no answer."""
    prove(tmp_path, "drop-leader-kept")
    for path in tmp_path.iterdir():
        path.write_text(path.read_text(encoding="utf-8")[:-9], encoding="utf-8")
    result = prove(tmp_path, "drop-leader-kept")["drop-leader-kept"]
    assert (result.verdict, result.cached) == ("proved", False)


def test_unknown_is_not_kept(tmp_path: Path) -> None:
    """What the time was too short for is asked again."""
    short = prove(tmp_path, "drop-leader-kept", timeout_s=1e-6)["drop-leader-kept"]
    assert short.verdict == "unknown"
    assert list(tmp_path.iterdir()) == []
    assert prove(tmp_path, "drop-leader-kept")["drop-leader-kept"].verdict == "proved"


Edit = Callable[[str], None]


@pytest.fixture
def edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Edit]:
    """Have another text of a module where its text is read."""
    exact = cache.find_spec

    def forget() -> None:
        cache._read.cache_clear()
        cache._find_reached.cache_clear()

    def change(name: str) -> None:
        spec = exact(name)
        assert spec is not None and spec.origin is not None
        copy = tmp_path / "edited.py"
        copy.write_text(f"{Path(spec.origin).read_text(encoding='utf-8')}\n# edited\n", "utf-8")
        edited = SimpleNamespace(origin=str(copy))
        monkeypatch.setattr(cache, "find_spec", lambda n: edited if n == name else exact(n))
        forget()

    yield change
    forget()


def test_edit_of_what_is_reached_is_seen(tmp_path: Path, edit: Edit) -> None:
    """After an edit of the model what rests on it is proved anew, and nothing else."""
    kept = tmp_path / "kept"
    names = ("drop-leader-kept", "hw-never-decreases")
    prove(kept, *names)
    edit("reassure_model.protocols.kip_236")
    assert {name: each.cached for name, each in prove(kept, *names).items()} == {
        "drop-leader-kept": False,
        "hw-never-decreases": True,
    }


@pytest.mark.parametrize(
    ("home", "module"),
    [
        (DROP, "reassure_model.protocols.kip_236"),
        (DROP, "reassure_model.partition"),
        (INSYNC, "reassure_model.protocols.kafka_4485"),
        (DROP, "reassure_proofs.engine.formula"),
        (DROP, DROP),
    ],
)
def test_digest_changes_with_any_module(home: str, module: str, edit: Edit) -> None:
    """Whatever is edited of what a theorem reaches, its digest is another."""
    before = digest_module(home)
    edit(module)
    assert digest_module(home) != before


def test_digest_is_alike_in_every_process() -> None:
    """The order of sets, which differs from process to process, makes no difference."""
    told = Counter(_digest_elsewhere(seed) for seed in ("1", "2"))
    assert set(told) == {digest_module(DROP)}


def _digest_elsewhere(seed: str) -> str:
    text = f"from reassure_proofs.engine.cache import digest_module; print(digest_module({DROP!r}))"
    done: Any = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": seed, "PATH": ""},
    )
    return str(done.stdout.strip())


def test_every_theorem_has_a_home() -> None:
    """Each theorem is stated by a module whose digest can be told."""
    assert {theorem.name for theorem in get_theorems()} <= set(cache._find_homes())
