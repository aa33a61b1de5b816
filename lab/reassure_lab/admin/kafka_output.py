"""What the verbs say, in the words of Kafka's own tool (2.6 and later)."""

from collections.abc import Collection, Iterable, Iterator

from reassure_lab.admin.move_files import format_moves
from reassure_lab.admin.survey import Active
from reassure_lab.admin.verbs import (
    Cancellation,
    Cleared,
    Proposal,
    Started,
    Verification,
    Verified,
)
from reassure_spec.znodes import PartitionKey


def say_proposal(proposal: Proposal) -> str:
    """Return what `--generate` says."""
    return (
        f"Current partition replica assignment\n{format_moves(proposal.current)}\n\n"
        f"Proposed partition reassignment configuration\n{format_moves(proposal.proposed)}"
    )


def say_started(started: Started) -> str:
    """Return what `--execute` says."""
    text = (
        f"Current partition replica assignment\n\n{format_moves(started.current)}\n\n"
        "Save this to use as the --reassignment-json-file option during rollback\n"
    )
    if started.bytes_per_s is not None:
        text += (
            "Warning: You must run --verify periodically, until the reassignment completes, to "
            "ensure the throttle is removed.\n"
            f"The inter-broker throttle limit was set to {started.bytes_per_s} B/s\n"
        )
    count = len(started.targets)
    some = f"Successfully started partition reassignment{_plural(count)} for "
    doubt = f"\n{started.doubt}" if started.doubt else ""
    return text + some + join(started.targets) + doubt


def say_verification(found: Verification) -> str:
    """Return what `--verify` says."""
    lines = ["Status of partition reassignment:"]
    lines += [_say_verified(one) for one in sorted(found.partitions, key=lambda one: one.key)]
    if found.cleared is not None:
        lines += _say_cleared(found.cleared)
    return "\n".join(lines)


def say_interrupted(withdrawn: Collection[PartitionKey]) -> str:
    """Return what one is told who no longer waits, with what was taken back therefore."""
    if not withdrawn:
        return (
            "Interrupted: what is in progress goes on; --verify --wait waits for it again, "
            "--cancel takes it back."
        )
    return (
        f"Interrupted: nobody asks for {join(withdrawn)} any more, but the controller may go on "
        "with what it has begun; --execute asks again."
    )


def _say_verified(one: Verified) -> str:
    name = _name(one.key)
    match one.status:
        case "complete":
            return f"Reassignment of partition {name} is complete."
        case "in progress":
            return f"Reassignment of partition {name} is still in progress."
        case "other replicas":
            assigned, target = (",".join(map(str, some)) for some in (one.assigned, one.target))
            return (
                f"There is no active reassignment of partition {name}, but replica set is "
                f"{assigned} rather than {target}."
            )


def _say_cleared(cleared: Cleared) -> Iterator[str]:
    brokers, topics = cleared.brokers, cleared.topics
    yield f"Clearing broker-level throttles on broker{_plural(len(brokers))} {_list(brokers)}"
    yield f"Clearing topic-level throttles on topic{_plural(len(topics))} {_list(topics)}"


def say_list(active: Iterable[Active]) -> str:
    """Return what `--list` says."""
    lines = []
    for one in active:
        text = f"{_name(one.key)}: replicas: {_list(one.assigned)}."
        text += f" adding: {_list(one.adding)}." if one.adding else ""
        text += f" removing: {_list(one.removing)}." if one.removing else ""
        lines.append(text)
    if not lines:
        return "No partition reassignments found."
    return "\n".join(["Current partition reassignments:", *lines])


def say_cancellation(done: Cancellation) -> str:
    """Return what `--cancel` says."""
    count = len(done.cancelled)
    lines = ["None of the specified partition reassignments are active."]
    if count:
        some = f"Successfully cancelled partition reassignment{_plural(count)} for: "
        lines = [some + join(done.cancelled)]
    if done.cleared is not None:
        lines += _say_cleared(done.cleared)
    return "\n".join(lines)


def _name(key: PartitionKey) -> str:
    return f"{key[0]}-{key[1]}"


def join(keys: Iterable[PartitionKey]) -> str:
    """Return the names of partitions, in order."""
    return ",".join(map(_name, sorted(keys)))


def _list(some: Iterable[object]) -> str:
    return ",".join(map(str, some))


def _plural(count: int) -> str:
    return "" if count == 1 else "s"
