"""World `kafka-4485`, live: a leader with a clock, told to what the bundled brokers conclude with.

What happens to logs and clock is the model's; what the leader notes of its followers, and concludes
of them, are the values of the brokers' own functions (`reassure_controller.replication`). So the
words are the model's, and what they show is not.

Stories of elections have no clock of their own, and are told to brokers with logs (`leader_terms`).
"""

from dataclasses import replace
from typing import Any, Final

from reassure_conformance.protocols.kafka_4485.leader_terms import LiveElectionsWorld
from reassure_conformance.scenarios.live.stage import MakeStage, NotLive
from reassure_conformance.scenarios.scenario import Scenario
from reassure_conformance.scenarios.worlds.machine import MachineWorld
from reassure_controller.replication.followers import NEVER_MS as NEVER_NOTED_MS
from reassure_controller.replication.leading import (
    Leadership,
    begin,
    evaluate,
    note,
    propose_isr,
)
from reassure_controller.replication.rules import ReplicationRules, Rule
from reassure_model.protocols.kafka_4485 import NEVER_MS, Follower, compute_isr, end_at
from reassure_model.protocols.kafka_4485 import leader_clock as clock
from reassure_model.protocols.kafka_4485.leader_clock import read_clock_and_end
from reassure_model.protocols.kafka_4485.machine import MACHINE
from reassure_spec.readings import Readings
from reassure_spec.rooms import RefusedReading
from reassure_spec.words import Arguments

LIMIT: Final = "limit"
"""The argument of the worlds that are about a leader with a clock."""


class LiveClockWorld(MachineWorld):
    """A leader with a clock, as brokers have it."""

    def __init__(
        self, make_stage: MakeStage, profile: str, readings: Readings, arguments: Arguments
    ) -> None:
        super().__init__(MACHINE, profile, readings, arguments)
        rule: Rule = "before" if arguments.get("rule") == "before" else "lag"
        self._rules = ReplicationRules(readings, rule, int(arguments[LIMIT]))
        (name,) = self._states
        begun: clock.Watched = self._states[name]
        leader = begun.leader
        self._leader = begin(
            leader.replicas[0],
            leader.replicas,
            leader.isr,
            leader.end,
            leader.high_watermark,
            begun.now_ms,
            self._rules,
        )
        self._states[name] = self._look_at(begun)

    def _go(self, name: str, action: Any) -> str:
        watched: clock.Watched = self._states[name]
        done = self._pass(watched, action) if isinstance(action, clock.Pass) else None
        self._states[name] = self._take_one(watched, action) if done is None else done
        return ""

    def _take_one(self, watched: clock.Watched, action: clock.Action) -> clock.Watched:
        """Let the leader take part in one thing that happens. Raises NotPossible."""
        settings = clock.Settings(self._rules.lag_ms_max, self._rules.rule)
        after = clock.step(watched, action, settings, self._readings).state
        if isinstance(action, clock.Fetch):
            offset, end = watched.get_end(action.replica), self._end(watched)
            now_ms = watched.now_ms
            if action.read_ms is not None:
                now_ms, end = read_clock_and_end(watched.logs[0], *action.read_ms, self._readings)
            self._leader = note(self._leader, action.replica, offset, end, now_ms, self._rules)
            if self._rules.rule == "before":
                self._write()
        if isinstance(action, clock.Evaluate):
            self._evaluate(after)
        return self._look_at(after)

    def _evaluate(self, watched: clock.Watched) -> None:
        """Conclude, and write the in-sync set down, as often as something follows from that."""
        written = True
        while written:
            self._leader = evaluate(self._leader, self._end(watched), watched.now_ms, self._rules)
            written = self._write()
        if self._rules.rule == "lag":
            self._compare(watched)

    def _write(self) -> bool:
        """Write the in-sync set down where it should be another one; answer whether that was so."""
        before = set(self._leader.isr)
        self._leader = replace(self._leader, isr=propose_isr(self._leader, self._rules))
        return set(self._leader.isr) != before

    def _compare(self, watched: clock.Watched) -> None:
        """End the story where a stored in-sync set rightly is another one than the defined.

        The document defines it afresh each time. Of what is stored, who keeps up stays in it though
        the mark has passed it, and who has not fetched yet does not come in.
        """
        leader = self._leader
        ends = {leader.broker: self._end(watched)}
        ends |= {one: each.offset for one, each in leader.followers.items()}
        offsets = tuple(ends[one] for one in leader.replicas)
        mark = leader.high_watermark
        defined = set(compute_isr(leader.replicas, offsets, leader.pseudo_isr, mark))
        stored = set(leader.isr)
        stay = {one for one in stored - defined if one in leader.pseudo_isr}
        unheard = {one for one in defined - stored if one not in leader.heard}
        if stay | unheard and stored ^ defined == stay | unheard:
            raise NotLive(
                "the in-sync set as it is defined, where a leader has it stored",
                f"{sorted(defined)} by definition, {sorted(stored)} stored",
            )

    def _pass(self, watched: clock.Watched, action: clock.Pass) -> clock.Watched:
        """Let time pass, with a record, and perhaps a fetch, every millisecond."""
        replica, gap_ms = watched.followers[0], action.gap_ms
        behind_ms = gap_ms if action.behind_ms is None else action.behind_ms
        in_sync = entries = behind = 0
        for passed_ms in range(1, action.ms + 1):
            before = self._leader.pseudo_isr
            watched = self._take_one(watched, clock.Tick(1))
            watched = self._take_one(watched, clock.Write(action.records))
            if passed_ms % gap_ms == 0:
                recent = watched.logs[0][-behind_ms - 2 :]
                then = end_at(recent, watched.now_ms + gap_ms - behind_ms)
                taken = max(then - watched.get_end(replica), 0)
                watched = self._take_one(watched, clock.Fetch(replica, taken))
            watched = self._take_one(watched, clock.Evaluate())
            in_sync += replica in self._leader.isr
            entries += replica in self._leader.pseudo_isr and replica not in before
            behind += self._leader.high_watermark < self._end(watched)
        return replace(watched, passed=clock.Passed(action.ms, in_sync, entries, behind))

    def _end(self, watched: clock.Watched) -> int:
        return watched.logs[0][-1][1]

    def _look_at(self, watched: clock.Watched) -> clock.Watched:
        """Return what is true, with what the leader knows and concludes in its place."""
        return replace(watched, leader=_tell(self._leader, watched))


def _tell(leader: Leadership, watched: clock.Watched) -> Any:
    """Return what a leader knows and concludes, in the model's words."""
    order = {one: place for place, one in enumerate(leader.replicas)}
    noted = (leader.followers[one] for one in leader.replicas[1:])
    return replace(
        watched.leader,
        high_watermark=leader.high_watermark,
        pseudo_isr=leader.pseudo_isr,
        isr=tuple(sorted(leader.isr, key=order.__getitem__)),
        followers=tuple(
            Follower(
                each.offset,
                each.last_fetch_ms,
                each.last_fetch_leader_end,
                NEVER_MS if each.last_caught_up_ms == NEVER_NOTED_MS else each.last_caught_up_ms,
            )
            for each in noted
        ),
    )


def make_world(
    make_stage: MakeStage, profile: str, readings: Readings, arguments: Arguments
) -> MachineWorld:
    """Return the world: about a leader with a clock where there is a limit, or about elections."""
    kind = LiveClockWorld if LIMIT in arguments else LiveElectionsWorld
    return kind(make_stage, profile, readings, arguments)


def find_reason(scenario: Scenario) -> str:
    """Return why a scenario of the world cannot be told live, "" where it can."""
    try:
        ReplicationRules(scenario.readings)
    except RefusedReading as refused:
        return str(refused)
    return ""
