"""Verbs beside those of the core: how they are found, and by which names."""

import sys
from importlib import metadata
from pathlib import Path

import click
import pytest

from reassure_conformance.cli import GROUPS, OF_THE_LAB, cli, run_command

SMALL = ("--transactions", "600", "--partitions", "5", "--faults", "0")


def test_help_lists_every_verb_in_a_group(capsys: pytest.CaptureFixture[str]) -> None:
    """Help has each verb once, below the heading of its group, and the lab at last."""
    assert run_command(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    places = [lines.index(f"{heading}:") for heading in (*GROUPS, "Lab")]
    assert places == sorted(places)
    for (begin, end), commands in zip(
        zip(places, [*places[1:], len(lines)], strict=True),
        (*GROUPS.values(), [click.Command("lab")]),
        strict=True,
    ):
        rows = [line.split()[0] for line in lines[begin + 1 : end] if line[:3].strip()]
        assert rows[: len(commands)] == [each.name for each in commands]


def test_the_lab_has_the_verbs_that_answer_without_it() -> None:
    """What still answers by its former name is what the lab has."""
    lab = cli.get_command(click.Context(cli), "lab")
    assert isinstance(lab, click.Group)
    assert set(lab.commands) == OF_THE_LAB


def test_a_former_name_does_the_same_and_names_the_new_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A verb of the lab by its former name writes the same and says its name in one line."""
    assert run_command(["synth", *SMALL, str(tmp_path / "old")]) == 0
    assert capsys.readouterr().err == "reassure: `synth` is now `reassure lab synth`\n"
    assert run_command(["lab", "synth", *SMALL, str(tmp_path / "new")]) == 0
    assert capsys.readouterr().err == ""
    old, new = (
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (tmp_path / "old", tmp_path / "new")
    )
    assert old == new != {}


@pytest.mark.parametrize("words", [["lab", "soak"], ["soak"], ["lab"]])
def test_without_the_lab_it_is_said_how_to_install_it(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where no entry point brings the lab its verbs end with 69, and help and others are whole."""
    monkeypatch.setattr(metadata, "entry_points", lambda **_: metadata.EntryPoints(()))
    assert run_command(words) == 69
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "reassure: the lab is not installed: pip install 'reassure[lab]'"
    assert run_command(["--help"]) == 0
    assert "Lab:" not in capsys.readouterr().out
    assert run_command(["no-such-verb"]) == 64


def test_a_package_that_the_lab_lacks_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A verb of the lab without its packages says how to install them before it begins: 69."""
    monkeypatch.setitem(sys.modules, "prometheus_client.parser", None)
    monkeypatch.delitem(sys.modules, "reassure_lab.cluster.overview", raising=False)
    assert run_command(["lab", "cluster", "up", "-d", str(tmp_path / "c")]) == 69
    said = "prometheus_client is not installed: pip install 'reassure[lab]'"
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
