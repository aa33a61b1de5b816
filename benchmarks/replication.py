"""The rule before KAFKA-4485 and its own, on the same brokers, under the document's two problems.

Three brokers with logs, in virtual time: what is measured is no speed but how long followers that
take all there is with every fetch are out of the in-sync set. A message takes `WAY_MS` from one
broker to another, so that a follower asks again only after more was written.

* *small requests*: one record each millisecond, for ever;
* *bursts*: the same for 600 ms, then nothing for 400 ms.

    python benchmarks/replication.py [VIRTUAL_SECONDS]

Prints a table, and draws when each follower was in sync: `docs/figures/replication-rules.svg`.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby, product
from pathlib import Path
from typing import Final

from reassure_conformance.adapter.driver import Driver
from reassure_conformance.adapter.replicating import ReplicatingCluster
from reassure_conformance.gate.replication.setting import TrialSetting
from reassure_conformance.gate.replication.trial import Trial
from reassure_controller.replication.rules import ReplicationRules, Rule
from reassure_controller.replication.serving import Leading
from reassure_spec.readings import get_profile
from reassure_zookeeper.server import Server

PICTURE: Final = Path(__file__).parents[1] / "docs" / "figures" / "replication-rules.svg"
BROKERS, (KEY,) = TrialSetting().brokers, TrialSetting().keys
LAG_MS_MAX: Final = 200
WAY_MS: Final = 2
LEADER: Final = 1
LOADS: Final[dict[str, Callable[[int], bool]]] = {
    "small requests": lambda _: True,
    "bursts": lambda now_ms: now_ms % 1_000 < 600,
}
"""By name: whether a record is written at a time."""
RULES: Final[tuple[Rule, ...]] = ("before", "lag")


@dataclass(slots=True)
class Course:
    """What was seen under one load and one rule."""

    load: str
    rule: Rule
    isr: list[frozenset[int]] = field(default_factory=list)
    """The stored in-sync set at the end of each millisecond."""
    behind: list[int] = field(default_factory=list)
    """By how many records the high watermark was behind the leader's end."""

    def share_out(self) -> float:
        """Return the share of the followers' time that they were out of the set."""
        followers = len(BROKERS) - 1
        return 1 - sum(len(isr) - 1 for isr in self.isr) / followers / len(self.isr)

    def changes(self) -> int:
        """Return how often the set was changed."""
        return sum(1 for _ in groupby(self.isr)) - 1


def run_course(trial: Trial, course: Course, seconds: int) -> None:
    """Let the brokers work for some virtual seconds."""
    stepped = trial.stepped
    sent_ms: dict[int, int] = {}
    for now_ms in range(1_000 * seconds):
        stepped.tick(1)
        if LOADS[course.load](now_ms):
            stepped.produce(LEADER, KEY, [b"x"], 1)
            stepped.network.deliver(stepped.network.waiting[-1].number)
        for packet in stepped.network.waiting:
            if now_ms - sent_ms.setdefault(packet.number, now_ms) >= WAY_MS:
                stepped.network.deliver(packet.number)
        waiting = {packet.source for packet in stepped.network.waiting} | {
            packet.target for packet in stepped.network.waiting
        }
        for broker in BROKERS:
            if broker != LEADER and f"broker-{broker}" not in waiting:
                stepped.fetch(broker)
        replica = stepped.replicas(LEADER).find(KEY)
        assert replica is not None and isinstance(replica.role, Leading)
        course.isr.append(frozenset(replica.role.view.isr))
        course.behind.append(replica.log.end_offset - replica.high_watermark)


def measure(seconds: int) -> Iterator[Course]:
    """Yield what is seen under each load and each rule."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Server.start() as server,
        Driver(server.hosts, server.log_dir, "/rules") as driver,
        ReplicatingCluster(server.hosts, BROKERS) as cluster,
    ):
        for number, (load, rule) in enumerate(product(LOADS, RULES)):
            rules = ReplicationRules(get_profile("kafka-4485"), rule, lag_ms_max=LAG_MS_MAX)
            trial = Trial(driver, cluster, Path(folder) / str(number), TrialSetting(), rules)
            course = Course(load, rule)
            run_course(trial, course, seconds)
            cluster.end()
            yield course


def draw(courses: list[Course]) -> str:
    """Return when the followers were in sync, as a picture: dark in, light out."""
    left, width, row = 190, 640, 34
    height = 60 + row * len(courses) + 30
    milliseconds = len(courses[0].isr)
    size = f'width="{left + width + 20}" height="{height}"'
    title = f"Followers in sync (dark), of {len(BROKERS) - 1}, limit {LAG_MS_MAX} ms"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        "<title>Who is in sync, and when</title>",
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="20" y="22" font-size="15">{title}</text>',
    ]
    for line, course in enumerate(courses):
        y = 44 + line * row
        parts.append(f'<text x="20" y="{y + 16}">{course.load}, {course.rule}</text>')
        at = 0
        for isr, group in groupby(course.isr):
            length = len(list(group))
            shade = ("#dde5ee", "#8aa5c4", "#27476e")[len(isr) - 1]
            x, w = left + at * width / milliseconds, length * width / milliseconds
            parts.append(
                f'<rect x="{x:.1f}" y="{y}" width="{w:.1f}" height="{row - 10}" fill="{shade}"/>'
            )
            at += length
    y = 44 + row * len(courses) + 8
    parts.append(f'<text x="{left}" y="{y}">0</text>')
    end = f'<text x="{left + width}" y="{y}" text-anchor="end">{milliseconds} ms</text>'
    return "\n".join([*parts, end, "</svg>"]) + "\n"


def main() -> None:
    """Measure, print the table, draw the picture."""
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    courses = []
    print(f"limit {LAG_MS_MAX} ms, {WAY_MS} ms each way, {seconds} virtual seconds")
    print(f"{'load':16}{'rule':8}{'out of sync':>12}{'changes':>9}{'mark behind':>13}")
    for course in measure(seconds):
        courses.append(course)
        behind = sum(course.behind) / len(course.behind)
        out = f"{100 * course.share_out():.1f} %"
        row = f"{course.load:16}{course.rule:8}{out:>12}{course.changes():>9}{behind:>13.1f}"
        print(row, flush=True)
    PICTURE.write_text(draw(courses), encoding="utf-8")
    print(PICTURE)


if __name__ == "__main__":
    main()
