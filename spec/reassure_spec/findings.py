"""The findings: where a document contradicts itself, is silent or loses data.

A finding is about a document, not about a program. Each names the smallest instance that shows it,
the clauses it concerns and the reading that settles it, if there is one. Here stands what it says;
what shows it (a theorem that is refuted, an exploration, a scenario) names its id. Where nothing
can, because the finding is about words alone, `words_only` says why.

Ids are never reused. `WITHDRAWN` says of every number that is missing why it was taken back.

Words in instances: A assigned replicas, I in-sync replicas in stored order, L leader, T target,
m min.insync.replicas, X the limit of the lag. `[1,2] -> [1,3]` asks to move from one list to the
other.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from reassure_spec.blocks import BadBlock, Block, read_blocks
from reassure_spec.errors import ReassureError
from reassure_spec.protocols import list_folders


@dataclass(frozen=True, slots=True)
class Finding:
    """One place where a document does not hold."""

    id: str
    """Area and number, as in drop-4."""
    title: str
    """What is wrong, in a few words."""
    document: str
    """The document it is about."""
    clauses: tuple[str, ...]
    """The clauses concerned."""
    readings: tuple[str, ...]
    """The readings that settle it or depend on it; `=value` where it is met under that alone."""
    profiles: tuple[str, ...]
    """The profiles in which it can be met."""
    instance: str
    """The smallest instance."""
    statement: str
    """What the finding says, in full."""
    observed: str = ""
    """What was seen of it on a real cluster, with the version, "" where nobody has looked."""
    words_only: str = ""
    """Why nothing can be run that would show it, "" where something has to show it."""
    own: str = ""
    """What of ours leads there, where the document by itself does not; "" where it does."""


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A finding that was taken back: its number is never given to another."""

    id: str
    title: str
    """What it said."""
    reason: str
    """Why it does not hold."""


class UnknownFinding(ReassureError):
    """An id that no finding has."""


_REQUIRED: Final = ("Statement", "Instance", "Document", "Profiles")
_OPTIONAL: Final = ("Clauses", "Readings", "Observed", "Words-only", "Own")


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _read(block: Block, origin: str) -> Finding | Withdrawn:
    told = block.fields
    required = _REQUIRED if block.letter == "f" else ("Reason",)
    missing = [name for name in required if name not in told]
    if block.letter not in "fw" or missing or not block.text:
        lacks = ", ".join(missing) or "a title, or f[...] or w[...] at its head"
        raise BadBlock(f"{origin}: finding {block.id} lacks {lacks}")
    if block.letter == "w":
        return Withdrawn(block.id, block.text, told["Reason"])
    return Finding(
        id=block.id,
        title=block.text,
        document=told["Document"],
        clauses=_split(told.get("Clauses", "")),
        readings=_split(told.get("Readings", "")),
        profiles=_split(told["Profiles"]),
        instance=told["Instance"],
        statement=told["Statement"],
        observed=told.get("Observed", ""),
        words_only=told.get("Words-only", ""),
        own=told.get("Own", ""),
    )


def parse_findings(text: str, origin: str) -> tuple[Finding | Withdrawn, ...]:
    """Parse the findings of one Markdown file; `origin` names it in error messages.

    Raises BadBlock when a block does not keep the format.
    """
    names = (*_REQUIRED, *_OPTIONAL, "Reason")
    return tuple(_read(block, origin) for block in read_blocks(text, names, origin))


_REGISTER: Final = tuple(
    each
    for folder in list_folders()
    for each in parse_findings(folder.read("findings.md"), f"{folder.name}/findings.md")
)
FINDINGS: Final = tuple(each for each in _REGISTER if isinstance(each, Finding))
"""Every finding, by protocol and area."""
WITHDRAWN: Final = tuple(each for each in _REGISTER if isinstance(each, Withdrawn))
"""Every number that is missing, by area and number."""


def get_finding(finding_id: str) -> Finding:
    """Return the finding with this id. Raises UnknownFinding when there is none any more."""
    found = next((each for each in _REGISTER if each.id == finding_id), None)
    if isinstance(found, Withdrawn):
        raise UnknownFinding(f"finding {finding_id} was taken back: {found.reason}")
    if found is None:
        raise UnknownFinding(
            f"there is no finding {finding_id!r}; `reassure spec findings` lists them"
        )
    return found


def findings_of_reading(name: str) -> tuple[Finding, ...]:
    """Return the findings that depend on this reading."""
    return tuple(
        finding
        for finding in FINDINGS
        if any(each.partition("=")[0] == name for each in finding.readings)
    )


def findings_that_break(
    clause_id: str, readings: Mapping[str, str], chosen: Collection[str]
) -> tuple[Finding, ...]:
    """Return the findings by which the document itself breaks a clause under these readings.

    They are met under values that `readings` has, of which somebody has `chosen` one: what is usual
    keeps the clause, so that it is broken by a fault.
    """
    found = []
    for finding in FINDINGS:
        values = dict(each.split("=") for each in finding.readings if "=" in each)
        if clause_id in finding.clauses and values.items() <= readings.items():
            found += [finding] if values.keys() & set(chosen) else []
    return tuple(found)
