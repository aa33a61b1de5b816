"""One cluster under test, and what was done to it."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from reassure_conformance.gate import steps as s
from reassure_conformance.gate.events import Event
from reassure_conformance.gate.moment import ClusterMoment
from reassure_conformance.gate.story import Story
from reassure_judge.live import LiveCluster
from reassure_judge.live_events import ClusterView
from reassure_judge.messages import Told, ToldStates
from reassure_judge.verdicts import Violation
from reassure_spec.znodes import PartitionKey
from reassure_zookeeper.transactions import Transaction

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Done:
    """What became of one step."""

    step: s.ClusterStep
    result: str
    """`ok`, `refused`, `unknown` or `skipped`."""
    why: str
    """Why it was skipped, "" where it was not."""
    transactions: int
    """How many transactions of this cluster the log shows since the step before."""
    after_zxid: int
    """The last transaction before the step, 0 where there was none."""


@dataclass(slots=True)
class Example:
    """One cluster in a chroot of its own, and what was done to it."""

    story: Story
    """The cluster, and the steps asked for so far."""
    chroot: str
    now: ClusterMoment
    live: LiveCluster
    """Judges what happens beside the log."""
    suffix: str = ""
    """What its topics' names end in, where the cluster lives on: nobody else's do."""
    done: list[Done] = field(default_factory=list)
    transactions: list[Transaction] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    """What counts against the verdict; advice that was not followed is with the harness."""
    excused: list[Violation] = field(default_factory=list)
    """Known failures that came up; the example ends with the first."""
    quiet: list[int] = field(default_factory=list)
    """The last zxid at each moment at which the cluster was quiescent."""
    history: list[Event] = field(default_factory=list)
    """All that happened, in order: what coverage goals are recognised in."""
    messages: list[Told | ToldStates] = field(default_factory=list)
    """What brokers received, and controllers said of states, in order."""
    unsettled: int = 0
    """How often the cluster did not become quiescent though nothing was held."""

    @property
    def carried_out(self) -> tuple[s.ClusterStep, ...]:
        """The steps that were really carried out, in order."""
        return tuple(done.step for done in self.done if done.result != "skipped")

    def list_told(self) -> Iterator[str]:
        """Yield each step as text, with what became of it."""
        for done in self.done:
            yield f"{done.step}  ({done.result}{': ' + done.why if done.why else ''})"

    def as_record(self) -> dict[str, Any]:
        """Return what failure.json holds beside the violations."""
        return {
            "brokers": list(self.story.brokers),
            "steps": [
                {
                    "step": str(done.step),
                    "result": done.result,
                    "why": done.why,
                    "transactions": done.transactions,
                    "after_zxid": done.after_zxid,
                }
                for done in self.done
            ],
            "quiet": self.quiet,
            "messages": [told.as_dict() for told in self.messages],
        }

    def rename(self, topic: str) -> str:
        """Return the name in ZooKeeper of a topic of the story."""
        return topic + self.suffix

    def find(self, key: PartitionKey) -> PartitionKey:
        """Return the name in ZooKeeper of a partition of the story."""
        return self.rename(key[0]), key[1]

    def show(self, view: ClusterView) -> ClusterView:
        """Return what the story has of a cluster: its own topics, by their names in it."""
        if not self.suffix:
            return view
        end = -len(self.suffix)

        def own(settings: dict[str, Value]) -> dict[str, Value]:
            return {name[:end]: v for name, v in settings.items() if name.endswith(self.suffix)}

        return replace(
            view,
            partitions={
                (topic[:end], number): partition
                for (topic, number), partition in view.partitions.items()
                if topic.endswith(self.suffix)
            },
            min_isr=own(view.min_isr),
            unclean=own(view.unclean),
        )

    def effective_steps(self) -> int:
        """Return the number of steps that were really carried out."""
        return sum(done.result in ("ok", "unknown") for done in self.done)
