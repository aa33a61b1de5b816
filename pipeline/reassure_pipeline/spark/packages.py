"""The project's own packages in one file, for workers that do not have them.

A worker imports from the file as it stands, so that it needs only a Python of the driver's version
and whatever its tasks import beyond the project.
"""

import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

SHIPPED: Final = (
    "reassure_spec",
    "reassure_zookeeper",
    "reassure_model",
    "reassure_judge",
    "reassure_pipeline",
)
"""What judging logs takes: what the tasks of an audit import."""


def find_package(name: str) -> Path:
    """Return the folder of an installed package; raises `ModuleNotFoundError`."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return Path(spec.origin).resolve().parent


def find_roots() -> list[str]:
    """Return the folders that must be on the path of whoever imports them."""
    return [str(root) for root in dict.fromkeys(find_package(name).parent for name in SHIPPED)]


def pack_packages(file: Path) -> None:
    """Write them into a zip to import from, data files included."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in SHIPPED:
            folder = find_package(name)
            for path in sorted(folder.rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    packed.write(path, Path(name, path.relative_to(folder)))
