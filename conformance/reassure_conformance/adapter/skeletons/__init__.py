"""Skeletons of adapters in other languages: programs that run, and declare that they can do little.

Each folder here is a language, each file in it a file of the skeleton with `.template` after its
name. A skeleton answers every call that an adapter without capabilities is asked, needs no library,
and says where an implementation is to be started.
"""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Final

from reassure_conformance.report.document import write_text
from reassure_spec.errors import BadConfiguration

_SUFFIX: Final = ".template"
LANGUAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "python": ("reassure test --smoke -i 'exec:{folder}/adapter.py'",),
    "node": ("reassure test --smoke -i 'exec:{folder}/adapter.mjs'",),
    "go": (
        "(cd '{folder}' && go build -o adapter .)",
        "reassure test --smoke -i 'exec:{folder}/adapter'",
    ),
    "java": (
        "javac -d '{folder}' '{folder}/Adapter.java'",
        "reassure test --smoke -i 'exec:java -cp {folder} Adapter'",
    ),
}
"""By language, what is to be typed next."""


class NotEmpty(BadConfiguration):
    """A folder that holds something already."""


def write_skeleton(language: str, folder: Path) -> tuple[Path, ...]:
    """Write the skeleton of a language into a new or empty folder; return its files.

    Raises NotEmpty, OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise NotEmpty(f"{folder} is not empty: name a folder that is new, or empty this one")
    written = []
    templates = (files(__name__) / language).iterdir()
    for template in sorted(templates, key=lambda each: each.name):
        path = folder / template.name.removesuffix(_SUFFIX)
        text = template.read_text(encoding="utf-8")
        write_text(path, text)
        if text.startswith("#!"):
            path.chmod(0o755)
        written.append(path)
    return tuple(written)
