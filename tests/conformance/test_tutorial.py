"""The commands of the tutorial, and of other pages, do what is said of them."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reassure_conformance.cli import run_command

DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(r"^```(console|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PATIENCE = dict.fromkeys(("--smoke", "--case"), ("--hang-after", "60"))
"""By mode what is given besides, as the machine may have much else to do."""
_RUN = "import sys; from reassure_conformance.cli import main; main()"


def _list_parts(page: str) -> Iterator[tuple[str, str]]:
    """Yield commands with what they are said to print, and pieces of Python with their file."""
    for kind, text in _BLOCK.findall(page):
        if kind == "python":
            yield text.splitlines()[0].removeprefix("# "), text
            continue
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, printed = part.partition("\n")
            yield command, printed


def _hide_numbers(text: str) -> str:
    """Return lines in which all numbers are alike."""
    return re.sub(r"0x[0-9a-f]+|\d+(\.\d+)?", "#", re.sub(r" +", " ", text))


def _find_missing(said: str, printed: str) -> str:
    """Return what was said to be printed next and is not; empty where all is, in its order."""
    rest, anywhere = _hide_numbers(printed).strip(), False
    for piece in re.split(r"(…)", _hide_numbers(said)):
        wanted = piece.strip()
        if piece == "…":
            anywhere = True
        elif wanted:
            place = rest.find(wanted)
            if place < 0 or (place and not anywhere):
                return wanted
            rest, anywhere = rest[place + len(wanted) :].lstrip(), False
    return "" if anywhere or not rest else f"nothing more, and there is {rest!r}"


@pytest.mark.parametrize(
    ("said", "missing"),
    [
        ("a 1\n…\nc\n", ""),
        ("a 1\nb\nc\n", ""),
        ("c\n…\n", "c"),
        ("a 1\n…\nd\n", "d"),
        ("a 1\n", "nothing more, and there is 'b\\nc'"),
    ],
)
def test_what_is_not_printed_is_noticed(said: str, missing: str) -> None:
    """A line that is not there, comes too late, or more than was said is found."""
    assert _find_missing(said, "a 20.5\nb\nc\n") == missing


@pytest.mark.slow
def test_tutorial_does_what_it_says(tmp_path: Path) -> None:
    """Every command of the tutorial, in its order, prints what stands on the page."""
    ran = 0
    # As the page's first commands have it: programs find the Python that the project is in.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for what, text in _list_parts((DOCS / "tutorial.md").read_text(encoding="utf-8")):
        if not what.startswith("reassure "):
            file = tmp_path / what
            before, mark, after = file.read_text(encoding="utf-8").partition("CALLS = ")
            assert mark, f"{what} has no place for it"
            file.write_text(f"{before}{text}\n\n{mark}{after}", encoding="utf-8")
            continue
        ran += 1
        words = shlex.split(what)[1:]
        done = subprocess.run(
            [sys.executable, "-c", _RUN, *words, *_PATIENCE.get(words[1], ())],
            cwd=tmp_path,
            env={**os.environ, "PATH": path, "COLUMNS": "200", "NO_COLOR": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode in (0, 1, 69), done.stdout
        missing = _find_missing(text, done.stdout)
        assert not missing, f"{what}: expected {missing}\nfound:\n{done.stdout}"
    assert ran == 10
    assert (tmp_path / "report.html").exists()


def test_rule_of_your_own_is_refuted_and_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rule that the page begins with is refuted as it says, and the mended one proved."""
    parts = list(_list_parts((DOCS / "proofs.md").read_text(encoding="utf-8")))
    rules = [text for what, text in parts if what == "rules.py"]
    (tmp_path / "rules.py").write_text("\n\n".join(rules), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    codes = []
    for command, text in parts:
        if command != "rules.py":
            printed: list[str] = []
            codes.append(run_command(shlex.split(command)[1:], printed.append))
            assert not _find_missing(text, "\n".join(printed)), command
    assert codes == [1, 0]


def test_findings_are_told_as_they_run() -> None:
    """The command of each finding that is told shows what is said of it."""
    told = list(_list_parts((DOCS / "telling-findings.md").read_text(encoding="utf-8")))
    for command, text in told:
        printed: list[str] = []
        code = run_command(shlex.split(command)[1:], printed.append)
        assert code == (0 if "prove" in command else 1), command
        assert not _find_missing(text, "\n".join(printed)), command
    assert len(told) == 10
