"""The systems: what the documents describe, each with what belongs to it.

A system is a part of the documents that can be understood by itself. Clauses, readings and findings
belong to it by the beginnings of their ids, scenarios by the folder they lie in or by the clauses
they are about, and parts of the model by their modules. What belongs to several systems stands in
each of them. They are data (`protocols/*/manifest.toml`), from which the pages in
`docs/generated/systems` are made.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from reassure_spec.protocols import list_folders


@dataclass(frozen=True, slots=True)
class System:
    """One part of the documents."""

    id: str
    """Short name, as in the name of its page."""
    title: str
    words: str
    """What it is, in a paragraph."""
    profiles: tuple[str, ...]
    clauses: tuple[str, ...]
    """Beginnings of the ids of its clauses."""
    areas: tuple[str, ...]
    """Folders of its scenarios."""
    modules: tuple[str, ...]
    """Modules of the model that carry it out, without the package."""
    findings: tuple[str, ...] = ()
    """Beginnings of the ids of its findings."""
    readings: tuple[str, ...] = ()
    """Beginnings of the names of its readings."""
    machines: tuple[str, ...] = ()
    """Profiles whose state machines it goes by."""
    lives: tuple[str, ...] = ()
    """Protocols whose life is told on its page, stage by stage."""
    asks: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """What the document asks for, in a line each, with the scenarios that tell it."""

    def has_clause(self, clause_id: str) -> bool:
        """Whether a clause belongs to it."""
        return clause_id.startswith(self.clauses)

    def has_finding(self, finding_id: str) -> bool:
        """Whether a finding belongs to it."""
        return any(
            finding_id == each or (each.endswith("-") and finding_id.startswith(each))
            for each in self.findings
        )

    def has_reading(self, name: str) -> bool:
        """Whether a reading belongs to it."""
        return bool(self.readings) and name.startswith(self.readings)

    def has_scenario(self, area: str, clauses: tuple[str, ...]) -> bool:
        """Whether a scenario belongs to it."""
        return area in self.areas or any(map(self.has_clause, clauses))


def _read_system(said: Mapping[str, Any]) -> System:
    lists = ("profiles", "clauses", "areas", "modules", "findings", "readings", "machines", "lives")
    return System(
        id=said["id"],
        title=said["title"],
        words=" ".join(said["words"].split()),
        asks=tuple((each["words"], tuple(each["scenarios"])) for each in said.get("asks", ())),
        **{name: tuple(said.get(name, ())) for name in lists},
    )


SYSTEMS: Final = tuple(
    _read_system(said) for folder in list_folders() for said in folder.manifest.get("systems", ())
)
"""Every system, in the order of the manifests."""
