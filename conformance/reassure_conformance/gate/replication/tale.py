"""Tales: what is done to brokers with logs, as scripts that a person can read and write.

    # Why this tale is told, in comment lines.
    # violates: log.committed-kept
    world brokers minimum=1 fetch-bytes=1048576 rules=amended on=1,2,3 t-0=1,2,3

    produce 1 with acks -1 to 1
    deliver all

A tale is carried out leniently, as a story is: what is not possible when its turn comes is skipped.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from reassure_conformance.gate.replication.alphabet import BrokerStep, format_step, parse_step
from reassure_conformance.gate.replication.setting import RULES, TrialSetting
from reassure_conformance.gate.step_fields import BadStep, format_partition, parse_partition
from reassure_conformance.script import (
    ScriptBlock,
    ScriptFile,
    format_script,
    list_shipped,
    parse_script,
    read_scripts,
)
from reassure_spec.errors import BadData
from reassure_spec.words import ScenarioError, parse_number, parse_replicas, spell_replicas

WORLD: Final = "brokers"


@dataclass(frozen=True, slots=True)
class BrokersCase:
    """A setting, and steps."""

    name: str
    setting: TrialSetting
    steps: tuple[BrokerStep, ...]
    violates: str = ""
    """The clause that it showed broken when it was saved, "" where none."""
    why: tuple[str, ...] = field(default=(), compare=False)
    """Comment lines, without the mark."""


def format_tale(tale: BrokersCase) -> str:
    """Return the text of a tale; `parse_tale` reads it back."""
    setting = tale.setting
    told = {
        "minimum": setting.min_insync_replicas,
        "fetch-bytes": setting.fetch_bytes,
        "rules": setting.rules,
        "on": spell_replicas(setting.brokers),
        **{format_partition(key): spell_replicas(ids) for key, ids in setting.partitions},
    }
    world = " ".join((WORLD, *(f"{name}={value}" for name, value in told.items())))
    violates = (tale.violates,) if tale.violates else ()
    return format_script(tale.why, {"violates": violates}, world, map(format_step, tale.steps))


def parse_tale(text: str, origin: str) -> BrokersCase:
    """Return the tale of this text. Raises ScenarioError with file and line."""
    return _make_tale(parse_script(text, origin))


def make_tale(lines: Sequence[str]) -> BrokersCase:
    """Return the tale of these lines, its heading first."""
    heading, *steps = lines
    return parse_tale("\n".join((heading, "", *steps)), "aim")


def _make_tale(script: ScriptFile) -> BrokersCase:
    if script.world != WORLD:
        raise ScenarioError(f"{script.origin}: expected `world {WORLD}`, found {script.world!r}")
    first, *others = script.blocks
    return BrokersCase(
        script.name,
        _read_setting(script, first),
        tuple(_read_step(script, block) for block in others),
        script.get_field("violates"),
        script.why,
    )


def _read_setting(script: ScriptFile, first: ScriptBlock) -> TrialSetting:
    given = {name: value for name, value in first.arguments.items() if name != WORLD}
    usual, place = TrialSetting(), f"{script.origin}:{first.line}"
    rules = given.pop("rules", usual.rules)
    try:
        minimum = parse_number("minimum", given.pop("minimum", "1"))
        size = parse_number("fetch-bytes", given.pop("fetch-bytes", str(usual.fetch_bytes)))
        brokers = parse_replicas("on", given.pop("on", "1,2,3"))
        partitions = tuple(
            (parse_partition(name), parse_replicas(name, ids)) for name, ids in given.items()
        )
    except (ScenarioError, BadData) as bad:
        raise ScenarioError(f"{place}: {bad}") from None
    strangers = {one for _, ids in partitions for one in ids} - set(brokers)
    if rules not in RULES or strangers:
        raise ScenarioError(
            f"{place}: expected `minimum=N fetch-bytes=N rules={'|'.join(RULES)} on=IDS "
            f"TOPIC-N=IDS...` with replicas on these brokers, found {first.text!r}"
        )
    return TrialSetting(rules, minimum, size, brokers, partitions or usual.partitions)


def _read_step(script: ScriptFile, block: ScriptBlock) -> BrokerStep:
    try:
        return parse_step(block.text)
    except BadStep as bad:
        raise ScenarioError(f"{script.origin}:{block.line}: {bad}") from None


def read_tales(folder: Path) -> Iterator[BrokersCase]:
    """Yield the tales of a folder, by name. Raises ScenarioError, OSError."""
    return map(_make_tale, read_scripts(folder))


def shipped_tales() -> Iterator[BrokersCase]:
    """Yield the tales that come with the package, by name."""
    return map(_make_tale, list_shipped("reassure_conformance.gate.replication", "tales"))
