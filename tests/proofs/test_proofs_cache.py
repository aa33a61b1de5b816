"""What was proved before is not proved again, unless something that it depends on was changed."""

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from planting import Mistake, planted, replaced

from reassure_proofs.engine import runner
from reassure_proofs.engine.cache import Cache, digest_module
from reassure_proofs.engine.register import get_theorems
from reassure_proofs.engine.runner import TheoremResult, prove_all

DROP = "reassure_proofs.protocols.kip_236.drop"
INSYNC = "reassure_proofs.protocols.kafka_4485.insync"


def prove(folder: Path, *names: str, timeout_s: float = 60.0) -> dict[str, TheoremResult]:
    """Prove theorems of one and two replicas with a cache in a folder."""
    cache = Cache(folder)
    results = prove_all(list(names), 2, timeout_s=timeout_s, processes=1, tier="full", cache=cache)
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


def test_mistake_in_a_function_that_is_reached_is_seen(tmp_path: Path) -> None:
    """With a mistake planted in the model nothing of before is taken, afterwards it is."""
    prove(tmp_path, "drop-leader-kept", "hw-never-decreases")
    mistake = Mistake("protocols.kip_236", "(leader, *isr, *others)", "(*isr, leader, *others)")
    with planted(mistake):
        found = prove(tmp_path, "drop-leader-kept", "hw-never-decreases")
    assert (found["drop-leader-kept"].verdict, found["drop-leader-kept"].cached) == (
        "refuted",
        False,
    )
    # What it does not reach was not touched.
    assert found["hw-never-decreases"].cached
    assert prove(tmp_path, "drop-leader-kept")["drop-leader-kept"].cached


EDITS: dict[str, tuple[str, str, str]] = {
    "a function that is called": (
        DROP,
        "protocols.kip_236",
        "def compute_kept(e, t, r): return e\n",
    ),
    "a function further away": (
        DROP,
        "protocols.kip_236.assignment_rules",
        "def has_duplicates(r): return False\n",
    ),
    "the model of in-sync sets": (
        INSYNC,
        "protocols.kafka_4485",
        "def compute_isr(*a): return ()\n",
    ),
    "the engine": (DROP, "reassure_proofs.engine.formula", "def distinct(xs): return True\n"),
    "the theorem's own module": (DROP, DROP, "def ask_drop(v, readings, rule): return ()\n"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_digest_changes_with_any_function(edit: str) -> None:
    """Whatever is exchanged of what a theorem reaches, its digest is another, and then the old."""
    home, module, text = EDITS[edit]
    before = digest_module(home)
    with replaced(module, text):
        changed = digest_module(home)
    assert digest_module(home) == before
    assert changed != before


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


def test_every_theorem_has_a_home(tmp_path: Path) -> None:
    """Each theorem is stated by a module whose digest can be told."""
    from reassure_proofs.engine import cache

    assert {theorem.name for theorem in get_theorems()} <= set(cache._find_homes())
