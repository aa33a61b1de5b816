"""What a controller or a broker says of itself when it is asked.

Gauges are read off the object itself when somebody asks, so they cannot be behind it. A controller
works in one thread and is read in another: what is copied here is copied in one step, and
partitions that are changed in between are counted as they were before or after.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily
from prometheus_client.metrics_core import Metric

from reassure_controller.client import Client
from reassure_controller.context import PartitionContext
from reassure_controller.controller import Controller
from reassure_controller.replication.replica import Replica
from reassure_controller.replication.serving import Leading
from reassure_controller.tally import LabelCounts


def measure_controller(controller: Controller) -> Iterator[Metric]:
    """Yield what is to be known of a controller; all but its terms is 0 while it is not elected."""
    name = "reassure_controller_{}".format
    context, terms = controller.context, controller.terms
    partitions = tuple(context.partitions.values())
    moving = [one for one in partitions if one.child is not None]
    gauges = (
        ("active", "Whether it is the elected one.", int(controller.is_active)),
        ("epoch", "Its controller epoch, 0 when it is not elected.", context.epoch),
        ("partitions", "Partitions there are.", len(partitions)),
        ("reassigning_partitions", "Partitions that have a reassignment in flight.", len(moving)),
        (
            "leaving_replicas",
            "Assigned replicas that are no part of the target.",
            sum(len(_list_leaving(one)) for one in moving),
        ),
        (
            "drop_set_replicas",
            "Replicas that changed reassignments have yet to drop.",
            sum(
                len(planner.list_dropped(one, controller.rules.readings))
                for one in moving
                for planner in controller.rules.planners
            ),
        ),
        (
            "under_replicated_partitions",
            "Partitions with fewer replicas in sync than are assigned.",
            sum(_is_under_replicated(one) for one in partitions),
        ),
        ("queued_requests", "Requests that wait to be carried out.", len(context.requests)),
        ("queued_events", "Events that wait to be looked at.", controller.events_waiting),
        (
            "last_failover_seconds",
            "How long the last failover took, from the election on.",
            terms.last_failover_s,
        ),
    )
    for suffix, text, value in gauges:
        yield GaugeMetricFamily(name(suffix), text, value)
    yield CounterMetricFamily(name("elections"), "How often it was elected.", terms.elections)
    yield SummaryMetricFamily(
        name("failover_seconds"),
        "From an election until what was owed is carried out; the time from a controller's death "
        "to the election of the next is not in it.",
        count_value=terms.failovers,
        sum_value=terms.failovers_s,
    )


def measure_replicas(replicas: Iterable[Replica]) -> Iterator[Metric]:
    """Yield what is to be known of a broker's replicas, as they are seen in passing."""
    partition = ("topic", "partition")
    end = _gauge("log_end_offset", "Offset behind the last record.", partition)
    mark = _gauge("high_watermark", "Offset up to which records are shown.", partition)
    leads = _gauge("leader", "Whether it leads.", partition)
    isr = _gauge("in_sync_replicas", "Replicas in sync, as the leader has it.", partition)
    lag = _gauge("lag", "Records a follower is behind its leader.", (*partition, "follower"))
    under = 0
    for replica in replicas:
        labels = (replica.key[0], str(replica.key[1]))
        role, log_end = replica.role, replica.log.end_offset
        end.add_metric(labels, log_end)
        mark.add_metric(labels, replica.high_watermark)
        leads.add_metric(labels, isinstance(role, Leading))
        if not isinstance(role, Leading):
            continue
        under += len(role.view.isr) < len(role.view.replicas)
        isr.add_metric(labels, len(role.view.isr))
        for follower, kept in sorted(role.view.followers.items()):
            lag.add_metric((*labels, str(follower)), log_end - kept.offset)
    yield from (end, mark, leads, isr, lag)
    text = "Partitions that it leads with fewer replicas in sync than are assigned."
    yield GaugeMetricFamily("reassure_broker_under_replicated_partitions", text, under)


def measure_isr(changes: LabelCounts) -> Iterator[Metric]:
    """Yield how often leaders of a broker took replicas into the in-sync set, and out of it."""
    counts = dict(changes.list())
    for kind in ("shrinks", "expands"):
        text = f"In-sync sets that it wrote: {kind}."
        value = counts.get((kind,), 0)
        yield CounterMetricFamily(f"reassure_broker_isr_{kind}", text, value)


def measure_requests(answers: LabelCounts) -> Iterator[Metric]:
    """Yield how a broker answered: an error for each that an answer has, NONE for success."""
    family = CounterMetricFamily(
        "reassure_broker_requests", "Answers, by request and error.", labels=("api", "error")
    )
    yield _fill(family, answers)


def measure_zookeeper(client: Client) -> Iterator[Metric]:
    """Yield what was asked of ZooKeeper."""
    family = CounterMetricFamily(
        "reassure_zookeeper_operations", "Requests to ZooKeeper, by kind.", labels=("operation",)
    )
    yield _fill(family, client.operations)


def _fill(family: CounterMetricFamily, tally: LabelCounts) -> Metric:
    for labels, count in tally.list():
        family.add_metric(labels, count)
    return family


def _gauge(suffix: str, text: str, labels: tuple[str, ...]) -> Any:
    return GaugeMetricFamily(f"reassure_broker_{suffix}", text, labels=labels)


def _list_leaving(content: PartitionContext) -> list[int]:
    assert content.child is not None
    return [one for one in content.assigned if one not in content.child.target]


def _is_under_replicated(content: PartitionContext) -> bool:
    return content.state is not None and len(content.state.isr) < len(content.assigned)
