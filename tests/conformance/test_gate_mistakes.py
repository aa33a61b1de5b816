"""Stories that are there for one mistake each: the text of the controller changed where it stands.

The mistakes are in no catalogue: nothing in the controller asks about them. A test tells the story
to a controller of which one function says something else for a while.
"""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from reassure_conformance.adapter.bundled import Bundled
from reassure_conformance.gate.harness import Harness
from reassure_conformance.gate.story import shipped_stories
from reassure_conformance.mutants.exchange import Patch, exchanged

KIP_236, LEGACY, HEALING = "kip-236", "kip-236-legacy", "kip-46"


class Mistake(NamedTuple):
    """A place of the controller's text, what stands there instead, and what catches that."""

    module: str
    old: str
    """The text as it is; it stands there once."""
    new: str
    story: str
    clause: str
    profile: str = KIP_236


MISTAKES = {
    "due drop forgotten at failover": Mistake(
        "protocols.kip_236",
        "    return missing or len(content.assigned)",
        "    return len(content.assigned)",
        "failover-while-a-drop-waits",
        "drop.before-expansion",
    ),
    "a task given up of which a part is there already": Mistake(
        "protocols.kip_46",
        "if all(_is_redundant(",
        "if any(_is_redundant(",
        "healing-half-done-by-an-operator",
        "heal.task.started",
        HEALING,
    ),
    "a task removed of which a part is there already": Mistake(
        "protocols.kip_46",
        "        if not left:\n",
        "        if len(left) < len(task.assignments):\n",
        "healing-half-done-by-an-operator",
        "heal.task.started",
        HEALING,
    ),
    "no move goes on after an unclean election": Mistake(
        "agenda",
        "        self.reader.changed.update(keys)\n        self.reader.refresh",
        "        self.reader.refresh",
        "unclean-election-ends-a-move",
        "complete.carried-out",
    ),
    "nobody stands again whose session has expired": Mistake(
        "controller",
        "        elif kind == CONNECTED or path == CONTROLLER:\n",
        "        elif kind != CONNECTED and path == CONTROLLER:\n",
        "session-expires",
        "controller.election.held",
    ),
    "nobody stands again who was deposed": Mistake(
        "controller",
        "        self._forget()\n        self._unsettled = True\n\n    def _take_asked",
        "        self._forget()\n\n    def _take_asked",
        "deposed-and-elected-again",
        "controller.election.held",
    ),
    "no election in a topic whose deletion waits": Mistake(
        "context",
        "return topic in self.deletions and not self.find_moving(topic)",
        "return topic in self.deletions",
        "leader-dies-while-a-deletion-waits",
        "message.leader-able",
    ),
    "partitions that a topic has grown by are not deleted": Mistake(
        "topics",
        "    return replicas <= deletion.answered",
        "    told = {(number, one) for number, one, _ in deletion.told}\n"
        "    return bool(told) and replicas & told <= deletion.answered",
        "topic-deletion-under-growth",
        "topic.delete.all-successful-first",
    ),
    "one log deleted counts for all of its broker": Mistake(
        "topics",
        "    return replicas <= deletion.answered",
        "    return {one for _, one in replicas} <= {one for _, one in deletion.answered}",
        "topic-deletion-half-told",
        "topic.delete.all-successful-first",
    ),
    "who has stopped once counts as stopping for ever": Mistake(
        "agenda",
        "        self.context.stopping -= dead\n",
        "",
        "preferred-after-a-shutdown",
        "act.preferred-election-held",
    ),
    "topics not read again after a broken connection": Mistake(
        "reader",
        "        self.stale_topics.update(names or (), self.context.numbers)\n",
        "",
        "watches-lost-under-moves",
        "partition.new.brought-online",
    ),
    "topics that have grown not read again after a broken connection": Mistake(
        "reader",
        "self.stale_topics.update(names or (), self.context.numbers)",
        "self.stale_topics.update(set(names or ()) - self.context.numbers.keys())",
        "watches-lost-under-moves",
        "partition.new.brought-online",
    ),
    "states not read again after a broken connection": Mistake(
        "reader",
        "        self._stale_states.update(self.context.partitions)\n",
        "",
        "watches-lost-under-moves",
        "complete.carried-out",
    ),
    "moves not looked at again after a broken connection": Mistake(
        "reader",
        "        self.changed.update(self.context.partitions)\n",
        "",
        "watches-lost-under-moves",
        "complete.carried-out",
    ),
    "queue not read again after a broken connection": Mistake(
        "agenda",
        "        for planner in self._rules.planners:\n"
        "            planner.read_missed(self.reader)\n",
        "",
        "watches-lost-under-moves",
        "request.consumed",
    ),
    "deletions not read again after a broken connection": Mistake(
        "agenda",
        "        self.reader.make_stale()\n        self._take_deletions()\n",
        "        self.reader.make_stale()\n",
        "watches-lost-under-wishes",
        "act.deletion-carried-out",
    ),
    "preferred leaders not read again after a broken connection": Mistake(
        "agenda",
        "        self._take_deletions()\n        self.reader.read_preferred()\n",
        "        self._take_deletions()\n",
        "watches-lost-under-wishes",
        "act.preferred-election-held",
    ),
    "the old znode not read again after a broken connection": Mistake(
        "old_znode",
        '        """Read it."""\n        read_old_znode(reader)\n',
        "        return\n\n    def read_all(self, reader):\n        read_old_znode(reader)\n",
        "watches-lost-under-the-old-znode",
        "legacy.translate.request",
        LEGACY,
    ),
    "tasks not read again after a broken connection": Mistake(
        "protocols.kip_46",
        "        read_records(reader)\n        read_tasks(reader)\n",
        "        read_records(reader)\n\n"
        "    def read_all(self, reader):\n"
        "        read_records(reader)\n        read_tasks(reader)\n",
        "watches-lost-under-a-task",
        "heal.task.started",
        HEALING,
    ),
    "an old znode that was made anew is taken for the one before": Mistake(
        "old_znode",
        "    if known is None or known.created != stat.czxid:\n",
        "    if known is not None:\n"
        "        known = replace(known, created=stat.czxid)\n"
        "    else:\n",
        "old-znode-made-anew",
        "legacy.translate.request",
        LEGACY,
    ),
    "an old znode that was made anew is removed by the version of the one before": Mistake(
        "old_znode",
        "return (RecheckOldZnode(), write)",
        "return (write,)",
        "old-znode-made-anew",
        "legacy.translate.request",
        LEGACY,
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", MISTAKES)
def test_story_catches_mistake(name: str, make_harness: Callable[..., Harness]) -> None:
    """The story holds without the mistake, and breaks the clause first with it."""
    mistake = MISTAKES[name]
    harness = make_harness(Bundled(profile=mistake.profile))
    story = next(story for story in shipped_stories() if story.name == mistake.story)
    example = harness.tell(story)
    skipped = [done.why for done in example.done if done.result == "skipped"]
    assert (example.violations, example.unsettled, skipped) == ([], 0, [])
    with exchanged([Patch(mistake.module, mistake.old, mistake.new)]):
        broken = harness.tell(story)
    assert [violation.clause for violation in broken.violations[:1]] == [mistake.clause]
