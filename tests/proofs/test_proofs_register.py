"""The register of theorems: found by being there, in files named like the model's."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reassure_model import protocols
from reassure_proofs import protocols as theorems
from reassure_proofs.engine import register
from reassure_proofs.engine.register import find_modules, get_theorems
from reassure_proofs.engine.runner import prove_all

TOY = '''
from reassure_proofs.engine.statement import LEMMA, Claims, Parameter, Subject

THEOREMS = Claims("kip-236")
SUM = Subject("toy", lambda v: v["a"] + v["b"], "a sum", lambda _: iter([{"a": Parameter(),
    "b": Parameter()}]))


@THEOREMS.about(SUM, "toy-commutes", LEMMA)
def _commutes(values, result):
    """A sum is the same in the other order."""
    return result == values["b"] + values["a"]


@THEOREMS.about(SUM, "toy-grows", LEMMA, finding="drop-1")
def _grows(values, result):
    """A sum is more than its first part."""
    return result > values["a"]
'''


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A module of theorems that nobody told the register of."""
    (tmp_path / "toy.py").write_text(TOY, encoding="utf-8")
    monkeypatch.setattr(theorems, "__path__", [*theorems.__path__, str(tmp_path)])
    caches = (register.find_modules, register._find_theorems)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()
    sys.modules.pop("reassure_proofs.protocols.toy")


@pytest.mark.usefixtures("toy")
def test_module_of_theorems_is_found_by_being_there() -> None:
    """A file that is put among the others is listed, proved and refuted without another line."""
    assert [each.name for each in get_theorems(["toy-grows", "toy-commutes"])] == [
        "toy-commutes",
        "toy-grows",
    ]
    results = prove_all(["toy-commutes", "toy-grows"], 1, processes=1)
    assert [result.outcome for result in results] == ["holds", "finding"]


def test_theorems_stand_in_files_named_like_the_model() -> None:
    """Each module or folder of theorems is about the module of the model that has its name."""
    model = {path.stem for path in Path(next(iter(protocols.__path__))).iterdir()}
    names = [module.__name__.rpartition(".")[2] for module in find_modules()]
    assert "kip_236" in names
    assert set(names) <= model | {"common"}
