"""What differs from trial to trial, and what comes of one."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from reassure_conformance.gate.replication.alphabet import BrokerStep
from reassure_conformance.gate.step_fields import (
    BadStep,
    format_partition,
    parse_partition,
    parse_replicas,
)
from reassure_judge.verdicts import Tally, Violation
from reassure_spec.observations import Observation
from reassure_spec.words import parse_number, spell_replicas
from reassure_spec.znodes import PartitionKey, ReplicaList, StateZnode, encode_topic, topic_path

Assignment = tuple[PartitionKey, ReplicaList]


AMENDED: Final = "amended"
"""Every amendment: what brokers ship with."""
EARLY_CREDIT: Final = "early-credit"
"""The same, but a new leader takes every follower for caught up, as the document may be read."""
AS_WRITTEN: Final = "as-written"
"""The document without amendments, which holds for one leader only: nobody dies."""
RULES: Final = (AMENDED, EARLY_CREDIT, AS_WRITTEN)


@dataclass(frozen=True, slots=True)
class TrialSetting:
    """What differs from trial to trial beside the steps."""

    rules: str = AMENDED
    """Which readings brokers go by."""
    min_insync_replicas: int = 1
    fetch_bytes: int = 1 << 20
    brokers: ReplicaList = (1, 2, 3)
    partitions: tuple[Assignment, ...] = ((("t", 0), (1, 2, 3)),)
    """The partitions that it begins with, and their replicas."""

    @property
    def keys(self) -> tuple[PartitionKey, ...]:
        """The partitions."""
        return tuple(key for key, _ in self.partitions)

    def as_arguments(self) -> dict[str, str]:
        """Return the arguments of the first line of a test case."""
        return {
            "minimum": str(self.min_insync_replicas),
            "fetch-bytes": str(self.fetch_bytes),
            "rules": self.rules,
            "on": spell_replicas(self.brokers),
            **{format_partition(key): spell_replicas(ids) for key, ids in self.partitions},
        }

    @classmethod
    def parse(cls, arguments: Mapping[str, str]) -> "TrialSetting":
        """Return the setting of these arguments. Raises BadData, ScenarioError."""
        given, usual = dict(arguments), cls()
        rules = given.pop("rules", usual.rules)
        minimum = parse_number("minimum", given.pop("minimum", "1"))
        size = parse_number("fetch-bytes", given.pop("fetch-bytes", str(usual.fetch_bytes)))
        brokers = parse_replicas(given.pop("on", "1,2,3"))
        partitions = tuple(
            (parse_partition(name), parse_replicas(ids)) for name, ids in given.items()
        )
        strangers = {one for _, ids in partitions for one in ids} - set(brokers)
        if rules not in RULES or strangers:
            raise BadStep(
                f"expected `minimum=N fetch-bytes=N rules={'|'.join(RULES)} on=IDS "
                f"TOPIC-N=IDS...` with replicas on these brokers, found {dict(arguments)}"
            )
        return cls(rules, minimum, size, brokers, partitions or usual.partitions)

    def encode_topics(self) -> dict[str, bytes]:
        """Return the znodes of the topics."""
        topics: dict[str, dict[int, ReplicaList]] = {}
        for (topic, number), replicas in self.partitions:
            topics.setdefault(topic, {})[number] = replicas
        return {topic_path(name): encode_topic(each) for name, each in topics.items()}


@dataclass(slots=True)
class TrialOutcome:
    """A trial that is over."""

    setting: TrialSetting
    steps: tuple[BrokerStep, ...]
    """Those that were possible, as they were carried out."""
    tally: Tally
    violations: tuple[Violation, ...]
    observed: tuple[tuple[Observation, ...], ...]
    """What each broker observed."""
    records: int
    """How many the client read in the end."""
    promised: int
    """How many of them it had been promised."""
    directory: Path
    chroot: str
    unrest: str = ""
    """Why the healed cluster did not come to rest, "" where it did."""

    @property
    def carried_out(self) -> tuple[BrokerStep, ...]:
        """The steps that were carried out, in order."""
        return self.steps

    def list_told(self) -> tuple[str, ...]:
        """Return each step that was carried out, as text."""
        return tuple(map(str, self.steps))

    def as_record(self) -> dict[str, Any]:
        """Return what failure.json holds beside the violations: the logs are there as files."""
        return {"steps": []}

    def moved_to(self, place: Path) -> "TrialOutcome":
        """Return it with violations that name the files of the trial where they are moved to."""
        was = self.directory

        def move(violation: Violation) -> Violation:
            file = Path(violation.file)
            inside = violation.file and file.is_relative_to(was)
            moved = str(place / file.relative_to(was)) if inside else violation.file
            return replace(violation, file=moved)

        return replace(self, directory=place, violations=tuple(map(move, self.violations)))


@dataclass(frozen=True, slots=True)
class StoredPartition:
    """What ZooKeeper holds of a partition."""

    assigned: ReplicaList
    state: StateZnode
    moves: bool
    """Whether it is being reassigned."""
