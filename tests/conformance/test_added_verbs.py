"""Verbs beside those of the core: how they are found, and by which names."""

import re
import sys
from importlib import metadata
from pathlib import Path

import click
import pytest

from reassure_conformance.cli import GROUPS, run_command
from reassure_conformance.report.spelling import TYPED

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


def _call(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Run a command line; return its exit code, and what it says without figures of time."""
    code = run_command([str(word) for word in words])
    said = capsys.readouterr()
    return code, re.sub(r"\d+\.\d+", "#", said.out), said.err


def test_a_green_audit_begins_with_its_verdict_and_names_no_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where all holds the first line says so, and no count of what there is not looks amiss."""
    assert run_command(["lab", "synth", *SMALL, str(tmp_path)]) == 0
    capsys.readouterr()
    code, out, _ = _call(capsys, "audit", tmp_path)
    assert (code, out.startswith("HOLDS")) == (0, True)
    assert re.findall(r"(?i)violat|fail|damage|unknown|warning|not.followed|needed", out) == []


def test_help_has_one_whole_line_for_each_verb(capsys: pytest.CaptureFixture[str]) -> None:
    """On a terminal of 80 columns no verb's line is cut or goes on in a second."""
    _, said, _ = _call(capsys, "--help")
    rows = said.partition("\nCheck:\n")[2].partition("\n  Exit codes")[0].splitlines()
    verbs = [row.split()[0] for row in rows if row.startswith("  ")]
    assert len(verbs) == 13
    assert [row for row in rows if row.endswith("...")] == []


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (
            ["test", "--smoke", "--examples", "3"],
            "--examples cannot be used with --smoke: leave out",
        ),
        (["test", "--smoke", "--case", "a-move"], "--smoke and --case cannot be used together"),
        (
            ["test", "a-move"],
            "--case a-move (test case) or -i a-move (implementation)",
        ),
        (["audit", ".", "--until-caught-up"], "--until-caught-up is for --follow: add it"),
        (["audit", ".", "--follow", "--jobs", "3"], "--jobs cannot be used with --follow"),
        (["audit", ".", "--follow", "--format", "markdown"], "use --format pretty or json"),
        (["scenarios", "--export"], "add --out DIR"),
        (["scenarios", "--out", "x"], "--out is for --export: add it"),
        (
            ["diff", ".", ".", "--states", "9"],
            "--states has no meaning for two results: leave it out",
        ),
        (["diff", "no-such", "nor-such"], "is nothing that can be compared; name a rule"),
    ],
)
def test_a_mistake_is_answered_with_what_to_type(
    words: list[str], advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Options that do not fit each other, and names that there are not, end with 64 and advice."""
    code, out, err = _call(capsys, *words)
    assert (code, out) == (64, "")
    assert advice in " ".join(err.split())


FORMER = {
    "run": ["--reading", "nonsense"],
    "smoke": ["-i", "exec:./no-such-program"],
    "tell": ["no-such-case"],
    "replay": ["{tmp}"],
    "faults": ["drop-skiped"],
    "new-adapter": ["python", "{tmp}"],
    "watch": ["{tmp}/absent", "--until-caught-up"],
    "compare": ["no-such", "nor-such"],
    "vectors": [],
    "synth": [],
}
"""By former verb, words that are quickly refused."""


@pytest.mark.parametrize("verb", FORMER)
def test_a_former_verb_does_as_the_new_one(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A former verb prints its new name, and then does as that one does."""
    (tmp_path / "there.txt").touch()
    words = [word.format(tmp=tmp_path) for word in FORMER[verb]]
    code, out, err = _call(capsys, verb, *words)
    first, _, rest = err.partition("\n")
    assert first == f"reassure: `{verb}` is now `reassure {TYPED[verb]}`"
    assert (code, out, rest) == _call(capsys, *TYPED[verb].split(), *words)
    assert code in (64, 65, 69, 78)


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
