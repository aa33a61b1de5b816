"""The protocols, a folder each: what the rules say of one, as data.

| file | what it holds |
|---|---|
| `manifest.toml` | its profiles, the paths it `reads`, who asks which reading, its docs' pages |
| `readings.toml` | its disputed sentences, with the values that each can take |
| `findings.md` | where its document contradicts itself, is silent or loses data |
| `clauses/*.md` | its normative sentences |

A folder is called like the protocol, with underscores for dashes; every other room that has
something particular about a protocol has it in a folder or file of the same name. `common` is no
protocol: it holds what all of them rest upon.
"""

import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pkgutil import iter_modules
from types import MappingProxyType, ModuleType
from typing import Any


@dataclass(frozen=True, slots=True)
class Folder:
    """The data of one protocol, or of what all protocols have in common."""

    name: str
    """Its name as users write it, with dashes."""
    place: Traversable
    manifest: Mapping[str, Any]

    def read(self, name: str) -> str:
        """Return the text of one of its files, "" where it has none of this name."""
        file = self.place / name
        return file.read_text(encoding="utf-8") if file.is_file() else ""

    def read_tables(self, name: str) -> Mapping[str, Any]:
        """Return one of its TOML files, parsed; empty where it has none of this name."""
        return tomllib.loads(self.read(name))

    def list_texts(self, folder: str) -> Iterator[tuple[str, str]]:
        """Yield the name and the text of each file in one of its folders, by name."""
        place = self.place / folder
        if place.is_dir():
            for file in sorted(place.iterdir(), key=lambda each: each.name):
                yield f"{self.name}/{file.name}", file.read_text(encoding="utf-8")


@cache
def list_folders() -> tuple[Folder, ...]:
    """Return the folders in the order of their manifests, in which reports list what they hold."""
    found = [
        Folder(
            place.name.replace("_", "-"),
            place,
            MappingProxyType(tomllib.loads((place / "manifest.toml").read_text(encoding="utf-8"))),
        )
        for place in files("reassure_spec").joinpath("protocols").iterdir()
        if (place / "manifest.toml").is_file()
    ]
    return tuple(sorted(found, key=lambda folder: int(folder.manifest["order"])))


def read_profiles() -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """Return what the manifests say of each profile, by its name, in the order of reports."""
    found = [
        each for folder in list_folders() for each in folder.manifest.get("profiles", {}).items()
    ]
    return tuple(sorted(found, key=lambda each: int(each[1]["order"])))


def import_parts(
    room: str, part: str = "", only: Collection[str] | None = None
) -> Mapping[str, ModuleType]:
    """Return what a room has of each protocol, by the protocol's name and in the usual order.

    It is the module `ROOM.protocols.NAME.PART`, or without a part the file or folder
    `ROOM.protocols.NAME`. A protocol of which the room has no such part is left out. Where `only`
    names protocols nothing of any other is loaded.
    """
    folder = import_module(f"{room}.protocols")
    order = [each.name for each in list_folders()]
    found: dict[str, ModuleType] = {}
    for place in iter_modules(folder.__path__):
        module, name = f"{folder.__name__}.{place.name}", place.name.replace("_", "-")
        if only is not None and name not in only:
            continue
        if part and not (place.ispkg and find_spec(f"{module}.{part}")):
            continue
        found[name] = import_module(f"{module}.{part}" if part else module)
    known = sorted(found, key=lambda name: order.index(name) if name in order else len(order))
    return {name: found[name] for name in known}


def read_parts(room: str, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each protocol that has a TOML file of this name in a room, with the file parsed."""
    for protocol, folder in import_parts(room).items():
        file = files(folder) / name
        if file.is_file():
            yield protocol, tomllib.loads(file.read_text(encoding="utf-8"))
