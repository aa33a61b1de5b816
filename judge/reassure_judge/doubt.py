"""What a controller or a leader may not have noticed yet, and how it may have seen the cluster.

ZooKeeper tells of a change a moment after it has happened. A broker whose registration changed
since the cluster was last known to rest (or, where nobody says when it rests, within the *grace*)
is *in doubt*: whoever wrote since may have acted on how it was before. The same goes for settings.

The history itself bounds the doubt:

* A controller reads who is registered, and with what settings, after it has won its term. A change
  that is older than the term is not in doubt for it. Leaders do not begin anew with a term.
* A broker that was registered once is known for ever: only its first registration can be news.
  ZooKeeper keeps the memory of it in `/config/brokers/ID`. Where there is no such znode,
  a controller elected later may take the broker for one that never was. In a history that does not
  begin at the beginning nobody can say of any broker that it never was.
* Where the cluster rests everything has been noticed.

That a controller wrote on one partition as if it had noticed does not say that it had when it
planned what it writes on another, so this bounds nothing.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product
from math import inf, prod
from typing import Any, Final, NamedTuple

from reassure_model.partition import Environment

GRACE_MS: Final = 30_000
"""How long after a change somebody may still act as if it had not happened, unless told otherwise:
a few of the session timeouts and retries of a cluster as it is set up by default."""
MOST_VIEWS: Final = 4096
"""How many views of the environment are tried for one write. Where there are more (above twelve
brokers in doubt that the partition names) and none of these allows the write, nobody can say
whether one does."""

_NOBODY: Final[frozenset[int]] = frozenset()


class Doubt(NamedTuple):
    """What whoever writes may have seen otherwise than it is."""

    brokers: frozenset[int] = _NOBODY
    """Brokers of which the acting controller may not know whether they are registered."""
    peers: frozenset[int] = _NOBODY
    """The same for a leader."""
    fresh: frozenset[int] = _NOBODY
    """Brokers of which the acting controller may never have heard."""
    strangers: bool = False
    """Whether brokers that nobody named in this history may be known all the same."""
    forgotten: frozenset[int] = _NOBODY
    """Brokers that are known, and of which ZooKeeper may hold nothing, as far as the acting
    controller has noticed."""
    earlier: tuple[Environment, ...] = ()
    """The environment with the settings of before."""
    disks: frozenset[int] = _NOBODY
    """Registered brokers that may have told the controller that their disk with this partition is
    dead."""
    returned: frozenset[int] = _NOBODY
    """Registered brokers that were gone in between, and that no controller has taken out of the
    partition's in-sync set since; Kafka's own controllers do, after the return as well."""
    called: bool = False
    """Whether a call may have asked for a leader that is not in sync."""

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Keep `CERTAIN` the one that it is, wherever a history goes on that was put aside."""
        return "CERTAIN" if self is CERTAIN else (Doubt, tuple(self))


CERTAIN: Final = Doubt()


class ChangeTime(NamedTuple):
    """When something changed last."""

    zxid: int
    time_ms: int


class Setting(NamedTuple):
    """What the settings of a topic were until they changed."""

    zxid: int
    time_ms: int
    topic: str
    before: Environment


class Changes:
    """What changed lately in one cluster."""

    def __init__(self) -> None:
        self._registrations: dict[int, ChangeTime] = {}
        self._first_named: dict[int, ChangeTime] = {}
        self._settings: list[Setting] = []
        self._settled_zxid: int | None = None
        self.answer = CERTAIN
        """What was answered last."""
        self.answer_until_ms: float = -inf
        """Up to which time the same answer is good, of whatever topic."""

    def note_registration(self, broker: int, change: ChangeTime) -> None:
        """Note that a broker came or went."""
        self.forget()
        self._registrations[broker] = change

    def note_first_name(self, broker: int, change: ChangeTime) -> None:
        """Note that there is a broker of which nothing was known."""
        self.forget()
        self._first_named[broker] = change

    def note_setting(self, setting: Setting) -> None:
        """Note that the settings of a topic changed."""
        self.forget()
        self._settings.append(setting)

    def settle(self, zxid: int) -> None:
        """Note that all that has happened up to here has been noticed."""
        self.forget()
        self._settled_zxid = zxid
        self._registrations.clear()
        self._first_named.clear()
        self._settings.clear()

    @property
    def is_settled(self) -> bool:
        """Whether somebody says when the cluster rests."""
        return self._settled_zxid is not None

    def forget(self) -> None:
        """Note that what was in doubt may not be so now: something changed, or a term began."""
        self.answer_until_ms = -inf

    def _is_news(self, change: ChangeTime | Setting, time_ms: int, grace_ms: int) -> bool:
        if self._settled_zxid is not None:
            return change.zxid > self._settled_zxid
        return time_ms - change.time_ms <= grace_ms

    def get_doubt(
        self,
        topic: str,
        time_ms: int,
        grace_ms: int,
        won_zxid: int,
        *,
        whole: bool,
        fleeting: frozenset[int],
        live: frozenset[int],
    ) -> Doubt:
        """Return what is in doubt now, for a controller whose term was won at `won_zxid`.

        `fleeting` are the brokers of which nothing is left in ZooKeeper while they are not `live`.
        """
        for changes in (self._registrations, self._first_named):
            for broker, change in list(changes.items()):
                if not self._is_news(change, time_ms, grace_ms):
                    del changes[broker]
        self._settings = [s for s in self._settings if self._is_news(s, time_ms, grace_ms)]
        registrations = self._registrations
        found = Doubt(
            frozenset(b for b, change in registrations.items() if change.zxid > won_zxid),
            frozenset(registrations),
            frozenset(b for b, change in self._first_named.items() if change.zxid > won_zxid),
            not whole,
            fleeting - (live - frozenset(registrations)),
            tuple(s.before for s in self._settings if s.topic == topic and s.zxid > won_zxid),
        )
        self.answer = CERTAIN if found == CERTAIN else found
        self.answer_until_ms = -inf if self._settings else inf
        news = (*registrations.values(), *self._first_named.values())
        if self._settled_zxid is None and news and not self._settings:
            self.answer_until_ms = min(change.time_ms for change in news) + grace_ms
        return self.answer


class Views:
    """The ways to see the environment other than as it is; iterate to get them.

    Only brokers that matter (`named`) are varied.
    """

    def __init__(
        self, around: Environment, doubt: Doubt, named: frozenset[int], *, by_leader: bool
    ) -> None:
        self._around = around
        self._doubt = doubt
        strangers = named - around.known if doubt.strangers else _NOBODY
        self._others = tuple(
            known
            for known in (
                around.known | strangers,
                around.known - ((doubt.forgotten & named) - around.live),
            )
            if known != around.known
        )
        """Who else may be known."""
        brokers = (doubt.peers if by_leader else doubt.brokers | doubt.fresh) & named
        self._options = {broker: self._list_options(broker) for broker in sorted(brokers)}

    def _list_options(self, broker: int) -> tuple[tuple[bool, bool], ...]:
        """Return the other ways (registered, known) to see a broker that is in doubt."""
        live = broker in self._around.live
        flipped = broker in self._doubt.brokers or broker in self._doubt.peers
        options = ((not live, True),) if flipped else ()
        if broker in self._doubt.fresh or broker in self._doubt.forgotten:
            unheard = ((False, False),)
            return (*options, *unheard)
        return options

    @property
    def complete(self) -> bool:
        """Whether all views are tried, rather than the first `MOST_VIEWS`."""
        ways = prod(1 + len(options) for options in self._options.values())
        ways *= (1 + len(self._doubt.earlier)) * (1 + len(self._others))
        return ways - 1 <= MOST_VIEWS

    def __iter__(self) -> Iterator[Environment]:
        """Yield the views, those first that differ in few brokers, at most `MOST_VIEWS`."""
        for number, view in enumerate(self._iterate()):
            if number == MOST_VIEWS:
                return
            yield view

    def _iterate(self) -> Iterator[Environment]:
        settings = [self._around]
        settings += [
            replace(
                earlier,
                live=self._around.live,
                known=self._around.known,
                controller_epoch=self._around.controller_epoch,
            )
            for earlier in self._doubt.earlier
        ]
        settings += [replace(s, known=known) for s in settings for known in self._others]
        yield from settings[1:]
        for few in range(1, len(self._options) + 1):
            for chosen in combinations(self._options, few):
                for seen in product(*(self._options[broker] for broker in chosen)):
                    for base in settings:
                        yield _see(base, dict(zip(chosen, seen, strict=True)))


def _see(around: Environment, seen: dict[int, tuple[bool, bool]]) -> Environment:
    """Return the environment with these brokers seen as (registered, known)."""
    others = frozenset(seen)
    live = frozenset(broker for broker, (registered, _) in seen.items() if registered)
    known = frozenset(broker for broker, (_, is_known) in seen.items() if is_known)
    return replace(around, live=(around.live - others) | live, known=around.known - others | known)
