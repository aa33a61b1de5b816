"""What the site has beside the pages in `docs`: the files that they link to, and diagrams.

A page links to files of the project as it does where it is read in the repository. On the site such
a file is a page of its own, below `source`, so that nothing leads out of it and every link is
checked when it is built. A path of a generated page that a tracked one names is made a link.
"""

import re
from collections.abc import Iterator
from os.path import normpath, relpath
from pathlib import Path, PurePosixPath
from typing import Final

from mermaid import draw_diagram
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_LINK: Final = re.compile(r"(?<=\]\()([^)#:\s]+)(?=[)#])")
_GENERATED: Final = re.compile(r"(?<!\[)`docs/(generated/([\w/-]+?)(?:/README)?\.md)`")
_DIAGRAM: Final = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_OURS: Final = "source"
_LANGUAGES: Final = {
    ".py": "python",
    ".go": "go",
    ".java": "java",
    ".json": "json",
    ".toml": "toml",
}


def _root(config: MkDocsConfig) -> Path:
    return Path(config.docs_dir).parent


def _find_page(root: Path, path: str) -> str | None:
    """Return the page of the site that shows a file or folder of the project; None without one."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if (root / path).is_dir():
        path = f"{path}/README.md"
    if not (root / path).is_file():
        return None
    return f"{_OURS}/{path}" + ("" if path.endswith(".md") else ".md")


def _find_file(root: Path, page: str) -> str:
    """Return the file of the project that a page of the site shows."""
    if not page.startswith(f"{_OURS}/"):
        return f"docs/{page}"
    path = page.removeprefix(f"{_OURS}/")
    return path if (root / path).is_file() else path.removesuffix(".md")


def _list_outside(root: Path, path: str, text: str) -> Iterator[str]:
    """Yield the pages below `source` that a page has links to."""
    for target in _LINK.findall(text):
        page = _find_page(root, normpath(f"{PurePosixPath(path).parent}/{target}"))
        if page is not None and page.startswith(f"{_OURS}/"):
            yield page


def _show_file(root: Path, path: str) -> str:
    """Return a file of the project as a page."""
    text = (root / path).read_text(encoding="utf-8")
    if path.endswith(".md"):
        return text
    language = _LANGUAGES.get(PurePosixPath(path).suffix, "text")
    return f"# {PurePosixPath(path).name}\n\n`{path}`\n\n`````{language}\n{text}`````\n"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add every file of the project that a page links to, and those that these link to.

    A page that no part of the navigation names stands at its end, so that none is lost.
    """
    root, named = _root(config), str(config.nav)
    unnamed = [f.src_uri for f in files.documentation_pages() if f"'{f.src_uri}'" not in named]
    if unnamed and config.nav is not None:
        config.nav.append({"More": unnamed})
    waiting = [
        page
        for file in files.documentation_pages()
        for page in _list_outside(root, f"docs/{file.src_uri}", file.content_string)
    ]
    while waiting:
        page = waiting.pop()
        if page not in files.src_uris:
            path = _find_file(root, page)
            text = _show_file(root, path)
            files.append(File.generated(config, page, content=text))
            waiting += _list_outside(root, path, text) if path.endswith(".md") else ()
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return a page with links to pages of the site, and its diagrams drawn."""
    root, here = _root(config), page.file.src_uri
    path = _find_file(root, here)
    if here.startswith(f"{_OURS}/") and not path.endswith(".md"):
        return markdown

    def lead(to: str) -> str:
        return relpath(to, PurePosixPath(here).parent)

    def replace_link(found: re.Match[str]) -> str:
        target = _find_page(root, normpath(f"{PurePosixPath(path).parent}/{found[1]}"))
        return found[1] if target is None else lead(target)

    def replace_name(found: re.Match[str]) -> str:
        return f"[{found[2]}]({lead(found[1])})"

    text = _LINK.sub(replace_link, markdown)
    text = _GENERATED.sub(replace_name, text)
    return _DIAGRAM.sub(lambda found: draw_diagram(found[1]), text)
