"""The documentation says what the code says."""

import importlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

import click
import pytest

from reassure_conformance.cli import cli
from reassure_explorer.scopes.catalogue import COUNTS, SCOPES
from reassure_spec.clauses import load_clauses
from reassure_spec.readings import READINGS
from reassure_spec.systems import SYSTEMS

ROOT = Path(__file__).parents[2]
SLOW = "docs/generated/hypotheses.md"
"""Built by the test of what it says, in `tests/proofs`."""
OPTIONS_ELSEWHERE = {"--build-arg", "--platform", "--tlc"}
"""Options that documents name and that are of Docker, or of a benchmark."""
SETTINGS = {"broker.id", "message.max.bytes", "replica.lag.time.max.ms"}
"""Settings of Kafka that look like clauses."""
MOVES = {
    "KAFKA-42 with its four repairs": (16, 4),
    "KIP-236": (15, 5),
    "Shipped controllers (KIP-455), by the old znode": (17, 5),
}
"""The protocols that a move is shown under: how many lines it takes, and the leader epoch after."""


@cache
def load_generator() -> ModuleType:
    """Return the script that writes the generated pages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        return importlib.import_module("generate")


@cache
def build_pages() -> dict[str, str]:
    """Return every page that is built and takes no minutes, by path below the root."""
    pages = load_generator().PAGES
    return {name: render() for name, render in pages.items() if name != SLOW}


@pytest.mark.parametrize("name", ["docs/findings.md", "docs/readings.md"])
def test_tracked_page_is_fresh(name: str) -> None:
    """A page that is tracked is what `make docs` would write now."""
    assert (ROOT / name).read_text(encoding="utf-8") == load_generator().TRACKED[name]()


def _list_headings(text: str) -> set[str]:
    """Return what links to the headings of a page end in."""
    return {load_generator().make_anchor(h) for h in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


def _find_dangling(pages: Mapping[str, str], others: Mapping[str, str]) -> Iterator[str]:
    """Yield the links of pages, by path, that lead to no file, or to no heading of a page."""
    for name, text in pages.items():
        for target, _, heading in re.findall(r"\]\(([^)#:\s]+)(#([^)]*))?\)", text):
            path = os.path.normpath(Path(name).parent / target)
            page = {**others, **pages}.get(path)
            if page is None and (path.startswith("docs/generated") or not (ROOT / path).exists()):
                yield f"{name}: {target}"
            elif page is not None and heading and heading not in _list_headings(page):
                yield f"{name}: {target}#{heading}"


def _read_documents() -> dict[str, str]:
    """Return the documents that are tracked, by path below the root."""
    paths = (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"))
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}


def test_links_lead_somewhere() -> None:
    """A link leads to a file, or a heading of a page, that is there; a tracked one to tracked."""
    assert list(_find_dangling(_read_documents(), {})) == []
    assert list(_find_dangling(build_pages(), {SLOW: "", **_read_documents()})) == []


@pytest.mark.parametrize(
    ("link", "dangles"),
    [
        ("[x](docs/findings.md)", False),
        ("[x](docs/absent.md)", True),
        ("[x](docs/generated/clauses.md)", True),
        ("[x](docs/explorer.md#scopes)", False),
        ("[x](docs/explorer.md#no-such-heading)", True),
    ],
)
def test_dangling_links_are_noticed(link: str, dangles: bool) -> None:
    """A link to what is absent, is not tracked or has no such heading is found."""
    assert bool(list(_find_dangling({"X.md": link}, _read_documents()))) is dangles


def _find(group: click.Group, name: str) -> click.Command | None:
    return group.get_command(click.Context(group), name)


def _find_unknown(text: str) -> Iterator[str]:
    """Yield what documents ask `reassure` for and is no verb or option."""
    lines = re.sub(r"'[^'\n]*'", "''", text.replace("\\\n", " "))
    for said in re.findall(r"(?:^|`|\$ )reassure ([a-z][^`\n]*)", lines, re.MULTILINE):
        words, command = said.partition("  ")[0].split(), cli
        while isinstance(command, click.Group) and words and (inner := _find(command, words[0])):
            command = inner
            words.pop(0)
        options = {
            option for each in command.params for option in (*each.opts, *each.secondary_opts)
        }
        if isinstance(command, click.Group) and words and re.fullmatch(r"[a-z-]+", words[0]):
            yield f"reassure {said}: {words[0]}"
        if command.name not in ("broker", "controller"):
            options |= {"--help", "-h"}
            asked = re.findall(r"(?<![\w-])--?[a-z][\w-]*", " ".join(words).partition(" # ")[0])
            yield from (f"reassure {said}: {each}" for each in asked if each not in options)


def test_documents_ask_for_what_there_is() -> None:
    """Every command line in a document has a verb and options that there are; history aside."""
    found = [
        f"{name}: {unknown}"
        for name, text in _read_documents().items()
        for unknown in _find_unknown(text)
        if name != "CHANGELOG.md"
    ]
    assert found == []
    assert list(_find_unknown("`reassure prove --lost`, `reassure lose x`")) == [
        "reassure prove --lost: --lost",
        "reassure lose x: lose",
    ]


def test_options_that_documents_name_are_there() -> None:
    """An option named in a document is one of a verb or process, or of another program."""
    pages = build_pages()
    known = pages["docs/generated/verbs.md"] + pages["docs/generated/processes.md"]
    found = {
        option
        for text in _read_documents().values()
        for option in re.findall(r"`(--[a-z][\w-]*)", text)
        if not re.search(rf"{option}(?![\w-])", known)
    }
    assert found <= OPTIONS_ELSEWHERE


def test_built_pages_have_all_that_there_is() -> None:
    """Each clause, scope, system and count is on the page that lists its kind."""
    pages = build_pages()
    clauses, scopes = pages["docs/generated/clauses.md"], pages["docs/generated/scopes.md"]
    assert [name for name in load_clauses() if f"### `{name}`\n" not in clauses] == []
    assert [name for name in SCOPES if f"| `{name}` |" not in scopes] == []
    told = [" · ".join(f"{n:,}" for n in COUNTS[s.name, s.profile]) for s in SCOPES.values()]
    assert [counts for counts in told if counts not in scopes] == []
    systems = {f"docs/generated/systems/{system.id}.md" for system in SYSTEMS}
    assert systems <= set(pages)


def test_worked_moves_end_where_they_were_asked_to() -> None:
    """Under each protocol the move ends on its target, after as many writes as are known."""
    text = load_generator().render_worked_moves()
    for title, (lines, epoch) in MOVES.items():
        part = text.partition(f"## {title}\n")[2].partition("\n## ")[0]
        rows = [line.strip("| ").split(" | ") for line in part.splitlines() if "[" in line]
        assert (len(rows), int(rows[-1][-1])) == (lines, epoch), title
        assert rows[-1][1:4] == ["[4, 5, 6]", "4", "[4, 5, 6]"], title


def _find_clause_ids(text: str) -> set[str]:
    """Return what a document names in the form of a clause, in an area that clauses have."""
    areas = {name.partition(".")[0] for name in load_clauses()}
    named = re.findall(r"`([a-z][a-z-]*(?:\.[a-z][a-z0-9-]*)+)`", text)
    return {name for name in named if name.partition(".")[0] in areas}


def test_clauses_that_documents_name_are_there() -> None:
    """Every id of a clause or a reading in a document is one of the spec."""
    known = load_clauses().keys() | {reading.name for reading in READINGS}
    found = {
        f"{name}: {clause}"
        for name, text in _read_documents().items()
        for clause in _find_clause_ids(text) - known - SETTINGS
    }
    assert found == set()
    assert _find_clause_ids("`drop.lost`, `min.insync.replicas`") == {"drop.lost"}


def test_page_of_the_semantics_names_every_clause() -> None:
    """Each clause of the spec stands on the page that says what is checked."""
    page = (ROOT / "docs/semantics.md").read_text(encoding="utf-8")
    assert load_clauses().keys() - _find_clause_ids(page) == set()


def test_glossary_has_few_words_of_its_own() -> None:
    """The glossary defines at most 25 words that are of this project alone."""
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    ours = text.partition("## Words of this project")[2].partition("\n## ")[0]
    rows = [line for line in ours.splitlines() if line.startswith("| ")][1:]
    assert 0 < len(rows) <= 25


def test_glossary_uses_words_not_acronyms() -> None:
    """The glossary has every word of the vocabulary that the code uses for replica sets."""
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    for word in ("assigned", "original", "target", "top", "drop", "isr", "high_watermark"):
        assert f"`{word}`" in text, word


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the site, built from all pages but one that takes minutes."""
    root = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", root / "docs", ignore=shutil.ignore_patterns("generated"))
    for path in ROOT.iterdir():
        if not (root / path.name).exists():
            (root / path.name).symlink_to(path)
    besides = {SLOW: "# Left out\n", "docs/unnamed.md": "# Named by no navigation\n"}
    for name, text in {**build_pages(), **besides}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(root / "out")],
        cwd=root,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return root / "out"


@pytest.mark.slow
def test_site_has_every_page_and_what_pages_link_to(site: Path) -> None:
    """The site is built without a warning, with all pages, and the files that these link to."""
    pages = [*(ROOT / "docs").glob("*.md"), *map(ROOT.joinpath, build_pages())]
    names = [str(path.relative_to(ROOT / "docs").with_suffix(".html")) for path in pages]
    absent = [name for name in names if not (site / name.replace("README", "index")).exists()]
    assert absent == []
    assert 'href="unnamed.html"' in (site / "index.html").read_text(encoding="utf-8")
    story = "source/conformance/reassure_conformance/gate/stories/a-move.txt.html"
    assert "request orders-0" in (site / story).read_text(encoding="utf-8")


@pytest.mark.slow
def test_site_loads_nothing_from_elsewhere(site: Path) -> None:
    """No page of the site loads anything over a network, and every diagram is drawn in it."""
    loads = re.compile(
        r"<(?:script|img|iframe)[^>]*src=[\"']?(?:https?:)?//|url\([\"']?(?:https?:)?//"
    )
    links = re.compile(r"<link[^>]*href=[\"']?(?:https?:)?//")
    for path in (*site.rglob("*.html"), *site.rglob("*.css")):
        text = path.read_text(encoding="utf-8")
        assert not loads.search(text), path
        assert not links.search(text), path
        assert "stateDiagram-v2" not in text, path
        assert "flowchart LR" not in text, path
    assert '<figure class="diagram">' in (site / "architecture.html").read_text(encoding="utf-8")
