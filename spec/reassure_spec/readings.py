"""Profiles and readings.

A *reading* is one of the named ways to understand a sentence that the documents leave open, or an
amendment to a sentence that does not keep what it promises. A *profile* is a version of the rules:
a complete choice of readings. Both are values that are passed in; no rule asks for a version.

The names of the readings, their values and why each default was chosen are data
(`protocols/*/readings.toml`), and so is what each profile takes (`manifest.toml` there).
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Final

from reassure_spec.errors import BadUsage
from reassure_spec.protocols import list_folders, read_profiles


@dataclass(frozen=True, slots=True)
class Reading:
    """One disputed point: its dotted name, the values it can take and why the default is chosen."""

    name: str
    """Stable dotted name, as printed in reports and accepted on the command line."""
    values: tuple[str, ...]
    """The admissible values; the first is the default of the default profile."""
    why: str
    """Why the first value is the default."""
    source: str
    """The document and section that leave the point open."""


@dataclass(frozen=True, slots=True)
class Readings:
    """A choice of one value for every reading.

    A field is named like its reading, with `_` for `.` and `-`.
    """

    drop_slice: str = "inclusive"
    drop_evaluated: str = "before-expansion"
    drop_protects: str = "nothing"
    drop_order: str = "unordered"
    drop_reevaluated_on_failover: str = "no"
    top_recorded: str = "once-per-chain"
    request_persist: str = "child-first"
    request_conflict: str = "per-partition"
    request_same_target: str = "no-change"
    target_dead_replica: str = "wait"
    target_unknown_broker: str = "refuse"
    target_size: str = "unchecked"
    offline_drop: str = "wait"
    move_expand_first: str = "yes"
    move_recheck_before_stop: str = "no"
    move_cut_isr: str = "yes"
    move_refuses_partition: str = "missing"
    move_same_replicas: str = "as-list"
    move_dead_at_failover: str = "re-elect"
    move_interrupt: str = "remove-path"
    move_online_from: str = "in-sync"
    election_unclean: str = "no"
    election_preferred: str = "asked"
    election_order: str = "assignment"
    controller_fenced: str = "yes"
    insync_writer: str = "either"
    heal_redundancy: str = "assigned-live"
    heal_stale_task: str = "execute"
    heal_regenerate: str = "from-assignment"
    heal_replaces: str = "one-broker"
    legacy_rewrite: str = "ignored"
    legacy_original_replicas: str = "client"
    isr_members: str = "stored"
    hw_scope: str = "per-leader-term"
    hw_over_stored_isr: str = "no"
    hw_served_from: str = "at-once"
    isr_entry: str = "high-watermark"
    follower_truncation: str = "own-high-watermark"
    lag_credit: str = "two-cases"
    lag_initial: str = "now"
    lag_initial_leader_end: str = "zero"
    lag_clock_read: str = "before-end"

    def as_dict(self) -> dict[str, str]:
        """Return the choice keyed by dotted reading name, in the register's order."""
        return {reading.name: getattr(self, field_name(reading.name)) for reading in READINGS}


READINGS: Final[tuple[Reading, ...]] = tuple(
    Reading(said["name"], tuple(said["values"]), said["why"], said["source"])
    for folder in list_folders()
    for said in folder.read_tables("readings.toml").get("reading", ())
)
"""Every reading, in the order in which reports list them."""


def field_name(reading_name: str) -> str:
    """Return the field of `Readings` that holds the reading with this dotted name.

    >>> field_name("drop.reevaluated-on-failover")
    'drop_reevaluated_on_failover'
    """
    return reading_name.replace(".", "_").replace("-", "_")


PROFILES: Final[Mapping[str, Readings]] = MappingProxyType(
    {
        name: Readings(**{field_name(each): v for each, v in said.get("readings", {}).items()})
        for name, said in read_profiles()
    }
)
"""The profiles by name. A profile is nothing but its readings and the clauses that list it."""


BUILT_ON: Final[Mapping[str, str]] = MappingProxyType(
    {name: said["built-on"] for name, said in read_profiles() if "built-on" in said}
)
"""The profiles that stand on top of another one, all of whose clauses hold under them as well."""


class UnknownReading(BadUsage):
    """A reading or profile name, or the value of a reading, that the register does not have."""


def get_profile(name: str) -> Readings:
    """Return the readings of the named profile.

    Raises UnknownReading when there is no such profile; the message lists those there are.
    """
    try:
        return PROFILES[name]
    except KeyError:
        known = ", ".join(PROFILES)
        raise UnknownReading(f"there is no profile {name!r}; the profiles are: {known}") from None


def override_readings(readings: Readings, changes: Mapping[str, str]) -> Readings:
    """Return the readings with some points settled differently.

    `changes` maps dotted reading names to values. Raises UnknownReading for a name or a value that
    the register does not have.

    >>> override_readings(Readings(), {"drop.slice": "exclusive"}).drop_slice
    'exclusive'
    """
    register = {reading.name: reading for reading in READINGS}
    for name, value in changes.items():
        if name not in register:
            raise UnknownReading(
                f"there is no reading {name!r}; the readings are: {', '.join(register)}"
            )
        if value not in register[name].values:
            raise UnknownReading(
                f"reading {name} has no value {value!r}; it is one of: "
                f"{', '.join(register[name].values)}"
            )
    return replace(readings, **{field_name(name): value for name, value in changes.items()})


assert {field_name(reading.name) for reading in READINGS} == {f.name for f in fields(Readings)}
