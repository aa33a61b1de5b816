"""Verbs beside those of the core: how they are found, and by which names."""

import re
import sys
from importlib import metadata
from pathlib import Path

import click
import pytest

from reassure_conformance.cli import GROUPS, cli, run_command
from reassure_conformance.report.spelling import NOW

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
    assert {f"lab {name}" for name in lab.commands} <= set(NOW.values())


def _call(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Run a command line; return its exit code, and what it says without figures of time."""
    code = run_command([str(word) for word in words])
    said = capsys.readouterr()
    return code, re.sub(r"\d+\.\d+", "#", said.out), said.err


FORMER = {
    "run": ["--examples", "1", "--no-stories", "--reading", "nonsense"],
    "smoke": ["-i", "exec:./no-such-program"],
    "tell": ["--format", "json", "-i", "exec:./no-such-program", "a-move"],
    "replay": ["--format", "json", "{tmp}"],
    "faults": ["drop-skiped"],
    "new-adapter": ["python", "{tmp}"],
    "watch": ["{tmp}/absent", "--for", "0", "--grace", "3"],
    "compare": ["{tmp}", "{tmp}"],
    "vectors": ["--format", "json", "--out", "{tmp}/vectors"],
    "completion": ["zsh"],
}
"""What each former verb of the core is given: quickly done, or quickly refused."""


@pytest.mark.parametrize("verb", [name for name, now in NOW.items() if "lab " not in now])
def test_a_former_verb_does_as_the_new_one(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A former verb ends and says as the new spelling does, and names that in one line before."""
    (tmp_path / "there.txt").touch()
    *rest, last = (word.format(tmp=tmp_path) for word in FORMER[verb])
    code, out, err = _call(capsys, verb, *rest, last)
    place = len(rest) if NOW[verb] in ("test --case", "test --replay") else 0
    option = NOW[verb].split()[1:]
    words = [*rest, last]
    typed = [NOW[verb].split()[0], *words[:place], *option, *words[place:]]
    expected = _call(capsys, *typed)
    first, _, left = err.partition("\n")
    assert first == f"reassure: `{verb}` is now `reassure {NOW[verb]}`"
    assert (code, out) == expected[:2]
    assert left.splitlines()[-1:] == expected[2].splitlines()[-1:]
    assert code != 70


@pytest.mark.parametrize("verb", ["tell", "replay", "vectors", "completion"])
def test_a_former_verb_needs_what_it_needed(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What a former verb could not do without is asked for, and nothing else is done: 64."""
    assert _call(capsys, verb)[0] == 64


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
    """On a terminal of 80 columns no verb's line is cut or goes on in a second; none is former."""
    _, said, _ = _call(capsys, "--help")
    rows = said.partition("\nCheck:\n")[2].partition("\n  Exit codes")[0].splitlines()
    verbs = [row.split()[0] for row in rows if row.startswith("  ")]
    assert len(verbs) == 13
    assert not {*verbs} & {*NOW}
    assert [row for row in rows if row.endswith("...")] == []


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (["test", "--smoke", "--examples", "3"], "--examples does not fit --smoke: leave out one"),
        (["test", "--smoke", "--case", "a-move"], "--smoke and --case are two things to do"),
        (
            ["test", "a-move"],
            "a story is told by --case a-move, an implementation driven by -i a-move",
        ),
        (["audit", ".", "--until-caught-up"], "--until-caught-up is for --follow: add it"),
        (["audit", ".", "--follow", "--jobs", "3"], "--jobs does not fit --follow"),
        (["audit", ".", "--follow", "--format", "markdown"], "--format is pretty or json"),
        (["scenarios", "--export"], "say with --out DIR where"),
        (["scenarios", "--out", "x"], "--out is for --export: add it"),
        (["diff", ".", ".", "--states", "9"], "--states is not about results: leave it out"),
        (["diff", "no-such", "nor-such"], "two results are two directories of runs, or files"),
    ],
)
def test_a_mistake_is_answered_with_what_to_type(
    words: list[str], advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Options that do not fit each other, and names that there are not, end with 64 and advice."""
    code, out, err = _call(capsys, *words)
    assert (code, out) == (64, "")
    assert advice in " ".join(err.split())


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
