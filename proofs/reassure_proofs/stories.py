"""Stories: what a model's own steps lead to, every way within a scope.

A *tale* is a start, the steps that may follow (each an action of the model), how often some of them
may happen, and what must never be. All states that are reachable so are gone through breadth first,
so that the story found is a shortest one, and none means that there is none within the scope.

Stories are told in the commands of the scenarios, one for each action: what is found here is a
scenario as it stands (`reassure_proofs.counterexamples`). The theorems about stories are in
`reassure_proofs.story_theorems`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Final

from reassure_model import kafka_42, kafka_zk, kip_46, kip_236_legacy, topics
from reassure_model.copies import is_in_sync
from reassure_model.environment import Controller, Die, Failover, Join, Leave, Return
from reassure_model.kafka_4485 import invariants as replication_invariants
from reassure_model.kafka_4485 import replication
from reassure_model.kip_236 import batch, system
from reassure_model.kip_236.obligations import next_write
from reassure_model.kip_236.requests import Refusal, decide_request
from reassure_model.kip_236.system import Submit
from reassure_model.kip_236.writes import UpdateReassignment, WriteAssigned
from reassure_model.machine import Machine, find_machines
from reassure_model.outcome import Accepted
from reassure_model.search import find_story
from reassure_model.state_machines import ReplicaState, move_replica
from reassure_proofs.statement import Telling
from reassure_spec.readings import Readings, get_profile, override_readings
from reassure_spec.words import spell_replicas
from reassure_spec.znodes import LegacyEntry, PartitionKey, ReplicaList

Problem = Callable[[Any], str | None]
"""Says why a state is one that must never be, or None."""


@dataclass(frozen=True, slots=True)
class Tale:
    """Where stories begin, how they go on, and what none of them may reach."""

    opening: tuple[str, ...]
    """Commands of a scenario that lead to the start; the first makes the world."""
    start: Any
    successors: Callable[[Any], Iterable[tuple[Any, Any]]]
    """The actions that are looked at in a state, each with the state after it."""
    problem: Problem
    say: Callable[[Any], str]
    """An action as a command of a scenario."""
    budget: tuple[tuple[type, int], ...] = ()
    """How often each kind of action may happen; others as often as you like."""
    closing: tuple[str, ...] = ("problems",)
    """Commands that show how it ended."""
    readings: tuple[str, ...] = ()
    """Readings that are not those of the profile, as `name=value`."""


@cache
def find_tale(name: str) -> tuple[str, ...]:
    """Return the shortest story of a tale, one command for each step, and `=> why` at the end.

    Empty where what must never be is not reachable within the scope. Raises KeyError for a name
    there is not.
    """
    tale = TALES[name]()
    found = find_story(
        tale.start, tale.successors, lambda s: tale.problem(s) is not None, dict(tale.budget)
    )
    if found is None:
        return ()
    state = tale.start
    for action in found:
        state = next(after for each, after in tale.successors(state) if each == action)
    return (*map(tale.say, found), f"=> {tale.problem(state)}")


def tell_tale(name: str) -> Telling:
    """Return the whole story as a scenario; only the opening where there is none."""
    tale, story = TALES[name](), find_tale(name)
    commands = (*story[:-1], *tale.closing) if story else ()
    return Telling((*tale.opening, *commands), tale.readings)


def _spell(readings: Mapping[str, str] | None) -> tuple[str, ...]:
    return tuple(f"{name}={value}" for name, value in (readings or {}).items())


def _say(action: Any) -> str:
    """Tell what several worlds call alike."""
    match action:
        case Controller():
            return "step"
        case Join(replica):
            return f"join replica={replica}"
        case Leave(replica):
            return f"leave replica={replica}"
        case Die(broker):
            return f"die broker={broker}"
        case Return(broker):
            return f"return broker={broker}"
        case Failover():
            return "fail-over"
        case Submit(target):
            return f"submit target={spell_replicas(target)}"
        case _:
            return type(action).__name__.lower()


def _problem_of(machine: Machine[Any], name: str, readings: Readings) -> Problem:
    """Return what must never be, as a machine calls it."""
    return partial(machine.find_broken, machine.by_name[name], readings=readings)


# The first reassignment -------------------------------------------------------------------------

_KAFKA_42: Final = get_profile("kafka-42")
_MOVES: Final = find_machines()["kafka-42"]
_SHIPPED: Final = find_machines()["kafka-zk"]


def _move_successors(move: kafka_42.Move, readings: Readings) -> Iterator[tuple[Any, Any]]:
    without = ("append", "observe", "return")
    return _MOVES.iterate_successors(move, readings, {}, without)


def _move_tale(
    assigned: ReplicaList,
    target: ReplicaList,
    problem: str | Problem,
    readings: Mapping[str, str] | None = None,
    *,
    deaths: int = 0,
    failovers: int = 0,
    interrupts: int = 0,
) -> Tale:
    chosen = override_readings(_KAFKA_42, readings or {})
    brokers = tuple(sorted({*assigned, *target}))
    begun = kafka_42.make_move(assigned, frozenset(brokers))
    return Tale(
        (*_MOVES.vocabulary.say_opening(begun), _MOVES.say(kafka_42.Command(target))),
        replace(begun, path=target, wanted=target),
        partial(_move_successors, readings=chosen),
        _problem_of(_MOVES, problem, chosen) if isinstance(problem, str) else problem,
        _MOVES.say,
        ((Die, deaths), (Failover, failovers), (kafka_42.Interrupt, interrupts)),
        ("problems", "show"),
        _spell(readings),
    )


def _find_few_in_sync(move: kafka_42.Move) -> str | None:
    """Say so when step 5 has ended and fewer are in sync than the target has."""
    stopped = move.task is not None and move.task.step >= 6
    few = move.task is not None and len(move.isr) < len(move.task.target)
    return f"in sync {list(move.isr)}" if stopped and few else None


def _find_started_unassigned(move: kafka_42.Move) -> str | None:
    strays = sorted(move.running - set(move.assigned))
    return f"started and not assigned: {strays}" if strays and move.task is not None else None


Cutting = tuple[kafka_42.Move, frozenset[int]]
"""The move, and who was taken out of the in-sync set in step 5."""


def _find_next_cut(move: kafka_42.Move, readings: Readings) -> frozenset[int]:
    """Return who is taken out of the in-sync set next, for step 5."""
    effect = kafka_42.next_effect(move, readings)
    if not isinstance(effect, kafka_42.WriteLeader) or effect.step != 5:
        return frozenset()
    return frozenset(move.isr) - frozenset(effect.isr)


def _cut_successors(cutting: Cutting, readings: Readings) -> Iterator[tuple[Any, Cutting]]:
    move, cut = cutting
    for action, after in _move_successors(move, readings):
        acts = isinstance(action, Controller)
        yield action, (after, cut | _find_next_cut(move, readings) if acts else cut)


def _find_second_cut(cutting: Cutting, readings: Readings) -> str | None:
    """Say so when a replica that was cut is to be cut once more."""
    move, cut = cutting
    again = sorted(cut & _find_next_cut(move, readings))
    return f"in sync {list(move.isr)}, {again[0]} is to be cut again" if again else None


def _cut_tale(readings: Mapping[str, str]) -> Tale:
    tale = _move_tale((1,), (2,), "stray", readings)
    chosen = override_readings(_KAFKA_42, readings)
    return replace(
        tale,
        start=(tale.start, frozenset()),
        successors=partial(_cut_successors, readings=chosen),
        problem=partial(_find_second_cut, readings=chosen),
    )


def _states_successors(
    pair: tuple[kafka_42.Move, Any, bool], readings: Readings
) -> Iterator[tuple[Any, Any]]:
    """Follow the replica states in the controller's memory beside the move."""
    move, states, _ = pair
    for action, after in _move_successors(move, readings):
        refused: tuple[str, ...] = ()
        known = states
        if isinstance(action, Failover):
            known = kafka_42.start_replica_states(after)
        elif isinstance(action, Die):
            known, _ = kafka_42.move_replica_states(states, action, readings)
        elif isinstance(action, Controller):
            effect = kafka_42.next_effect(move, readings)
            assert effect is not None
            known, refused = kafka_42.move_replica_states(states, effect, readings)
        yield action, (after, known, bool(refused))


def _replica_states_tale(
    readings: Mapping[str, str] | None = None, *, deaths: int = 0, failovers: int = 0
) -> Tale:
    tale = _move_tale((1,), (2,), "stray", readings, deaths=deaths, failovers=failovers)
    start = (tale.start, kafka_42.start_replica_states(tale.start), False)
    chosen = override_readings(_KAFKA_42, readings or {})
    return replace(
        tale,
        start=start,
        successors=partial(_states_successors, readings=chosen),
        problem=lambda pair: "a transition is refused" if pair[2] else None,
        closing=("replicas",),
    )


def _found_successors(
    pair: tuple[kafka_42.Move, bool], readings: Readings
) -> Iterator[tuple[Any, tuple[kafka_42.Move, bool]]]:
    """Note beside the move whether a new controller has found the target in sync."""
    move, found = pair
    for action, after in _move_successors(move, readings):
        ready = move.path is not None and is_in_sync(move, move.path)
        yield action, (after, found or (isinstance(action, Failover) and ready))


def _given_up_tale(readings: Mapping[str, str]) -> Tale:
    tale = _move_tale((1, 2), (3, 4), "stray", readings, deaths=1, failovers=1)

    def find_given_up(pair: tuple[kafka_42.Move, bool]) -> str | None:
        move, found = pair
        given_up = found and move.path is None and not kafka_42.is_complete(move)
        return f"given up with {list(move.isr)} in sync" if given_up else None

    return replace(
        tale,
        start=(tale.start, False),
        successors=partial(_found_successors, readings=override_readings(_KAFKA_42, readings)),
        problem=find_given_up,
    )


def _find_unwaited(move: kafka_42.Move) -> str | None:
    """Say so when no command waits for the path, and it is there."""
    return "nobody waits for the path" if move.path is not None and move.wanted is None else None


# States of replicas -----------------------------------------------------------------------------


def _state_successors(state: ReplicaState, profile: str) -> Iterator[tuple[Any, Any]]:
    for to in ReplicaState:
        if isinstance(move_replica(state, to, profile), Accepted):
            yield to, to


@cache
def find_stop_of_a_live_replica(profile: str) -> tuple[str, ...]:
    """Return the states on the way of a live replica to none, () where each way needs offline.

    As the text has it a replica is offline when its broker is down.
    """

    def successors(state: ReplicaState) -> Iterator[tuple[Any, Any]]:
        found = _state_successors(state, profile)
        return ((to, to) for to, _ in found if to is not ReplicaState.OFFLINE)

    gone = ReplicaState.NON_EXISTENT
    way = find_story(ReplicaState.ONLINE, successors, lambda s: s is gone, {})
    return () if way is None else tuple(to.name for to in way)


# Shipped controllers ----------------------------------------------------------------------------


def _shipped_tale(
    assigned: ReplicaList,
    target: ReplicaList,
    problem: str,
    calls: tuple[ReplicaList | None, ...] = (),
    *,
    entry: bool = False,
    alters: int = 1,
    deaths: int = 0,
    failovers: int = 0,
) -> Tale:
    brokers = tuple(sorted({*assigned, *target, *(r for call in calls for r in call or ())}))
    healthy = kafka_zk.make_shipped(assigned, frozenset(brokers))
    asked: Any = kafka_zk.WriteEntry(target) if entry else kafka_zk.Alter(target)
    begun = kafka_zk.step(healthy, asked)
    assert isinstance(begun, Accepted)
    chosen = get_profile("kafka-zk")
    return Tale(
        (*_SHIPPED.vocabulary.say_opening(healthy), _SHIPPED.say(asked)),
        begun.state,
        partial(
            _SHIPPED.iterate_successors,
            readings=chosen,
            sets={"targets": calls},
            without=("append", "return"),
        ),
        _problem_of(_SHIPPED, problem, chosen),
        _SHIPPED.say,
        ((kafka_zk.Alter, alters), (Die, deaths), (Failover, failovers)),
        ("problems", "show"),
    )


def _deletion_tale() -> Tale:
    start = replace(topics.make_topic((), frozenset({1})), is_asked=True)

    def successors(topic: topics.Topic) -> Iterator[tuple[Any, Any]]:
        actions: list[Any] = [topics.Ask(), Failover()]
        actions += [Controller()] if topics.next_effect(topic) is not None else []
        started = (k for k, s in topic.states if s is ReplicaState.DELETION_STARTED)
        actions += [topics.Answer(key) for key in started]
        for action in actions:
            outcome = topics.step(topic, action)
            assert isinstance(outcome, Accepted)
            yield action, outcome.state

    return Tale(
        ("world topics partitions=none brokers=1", "delete"),
        start,
        successors,
        topics.find_orphan_config,
        lambda a: {topics.Ask: "delete", topics.Answer: "answer"}.get(type(a)) or _say(a),
        ((topics.Ask, 1), (Failover, 1)),
        ("show",),
    )


# A change and its drop ---------------------------------------------------------------------------

_AMENDED: Final = get_profile("kip-236-amended")
Changing = tuple[system.System, int, bool]
"""The partition, how many targets were asked for, and whether the drop of the last is done."""


def _change_successors(
    changing: Changing, targets: Sequence[ReplicaList]
) -> Iterator[tuple[Any, Changing]]:
    """Yield what may happen to a partition that is asked for one target after another."""
    state, asked, dropped = changing
    for action in system.enabled(state, _AMENDED, targets[asked : asked + 1]):
        if isinstance(action, Leave | Return):
            continue
        outcome = system.step(state, action, _AMENDED)
        assert isinstance(outcome, Accepted)  # whatever is possible keeps the rules
        owed = next_write(state.partition, state.around, _AMENDED)
        done = dropped
        if isinstance(action, Controller) and owed is not None:
            ends = isinstance(owed.write, WriteAssigned) and owed.clause == "drop.carried-out"
            done = ends or (dropped and not isinstance(owed.write, UpdateReassignment))
        yield action, (outcome.state, asked + isinstance(action, Submit), done)


def _find_second_drop(changing: Changing) -> str | None:
    """Say so when a drop is owed though that of the same change is done."""
    state, _, dropped = changing
    owed = next_write(state.partition, state.around, _AMENDED)
    if not dropped or owed is None or owed.clause != "drop.carried-out":
        return None
    left = owed.write.assigned if isinstance(owed.write, WriteAssigned) else ()
    return f"assigned [{spell_replicas(left)}] ({owed.clause})"


def _change_tale(assigned: ReplicaList, targets: tuple[ReplicaList, ...]) -> Tale:
    brokers = tuple(sorted({*assigned, *(replica for target in targets for replica in target)}))
    online = system.step(system.make_system(assigned, brokers), Controller(), _AMENDED)
    assert isinstance(online, Accepted)
    return Tale(
        (
            f"world kip-236 brokers={spell_replicas(brokers)}",
            f"topic assigned={spell_replicas(assigned)} online",
        ),
        (online.state, 0, False),
        partial(_change_successors, targets=targets),
        _find_second_drop,
        _say,
        ((Die, 1), (Failover, 1)),
        ("owed",),
    )


# Logs across elections --------------------------------------------------------------------------

_LOGS: Final = {
    "hw.over-stored-isr": "yes",
    "hw.served-from": "end-at-election",
    "isr.entry": "end-at-election",
    "follower.truncation": "common-prefix",
}
"""The four amendments."""


def _log_successors(
    state: replication.Replication, readings: Readings, records: int, elections: int, calm: bool
) -> Iterator[tuple[Any, Any]]:
    """Yield what may happen; where it is `calm` nobody lags, and the leader may be re-elected."""
    verbs = replication.Verb
    for action in replication.enabled(state):
        full = len(state.replicas[state.leader].log) >= records
        if action.verb in (verbs.REMOVE, verbs.REFRESH, verbs.CATCH_UP):
            continue
        if (action.verb is verbs.APPEND and full) or (action.verb is verbs.LAG and calm):
            continue
        if action.verb is verbs.ELECT and (
            state.leader_epoch >= elections or (action.broker == state.leader and not calm)
        ):
            continue
        outcome = replication.step(state, action, readings)
        if isinstance(outcome, Accepted):
            after, term = outcome.state, outcome.state.term
            version = after.version - term.version
            yield action, replace(after, version=version, term=replace(term, version=0))


def _say_log(action: Any) -> str:
    verb = action.verb.value
    alone = action.verb in replication.LEADER_ALONE
    return verb if alone else f"{verb} broker={action.broker}"


def _log_tale(
    problem: Problem,
    readings: Mapping[str, str] | None = None,
    *,
    brokers: int = 2,
    records: int = 1,
    elections: int = 2,
    calm: bool = False,
    profile: str = "kafka-4485",
) -> Tale:
    chosen = override_readings(get_profile(profile), readings or {})
    return Tale(
        (f"world kafka-4485 brokers={brokers}",),
        replication.make_replication(brokers),
        partial(_log_successors, readings=chosen, records=records, elections=elections, calm=calm),
        problem,
        _say_log,
        (),
        ("show",),
        _spell(readings),
    )


# The old znode ----------------------------------------------------------------------------------

_KEY: Final[PartitionKey] = ("t", 0)
_OLD_ZNODE: Final = get_profile("kip-236-legacy")


def _write_entry(target: ReplicaList) -> kip_236_legacy.WriteLegacy:
    return kip_236_legacy.WriteLegacy((LegacyEntry(_KEY, target, None),))


def _legacy_successors(
    state: kip_236_legacy.Legacy, others: Sequence[kip_236_legacy.Action], readings: Readings
) -> Iterator[tuple[Any, Any]]:
    actions: list[kip_236_legacy.Action] = [*others, Failover()]
    if kip_236_legacy.next_effect(state, readings) is not None:
        actions.append(Controller())
    inner = system.enabled(state.as_system(_KEY), readings)
    actions += [batch.On(_KEY, action) for action in inner if isinstance(action, Join)]
    for action in actions:
        outcome = kip_236_legacy.step(state, action, readings)
        if isinstance(outcome, Accepted):
            yield action, outcome.state


def _say_legacy(action: Any) -> str:
    match action:
        case kip_236_legacy.WriteLegacy(entries):
            return f'write entries="t-0:{spell_replicas(entries[0].target)}"'
        case kip_236_legacy.Ask(assignments):
            return f'ask entries="t-0:{spell_replicas(assignments[0][1])}"'
        case batch.On(_, Join(replica)):
            return f"join partition=t-0 replica={replica}"
        case _:
            return _say(action)


def _legacy_tale(
    problem: Problem,
    others: Sequence[kip_236_legacy.Action],
    *,
    failovers: int = 0,
    writes: int = 1,
) -> Tale:
    born = kip_236_legacy.make_legacy({_KEY: (1,)}, frozenset({1, 2, 3}))
    online = kip_236_legacy.step(born, Controller(), _OLD_ZNODE)
    assert isinstance(online, Accepted)
    return Tale(
        ("world kip-236-legacy brokers=1,2,3", "partition name=t-0 assigned=1"),
        online.state,
        partial(_legacy_successors, others=tuple(others), readings=_OLD_ZNODE),
        problem,
        _say_legacy,
        ((kip_236_legacy.WriteLegacy, writes), (kip_236_legacy.Ask, 1), (Failover, failovers)),
        ("show",),
    )


def _find_entry_to_clean_up(state: kip_236_legacy.Legacy) -> str | None:
    """Say so when nobody but the controller's cleaning up would remove a refused entry."""
    due = kip_236_legacy.next_effect(state, _OLD_ZNODE)
    flight = state.get(_KEY).reassignment
    refused = isinstance(due, kip_236_legacy.RewriteZnode) and due.why == "nothing to wait for"
    other = flight is not None and not flight.legacy
    return "the entry is refused and still there" if refused and other else None


def _find_refused_route(state: kip_236_legacy.Legacy) -> str | None:
    """Say so when a request to go back is refused for the route by which the move was begun."""
    partition = state.get(_KEY)
    if not partition.requests or partition.reassignment is None:
        return None
    around = state.as_system(_KEY).around
    decision = decide_request(partition.requests[0], partition, around, _OLD_ZNODE)
    if not isinstance(decision, Refusal) or decision.clause != "request.conflict.legacy-flag":
        return None
    return f"refused by {decision.clause}: {decision.reason}"


def _find_unseen(state: kip_236_legacy.Legacy) -> str | None:
    """Say so when the controller waits and an entry was never looked at."""
    if state.entries is None or kip_236_legacy.next_effect(state, _OLD_ZNODE) is not None:
        return None
    seen = [(entry.key, entry.target) for entry in state.seen or ()]
    unseen = [list(e.target) for e in state.entries if (e.key, e.target) not in seen]
    return f"the controller waits and has not seen: {unseen[0]}" if unseen else None


# Healing ----------------------------------------------------------------------------------------

_CONFIG: Final = kip_46.HealingConfig()
_KIP_46: Final = get_profile("kip-46")


def _healing_successors(cluster: kip_46.Cluster) -> Iterator[tuple[Any, Any]]:
    for action in kip_46.enabled(cluster, _CONFIG, _KIP_46):
        outcome = kip_46.step(cluster, action, _CONFIG, _KIP_46)
        assert isinstance(outcome, Accepted)  # only an operator's task can be refused
        yield action, outcome.state


def _say_healing(action: Any) -> str:
    match action:
        case kip_46.Tick(milliseconds):
            return f"tick ms={milliseconds}"
        case kip_46.Finish((topic, number)):
            return f"finish partition={topic}-{number}"
        case _:
            return _say(action)


def _healing_tale(
    assignments: Sequence[ReplicaList],
    problem: Problem,
    *,
    brokers: int = 3,
    deaths: int = 1,
    returns: int = 0,
    failovers: int = 0,
    ticks: int = 1,
) -> Tale:
    keys = {("t", number): replicas for number, replicas in enumerate(assignments)}
    ids = range(1, brokers + 1)
    return Tale(
        (
            f"world kip-46 racks={spell_replicas(ids)}",
            *(f"partition name=t-{n} replicas={spell_replicas(r)}" for (_, n), r in keys.items()),
        ),
        kip_46.make_cluster(dict.fromkeys(ids), keys),
        _healing_successors,
        problem,
        _say_healing,
        ((Die, deaths), (Return, returns), (Failover, failovers), (kip_46.Tick, ticks)),
        ("show",),
    )


def _find_stopped_queue(cluster: kip_46.Cluster) -> str | None:
    """Say so when the broker that a running task copies to is dead and another task waits."""
    running = kip_46.find_running(cluster)
    if running is None or kip_46.next_effect(cluster, _CONFIG, _KIP_46) is not None:
        return None
    hosted = ((kip_46.get_hosted(cluster, key), target) for key, target in running.assignments)
    new = [r for h, target in hosted for r in target if h is not None and r not in h.assigned]
    dead = [replica for replica in new if replica not in cluster.live]
    return f"{dead[0]} is dead and a task waits behind it" if dead and cluster.tasks[1:] else None


def _find_dead_in_task(cluster: kip_46.Cluster) -> str | None:
    """Say so when the controller is about to make a task that names a dead broker."""
    due = kip_46.next_effect(cluster, _CONFIG, _KIP_46)
    for task in due.pending if isinstance(due, kip_46.Generate) else ():
        for _, target in task:
            dead = [replica for replica in target if replica not in cluster.live]
            if dead:
                return f"the task for {list(target)} names {dead[0]}, which is dead"
    return None


def _find_two_meanings(cluster: kip_46.Cluster) -> str | None:
    strict = override_readings(_KIP_46, {"heal.redundancy": "isr-full"})
    for task in cluster.tasks:
        loose = kip_46.is_redundant(cluster, task, _KIP_46)
        if loose != kip_46.is_redundant(cluster, task, strict):
            return f"task {task.number} is cancelled under one meaning only"
    return None


def _find_made_twice(cluster: kip_46.Cluster) -> str | None:
    made = [task.assignments for task in cluster.tasks]
    return "the same task stands twice" if len(set(made)) < len(made) else None


# All tales --------------------------------------------------------------------------------------

_CLEAN: Final = {"election.unclean": "no"}


def _amended_without(name: str) -> dict[str, str]:
    """Return three of the four amendments."""
    return {reading: value for reading, value in _LOGS.items() if reading != name}


_COMMITTED: Final = replication_invariants.INVARIANTS["log.committed-kept"]
_MEMBERS: Final = replication_invariants.INVARIANTS["isr.stored.holds-committed"]
_MONOTONE: Final = replication_invariants.INVARIANTS["hw.consumer.monotone"]


def _find_lagging_member(state: replication.Replication) -> str | None:
    left = sorted(state.isr - state.term.pseudo_isr)
    return f"{left[0]} lags and is stored in sync" if left else None


TALES: Final[Mapping[str, Callable[[], Tale]]] = {
    "stopped-replica-in-sync": lambda: _move_tale((1,), (2,), "deleted-in-sync"),
    "stopped-replica-elected": lambda: _move_tale((1, 2), (2, 3), "empty-leader", _CLEAN, deaths=1),
    "leader-stopped": lambda: _move_tale(
        (1, 2), (3, 4), "stopped-leader", {**_CLEAN, "move.cut-isr": "yes"}, deaths=1
    ),
    "outside-assigned": lambda: _move_tale((1,), (2,), "outside-assigned"),
    "given-up-half-way": lambda: _move_tale(
        (1, 2), (3, 4), "emptied-assignment", deaths=1, failovers=1
    ),
    "stray": lambda: _move_tale((1, 2), (3, 4), "stray", deaths=1, failovers=1),
    "killed-command": lambda: _move_tale(
        (1,), (2,), "emptied-assignment", failovers=1, interrupts=1
    ),
    "few-in-sync": lambda: _move_tale(
        (1, 2), (3, 4), _find_few_in_sync, {**_CLEAN, "move.cut-isr": "yes"}, deaths=1
    ),
    "started-unassigned": lambda: _move_tale((1,), (2,), _find_started_unassigned),
    "replica-states": lambda: _replica_states_tale(failovers=1),
    "new-led": lambda: _replica_states_tale(deaths=1),
    "not-online": lambda: _replica_states_tale({"move.online-from": "assigned"}),
    "given-up": lambda: _given_up_tale({"move.dead-at-failover": "refuse"}),
    "path-left": lambda: _move_tale(
        (1,), (2,), _find_unwaited, {"move.interrupt": "log-only"}, interrupts=1
    ),
    "cut-again": lambda: _cut_tale({"move.cut-isr": "yes"}),
    "cancel-deletes-last-copy": lambda: _shipped_tale(
        (1,), (2, 3), "deleted-in-sync", (None,), deaths=1
    ),
    "change-deletes-last-copy": lambda: _shipped_tale(
        (1,), (3,), "deleted-in-sync", ((2,),), deaths=1
    ),
    "deleted-elected": lambda: _shipped_tale(
        (1,), (2, 3), "empty-leader", (None, (2,)), alters=2, deaths=1
    ),
    "cancelled-in-sync": lambda: _shipped_tale(
        (1,), (2, 3), "outside-assigned", (None,), failovers=1
    ),
    "cancelled-runs": lambda: _shipped_tale((1,), (2,), "stray", (None,), failovers=1),
    "entry-for-ever": lambda: _shipped_tale((1,), (2, 2), "entry-for-ever", entry=True),
    "empty-entry": lambda: _shipped_tale((1,), (), "emptied-assignment", entry=True),
    "nobody-leads": lambda: _shipped_tale((1, 2), (3, 4), "leaderless", ((2, 4),), deaths=1),
    "orphan-configuration": _deletion_tale,
    "committed-lost": lambda: _log_tale(_COMMITTED),
    "mark-as-written": lambda: _log_tale(_MONOTONE),
    "mark-gone-back": lambda: _log_tale(_MONOTONE, _amended_without("hw.served-from")),
    "stale-entry": lambda: _log_tale(
        _MEMBERS, _amended_without("isr.entry"), brokers=3, elections=1
    ),
    "member-emptied": lambda: _log_tale(
        _MEMBERS, _amended_without("follower.truncation"), brokers=3, elections=1
    ),
    "member-emptied-in-calm": lambda: _log_tale(_MEMBERS, calm=True, elections=1),
    "one-more-dropped": lambda: _change_tale((2,), ((1, 4), (1, 3))),
    "foreign-records": lambda: _log_tale(_MEMBERS, {**_LOGS, "follower.truncation": "leader-end"}),
    "stored-has-memory": lambda: _log_tale(_find_lagging_member),
    "refused-entry": lambda: _legacy_tale(
        _find_entry_to_clean_up, (kip_236_legacy.Ask(((_KEY, (2,)),)), _write_entry((3,)))
    ),
    "other-route": lambda: _legacy_tale(
        _find_refused_route, (kip_236_legacy.Ask(((_KEY, (1,)),)), _write_entry((2,)))
    ),
    "rewrite-unseen": lambda: _legacy_tale(
        _find_unseen, (_write_entry((2,)), _write_entry((3,))), writes=2
    ),
    "live-removed": lambda: _healing_tale(
        ((1, 2),),
        partial(kip_46.find_live_removed, config=_CONFIG, readings=_KIP_46),
        deaths=2,
        returns=1,
    ),
    "queue-stopped": lambda: _healing_tale(
        ((1, 2), (1, 2)), _find_stopped_queue, brokers=4, deaths=2
    ),
    "dead-in-task": lambda: _healing_tale(((1, 2),), _find_dead_in_task, deaths=2),
    "two-meanings": lambda: _healing_tale(((1, 2),), _find_two_meanings, returns=1),
    "made-twice": lambda: _healing_tale(((1, 2),), _find_made_twice, failovers=1),
    "made-again": lambda: _healing_tale(((1, 2),), _find_made_twice, deaths=2, ticks=2),
}
"""Every tale by name, made when it is asked for."""
