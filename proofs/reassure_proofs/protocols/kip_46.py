"""Self-healing (KIP-46): what its own functions never do, on any brokers, records and tasks.

`next_for_tasks`, `choose_replacement`, `generate_tasks` and `next_effect` are the model's. Broker
ids, times and intervals are any integers; bounded are the lists: replicas of a partition, tasks,
brokers that are alive where the code goes through all of them. The readings are those by which the
document's own aims are reached: stale tasks are skipped, tasks are generated from the plan, and for
every broker that is due.
"""

# ruff: noqa: D205, D401  # the docstring of a claim is what it claims

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any, Final

from reassure_model.environment import Failover
from reassure_model.outcome import Accepted
from reassure_model.protocols.kip_46 import (
    Assignments,
    Cluster,
    Effect,
    HealingConfig,
    Hosted,
    RemoveTask,
    StartTask,
    Task,
    apply_effect,
    choose_replacement,
    compute_plan,
    generate_tasks,
    next_effect,
    next_for_tasks,
)
from reassure_model.protocols.kip_46.machine import step
from reassure_proofs.engine.formula import (
    Truth,
    all_of,
    any_of,
    distinct,
    implies,
    inside,
    member,
    negate,
    same,
)
from reassure_proofs.engine.statement import (
    LEMMA,
    NO_CONTROLLER,
    SET,
    THOROUGH,
    TRUTH,
    Claims,
    Hypothesis,
    Parameter,
    Shape,
    Values,
    choose_readings,
    given,
    ids,
    make_subject,
    says,
    shaped,
    word,
)
from reassure_spec.readings import Readings
from reassure_spec.znodes import PartitionKey

_PROFILE: Final = "kip-46"
AMENDMENTS: Final = ("heal.stale-task=skip", "heal.regenerate=from-plan", "heal.replaces=all-due")
"""The readings that the theorems need."""
_AMENDED: Final = choose_readings(_PROFILE, AMENDMENTS)
_KEYS: Final[tuple[PartitionKey, ...]] = (("t", 0), ("t", 1))
_EFFECTS_MAX: Final = 12
"""More effects than any run here has before its tasks are persisted."""

# The queue of tasks -----------------------------------------------------------------------------


def _make_queue(values: Values) -> Cluster:
    """Return one partition, and one task or two that would move it."""
    assigned, target = values["assigned"], values["target"]
    moving = target if values["moving"] == "yes" else None
    hosted = Hosted(_KEYS[0], assigned, values["isr"], moving)
    tasks = [Task(0, ((_KEYS[0], target),), values["automatic"])]
    if "later" in values:
        tasks.append(Task(1, ((_KEYS[0], values["later"]),)))
    return Cluster((), values["live"], (hosted,), tasks=tuple(tasks), next_number=len(tasks))


def look_at_queue(values: Values, readings: Readings = _AMENDED) -> tuple[str, Any, Any, Any]:
    """Return what is done with the first task, and the plan before and after, and what is moved."""
    cluster = _make_queue(values)
    effect = next_for_tasks(cluster, readings)
    after = cluster if effect is None else apply_effect(cluster, effect)
    word = effect.clause if isinstance(effect, RemoveTask) else type(effect).__name__
    plans = (compute_plan(cluster)[_KEYS[0]], compute_plan(after)[_KEYS[0]])
    return (word, *plans, after.partitions[0])


def _queue_shapes(longest: int) -> Iterator[Shape]:
    lengths = range(1, longest + 1)
    for assigned, target in product(lengths, lengths):
        shape = {
            "assigned": ids(assigned),
            "target": ids(target),
            "isr": ids(1),
            "automatic": TRUTH,
            "live": SET,
        }
        for moving in ("no", "yes"):
            yield {"moving": word(moving), **shape}
        later = {"later": ids(target)}
        yield {"moving": word("no"), **shape, **later}


def _starts(values: Values, result: Any) -> Truth:
    return (result[0] == StartTask.__name__) & values["automatic"]


def _is_there(values: Values) -> Truth:
    return same(values["assigned"], values["target"])


# Choosing and generating ------------------------------------------------------------------------


def _make_cluster(values: Values, partitions: tuple[Hosted, ...] = ()) -> Cluster:
    alive, gone = values["alive"], values["gone"]
    racks = dict.fromkeys((*alive, *gone))
    if values["racks"] == "known":
        racks |= {broker: f"rack-{place % 2}" for place, broker in enumerate(alive)}
        racks |= dict.fromkeys(gone, "rack-0")
    failed = tuple(zip(gone, values["since_ms"], strict=True))
    return Cluster(
        tuple(racks.items()), frozenset(alive), partitions, values.get("now_ms", 0), failed
    )


def choose(values: Values) -> Any:
    """Return who takes the place of the first replica."""
    load = dict(zip(values["alive"], values["load"], strict=True))
    replicas = values["assigned"]
    return choose_replacement(_make_cluster(values), replicas, replicas[0], load)


def _choice_shapes(longest: int) -> Iterator[Shape]:
    for replicas, alive, gone, racks in product(
        range(1, min(longest, 2) + 1), range(longest + 1), (0, 1), ("unknown", "known")
    ):
        yield {
            "racks": word(racks),
            "assigned": ids(replicas),
            "alive": ids(alive),
            "gone": ids(gone),
            "load": Parameter(alive),
            "since_ms": Parameter(gone),
        }


def _can_take_over(values: Values, broker: Any) -> Truth:
    return negate(member(broker, values["assigned"])) & negate(member(broker, values["gone"]))


def _hosted(values: Values) -> tuple[Hosted, ...]:
    lists = [values[name] for name in ("assigned", "assigned_too") if name in values]
    return tuple(Hosted(key, each, each) for key, each in zip(_KEYS, lists, strict=False))


def generate(values: Values, readings: Readings = _AMENDED) -> Any:
    """Return the replicas that the task for the first failed broker asks for, None without one."""
    cluster = _make_cluster(values, _hosted(values))
    config = HealingConfig(values["interval_ms"])
    tasks = generate_tasks(cluster, values["gone"][0], config, readings)
    return dict(tasks[0])[_KEYS[0]] if tasks else None


def _generate_shapes(longest: int) -> Iterator[Shape]:
    for replicas, alive, gone in product(range(1, longest + 1), range(1, 3), (1, 2)):
        yield {
            "racks": word("unknown"),
            "assigned": ids(replicas),
            "alive": ids(alive),
            "gone": ids(gone),
            "since_ms": Parameter(gone),
            "now_ms": Parameter(),
            "interval_ms": Parameter(),
        }


def _is_due(values: Values, broker: Any) -> Truth:
    return any_of(
        (broker == gone) & (values["interval_ms"] <= values["now_ms"] - since)
        for gone, since in zip(values["gone"], values["since_ms"], strict=True)
    )


# A failover at any moment -----------------------------------------------------------------------


def _run(cluster: Cluster, config: HealingConfig, readings: Readings) -> list[Cluster]:
    """Return the cluster after each effect until nothing is left to make or to record."""
    run = [cluster]
    for _ in range(_EFFECTS_MAX):
        effect: Effect | None = next_effect(run[-1], config, readings)
        if effect is None or isinstance(effect, StartTask | RemoveTask):
            return run
        run.append(apply_effect(run[-1], effect))
    raise AssertionError("the controller does not come to an end")


def heal_and_fail_over(
    values: Values, readings: Readings = _AMENDED
) -> tuple[Any, tuple[Any, ...], bool]:
    """Return the tasks without a failover, with one after each effect, and whether any were."""
    config = HealingConfig(values["interval_ms"])
    others = (*values["alive"], *values["assigned"], *values.get("assigned_too", ()))
    alive = tuple(broker for broker in others if broker != values["gone"][0])
    run = _run(_make_cluster({**values, "alive": alive}, _hosted(values)), config, readings)
    resumed = []
    for cluster in run:
        outcome = step(cluster, Failover(), config, readings)
        assert isinstance(outcome, Accepted)
        resumed.append(_list_tasks(_run(outcome.state, config, readings)[-1]))
    return _list_tasks(run[-1]), tuple(resumed), bool(run[-1].failed)


def _list_tasks(cluster: Cluster) -> tuple[Assignments, ...]:
    return tuple(task.assignments for task in cluster.tasks)


def _failover_shapes(longest: int) -> Iterator[Shape]:
    for first, second, alive in product(range(1, longest + 1), (0, 1), (1, 2)):
        if first + second + alive > longest + 2:
            continue
        too = {"assigned_too": ids(second)} if second else {}
        yield {
            "racks": word("unknown"),
            "assigned": ids(first),
            **too,
            "alive": ids(alive),
            "gone": ids(1),
            "since_ms": Parameter(1),
            "now_ms": Parameter(),
            "interval_ms": Parameter(),
        }


def _are_alike(first: Any, second: Any) -> Truth:
    """Return whether two runs made the same tasks, in the same order."""
    if len(first) != len(second):
        return False
    pairs = (
        (a, b)
        for mine, theirs in zip(first, second, strict=True)
        for a, b in zip(mine, theirs, strict=True)
    )
    return all_of(
        (key == other) and same(target, wanted) for (key, target), (other, wanted) in pairs
    )


# Theorems ---------------------------------------------------------------------------------------

_ELSEWHERE: Final = "the healing service is not part of this controller"

_healing: Final = partial(make_subject, hashable=True, shown=_ELSEWHERE)
_amended: Final = partial(_healing, profile=_PROFILE, changes=AMENDMENTS)
_QUEUED: Final = "the controller's look at the first task"
_QUEUES: Final = "one partition, lists of 1 to {} replicas, up to two tasks"
_FAILED: Final = "the run with a failover after each effect"
_FAILING: Final = (
    "one broker that fails, up to two others, partitions of 1 to {} replicas and of one, not all "
    "at their largest at once"
)

QUEUE: Final = _amended(
    *("heal-queue", look_at_queue, _QUEUED, _queue_shapes), bounded=_QUEUES, shown=NO_CONTROLLER
)
"""What the controller does with the first task."""
CHOICE: Final = _healing(
    *("heal-choice", choose, "the choice of a replacement", _choice_shapes),
    bounded="up to two replicas, up to {} live brokers and one that failed",
)
"""Who takes over from a broker that failed."""
GENERATED: Final = _amended(
    *("heal-generated", generate, "the task for a failed broker", _generate_shapes),
    bounded="one partition of 1 to {} replicas, up to two live brokers and two that failed",
)
"""The task that is made for a broker that failed."""
FAILOVER: Final = _amended(
    *("heal-failover", heal_and_fail_over, _FAILED, _failover_shapes), bounded=_FAILING
)
"""A controller that fails at any moment while it makes tasks."""
FAILOVER_AGAIN: Final = _amended(
    *("heal-failover-from-assignment", heal_and_fail_over, _FAILED, _failover_shapes),
    changes=("heal.stale-task=skip", "heal.regenerate=from-assignment", "heal.replaces=all-due"),
    bounded=_FAILING,
    shown=NO_CONTROLLER,
)
"""The same where tasks are made from what is assigned now."""
QUEUE_AS_WRITTEN: Final = _amended(
    *("heal-queue-as-written", look_at_queue, _QUEUED, _queue_shapes),
    changes=(),
    bounded=_QUEUES,
    shown=NO_CONTROLLER,
)
"""The same where tasks that have become stale are executed."""

ALIVE_DISTINCT: Final = Hypothesis(
    "alive-distinct", "no live broker is listed twice", lambda v: distinct(v["alive"])
)
ASSIGNED_DISTINCT: Final = Hypothesis(
    "assigned-distinct", "no replica is assigned twice", lambda v: distinct(v["assigned"])
)
GONE_DISTINCT: Final = Hypothesis(
    "gone-distinct",
    "no failed broker has two records, and none of them is alive",
    lambda v: distinct((*v["alive"], *v["gone"])),
)


THEOREMS: Final = Claims(_PROFILE, largest=2, thorough=3, tier="full")
"""Every theorem about self-healing."""
about = THEOREMS.about


@about(
    QUEUE_AS_WRITTEN,
    "heal-as-written-removes-no-live-replica",
    "heal.task.no-live-replica-removed",
    finding="heal-1",
)
@says("As written, a generated task that starts takes no replica away that is alive.")
@about(QUEUE, "heal-removes-no-live-replica", "heal.task.no-live-replica-removed")
def _no_live_removed(values: Values, result: Any) -> Truth:
    """Where stale tasks are skipped, a generated task that starts takes no live replica away."""
    kept = all_of(
        implies(inside(replica, values["live"]), member(replica, values["target"]))
        for replica in values["assigned"]
    )
    return implies(_starts(values, result), kept)


@about(QUEUE, "heal-starts-with-live-targets", "heal.task.stale")
def _targets_live(values: Values, result: Any) -> Truth:
    """Where stale tasks are skipped, a generated task that starts asks for live brokers only."""
    alive = all_of(inside(replica, values["live"]) for replica in values["target"])
    return implies(_starts(values, result), alive)


@about(QUEUE, "heal-running-task-stays", "heal.cancel.never-running")
def _running_stays(values: Values, result: Any) -> Truth:
    """While a task runs nothing is started and nothing is cancelled."""
    return values["moving"] == "no" or result[0] == type(None).__name__


@about(QUEUE, "heal-operators-task-stays", "heal.cancel.automatic-only")
def _operators_stays(values: Values, result: Any) -> Truth:
    """A task of an operator goes only once what it asks for is there."""
    removed = result[0] not in (StartTask.__name__, type(None).__name__)
    return implies(removed & negate(values["automatic"]), _is_there(values))


@about(QUEUE, "heal-satisfied-changes-nothing", "heal.task.satisfied-skipped")
def _satisfied_is_skipped(values: Values, result: Any) -> Truth:
    """A task whose work is done goes without a move, and the plan stays what it was."""
    _, before, after, hosted = result
    skipped = (
        (result[0] == "heal.task.satisfied-skipped") & (hosted.target is None) & same(before, after)
    )
    return implies(_is_there(values) & (values["moving"] == "no"), skipped)


@about(CHOICE, "heal-choice-is-live-and-new", "heal.target.live")
def _choice_is_live_and_new(values: Values, chosen: Any) -> Truth:
    """Whoever takes over is alive, has no record of a failure and is not a replica yet."""
    if chosen is None:
        return True
    return member(chosen, values["alive"]) & _can_take_over(values, chosen)


@about(CHOICE, "heal-choice-if-possible", LEMMA)
def _somebody_if_possible(values: Values, chosen: Any) -> Truth:
    """Nobody takes over only where every live broker has a record or is a replica already."""
    if chosen is not None:
        return True
    return all_of(negate(_can_take_over(values, broker)) for broker in values["alive"])


@about(CHOICE, "heal-choice-has-fewest", "heal.target.even")
@given(ALIVE_DISTINCT)
def _fewest_replicas(values: Values, chosen: Any) -> Truth:
    """Where racks are unknown, whoever takes over has the fewest replicas, then the lowest id."""
    if chosen is None or values["racks"] == "known":
        return True
    ranked = list(zip(values["alive"], values["load"], strict=True))
    return all_of(
        implies(
            (broker == chosen) & _can_take_over(values, other),
            (load < more) | (load == more) & (broker <= other),
        )
        for (broker, load), (other, more) in product(ranked, repeat=2)
    )


@about(GENERATED, "heal-task-replaces-due-only", "heal.generate.replaces-failed")
@shaped(ASSIGNED_DISTINCT, GONE_DISTINCT)
def _replaces_due_only(values: Values, target: Any) -> Truth:
    """A task keeps every replica in its place but those of brokers that are due, whose places live
    brokers take.
    """
    if target is None:
        return True
    assigned = values["assigned"]
    return (len(target) == len(assigned)) & all_of(
        (new == old) | _is_due(values, old) & member(new, values["alive"])
        for old, new in zip(assigned, target, strict=True)
    )


@about(GENERATED, "heal-task-names-nobody-twice", "heal.target.no-duplicate")
@given(ASSIGNED_DISTINCT)
@shaped(GONE_DISTINCT)
def _stays_distinct(_: Values, target: Any) -> Truth:
    """A task names no replica twice."""
    return target is None or distinct(target)


@about(
    FAILOVER_AGAIN,
    "heal-failover-makes-same-tasks-from-assignment",
    "heal.generate.from-plan",
    finding="heal-6",
)
@says(
    "Whenever the controller fails, the next one ends with the same tasks, though they are "
    "made from what is assigned."
)
@about(
    FAILOVER, "heal-failover-makes-same-tasks", "heal.generate.from-plan", largest=3, needs=THOROUGH
)
@given(ASSIGNED_DISTINCT)
def _same_tasks(_: Values, result: Any) -> Truth:
    """Whenever the controller fails, the next one ends with the same tasks, none of them twice."""
    tasks, resumed, _ = result
    return all_of(_are_alike(tasks, each) for each in resumed)
