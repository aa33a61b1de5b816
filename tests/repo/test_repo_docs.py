"""The documentation says what the code says."""

import importlib.util
import re
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from reassure_spec.systems import SYSTEMS

ROOT = Path(__file__).parents[2]
PAGES = (
    "clauses.md",
    "findings.md",
    "readings.md",
    "figures/state-machines.md",
    "figures/worked-moves.md",
    "systems/README.md",
    *(f"systems/{system.id}.md" for system in SYSTEMS),
)


@cache
def load_generator() -> ModuleType:
    """Return the script that writes the generated pages."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs/generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", PAGES)
def test_generated_page_is_fresh(name: str) -> None:
    """A generated page is what `make docs` would write now."""
    generator = load_generator()
    assert set(generator.PAGES) == set(PAGES)
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == generator.PAGES[name]()


def test_links_between_documents_lead_somewhere() -> None:
    """A relative link in a document leads to a file that is there."""
    dangling = []
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        targets = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text)
        dangling += [
            f"{path.relative_to(ROOT)}: {target}"
            for target in targets
            if not (path.parent / target).exists()
        ]
    assert dangling == []


def test_glossary_uses_words_not_acronyms() -> None:
    """The glossary has every word of the vocabulary that the code uses for replica sets."""
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    for word in ("assigned", "original", "target", "top", "drop", "isr", "high_watermark"):
        assert f"`{word}`" in text, word
