"""The scenarios as vectors for other implementations."""

import hashlib
import json
from pathlib import Path

import pytest

from reassure_conformance.answers.spec_tables import vectors_document
from reassure_conformance.scenarios.json_lines import export_vectors
from reassure_conformance.scenarios.scenario import find_scenarios, read_scenario
from reassure_spec.words import ScenarioError


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of one export."""
    out: Path = tmp_path_factory.mktemp("vectors")
    export_vectors(out)
    return out


def test_every_scenario_is_exported_once(exported: Path) -> None:
    """Each scenario file is one line, by area and name."""
    lines = (exported / "scenarios.jsonl").read_text().splitlines()
    names = [(vector["area"], vector["name"]) for vector in map(json.loads, lines)]
    assert names == [(path.parent.name, path.stem) for path in find_scenarios()]


def test_vector_says_all_that_the_file_says(exported: Path) -> None:
    """A vector can be told without the file: profile, every reading, commands and outputs."""
    path = next(p for p in find_scenarios() if p.stem == "slice-drops-the-leader")
    scenario = read_scenario(path)
    lines = (exported / "scenarios.jsonl").read_text().splitlines()
    vector = next(v for v in map(json.loads, lines) if v["name"] == path.stem)
    assert vector["profile"] == "kip-236"
    assert vector["readings"] == scenario.readings.as_dict()
    assert vector["readings"]["drop.slice"] == "exclusive"
    assert vector["clauses"] == list(scenario.clauses)
    assert [s["command"] for s in vector["steps"]] == [b.command for b in scenario.blocks]
    assert vector["steps"][1]["expected"] == list(scenario.blocks[1].expected)


def test_manifest_agrees_with_the_lines(exported: Path) -> None:
    """The manifest counts what is there and names its hash."""
    manifest = json.loads((exported / "manifest.json").read_text())
    data = (exported / "scenarios.jsonl").read_bytes()
    (file,) = manifest["files"]
    assert file["sha256"] == hashlib.sha256(data).hexdigest()
    assert file["vectors"] == len(data.splitlines()) == sum(manifest["areas"].values())
    assert sum(manifest["profiles"].values()) == file["vectors"]


def test_export_is_repeatable(exported: Path, tmp_path: Path) -> None:
    """Two exports are the same bytes."""
    document = vectors_document(tmp_path / "again")
    assert document.get_exit_code() == 0
    for name in ("scenarios.jsonl", "manifest.json"):
        assert (tmp_path / "again" / name).read_bytes() == (exported / name).read_bytes()


def test_scenario_that_does_not_hold_is_not_exported(tmp_path: Path) -> None:
    """A scenario whose expectation the model does not meet stops the export; nothing is written."""
    folder = tmp_path / "scenarios" / "area"
    folder.mkdir(parents=True)
    path = next(p for p in find_scenarios() if p.stem == "election-offline")
    text = path.read_text().replace("leader 4", "leader 2")
    (folder / "wrong.txt").write_text(text)
    with pytest.raises(ScenarioError, match="the model answers otherwise"):
        export_vectors(tmp_path / "out", tmp_path / "scenarios")
    assert not (tmp_path / "out").exists()
