"""What lines put each clause to the test, and which clauses none can."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_LEADER_AND_MARK: Final = "lead and evaluate"
_TIMED: Final = "lead with time_ms and lag_ms_max, fetch and evaluate with time_ms"

NEEDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "isr.pseudo.by-lag": _TIMED,
        "hw.minimum-of-pseudo-isr": "lead, fetch and evaluate",
        "hw.never-decreases": _LEADER_AND_MARK,
        "hw.at-most-leader-end": _LEADER_AND_MARK,
        "isr.member.at-or-above-hw": "lead, fetch and isr_write (or evaluate with isr)",
        "election.clean": "lead with isr_version, and isr_write or stored",
        "isr.change.leader-kept": "lead or isr_write",
        "lag.leader-none": "lead and evaluate",
        "lag.credit.caught-up": f"{_TIMED}, fetch with caught_up_ms",
        "lag.credit.last-fetch": f"{_TIMED}, fetch with caught_up_ms",
        "lag.noted-after-serving": f"{_TIMED}, fetch with caught_up_ms",
        "lag.estimate-never-short": f"{_TIMED}, fetch with caught_up_ms",
        "lag.clock-before-end": f"{_TIMED}, replica with time_ms",
        "lag.evaluated-in-time": _TIMED,
        "isr.pseudo.close-follower": f"{_TIMED}, replica with time_ms; a limit passed",
        "isr.entry.at-high-watermark": "lead, fetch, evaluate and isr_write",
        "isr.lagging-leaves": "lead, fetch, evaluate and isr_write",
        "isr.write.conditional": "lead with isr_version, and isr_write",
        "isr.entry.end-at-election": "lead, fetch and isr_write",
        "isr.stored.holds-committed": "serve, lead, and follow or isr_write",
        "hw.over-stored-isr": "lead, fetch, evaluate and isr_write",
        "hw.stall-bounded": f"{_TIMED}; a limit passed",
        "hw.acks-all.answered": f"{_LEADER_AND_MARK}, produce and answer",
        "hw.acks-all.answered-at-end": "lead, produce and answer, and follow or stopped",
        "hw.follower.from-leader": "replica of followers, and the leader's lead",
        "hw.restored-not-raised": "restored, replica, follow, lead and evaluate",
        "hw.served-from-end-at-election": "lead and serve",
        "hw.served-below": f"{_LEADER_AND_MARK}, serve",
        "hw.consumer.monotone": "serve",
        "fetch.epoch-fenced": "fetch with follower_epoch, or the follower's replica and follow",
        "follower.truncates-first": "follow and replica of followers",
        "follower.truncation.common-prefix": "restored, follow and replica of followers, lead",
        "log.committed-kept": "serve, and a lead of a later term",
        "epoch.replica.never-back": "any that a replica writes",
        "replica.stopped.silent": "stopped, and any that a replica writes",
        "replica.deleted.empty": "stopped and restored",
        "epoch.one-leader": "lead",
    }
)
"""By clause: the kinds of lines that put it to the test."""

LOGGED: Final = frozenset({"election.clean", "isr.change.leader-kept"})
"""Those of them that ZooKeeper's log puts to the test as well."""

UNJUDGED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "replica.order-obeyed": "no line says what was told and is not acted upon: `reassure test` "
        "looks at brokers that are at rest",
        "lag.definition": "it says what a word means: isr.pseudo.by-lag, isr.pseudo.close-follower "
        "and hw.stall-bounded are judged by it",
    }
)
"""By clause: why no line can show it kept or broken."""

ASKED: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "hw.over-stored-isr": ("hw.over-stored-isr", "yes"),
        "hw.served-from-end-at-election": ("hw.served-from", "end-at-election"),
        "isr.entry.end-at-election": ("isr.entry", "end-at-election"),
        "follower.truncation.common-prefix": ("follower.truncation", "common-prefix"),
        "hw.consumer.monotone": ("hw.scope", "across-clean-elections"),
        "lag.clock-before-end": ("lag.clock-read", "before-end"),
        "isr.write.conditional": ("isr.members", "stored"),
        "election.clean": ("isr.members", "stored"),
    }
)
"""By clause: the reading, and its value, under which alone it is asked for."""
