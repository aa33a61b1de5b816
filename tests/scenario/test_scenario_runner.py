"""The scenario runner: what it accepts, what it refuses, and how it compares and rewrites."""

import ast
import re
from pathlib import Path

import pytest

from reassure_conformance.scenarios.scenario import (
    compare,
    find_scenarios,
    parse_scenario,
    read_scenario,
    rewrite,
    run_scenario,
)
from reassure_conformance.scenarios.worlds import World, get_world, list_worlds
from reassure_conformance.scenarios.worlds.rules import read_value, spell_value
from reassure_conformance.script import parse_command
from reassure_model.partition import LeaderAndIsr, Partition
from reassure_model.state_machines import ReplicaState
from reassure_spec.readings import get_profile
from reassure_spec.words import ScenarioError

HEAD = """\
# What it shows.
# clauses: drop.keep-top
# profile: kip-236     readings: drop.slice=exclusive
"""
BODY = """\
world tables
----
ok

elect-new assigned=2,1 live=1
----
leader 1 isr [1]
"""


def test_head_is_read_in_full() -> None:
    """Reason, clauses, profile and readings come from the head, the rest from blocks."""
    scenario = parse_scenario(HEAD + BODY, "area/name.txt")
    assert (scenario.area, scenario.name) == ("area", "name")
    assert scenario.why == ("What it shows.",)
    assert scenario.clauses == ("drop.keep-top",)
    assert scenario.overrides == {"drop.slice": "exclusive"}
    assert scenario.readings.drop_slice == "exclusive"
    assert [block.command for block in scenario.blocks] == ["world", "elect-new"]
    assert [block.line for block in scenario.blocks] == [4, 8]


def test_bare_words_are_arguments_with_the_value_yes() -> None:
    """A word without `=` is a flag, and quotes keep a value together."""
    assert parse_command("submit target=1,2 legacy note='two words'") == (
        "submit",
        {"target": "1,2", "legacy": "yes", "note": "two words"},
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD.replace("drop.keep-top", "drop.keep-bottom") + BODY, "a/b.txt:1: no clause"),
        (HEAD.replace("kip-236 ", "kip-237 ") + BODY, "a/b.txt:1: there is no profile 'kip-237'"),
        (HEAD.replace("drop.slice", "drop.dice") + BODY, "there is no reading 'drop.dice'"),
        (HEAD.replace("exclusive", "both") + BODY, "reading drop.slice has no value 'both'"),
        (HEAD.replace("=exclusive", "") + BODY, "write it as name=value"),
        ("# Why.\n# profile: kip-236\n" + BODY, "the head lacks clauses"),
        ("# clauses: drop.keep-top\n# profile: kip-236\n" + BODY, "a sentence that says what"),
        (HEAD + "elect-new\n----\n", "a/b.txt:4: the first command must be `world NAME`"),
        (HEAD + "world tables\nelect-new\n", "a/b.txt: nothing is expected of any command"),
        (HEAD + BODY + "\ndrop top=1 top=2\n----\n", "a/b.txt:12: argument 'top' stands twice"),
        (HEAD + BODY + "\ndrop top='1\n----\n", "a/b.txt:12: "),
    ],
)
def test_malformed_text_is_refused_with_file_and_line(text: str, message: str) -> None:
    """A text that does not keep the format is refused, and the message says where and why."""
    with pytest.raises(ScenarioError) as error:
        parse_scenario(text, "a/b.txt")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("elect-old assigned=1 live=1", "no command 'elect-old'; there are: decide, drop,"),
        ("elect-new assigned=1", "argument 'live' is missing; it takes: assigned, live"),
        ("elect-new assigned=1 live=1 dead=2", "no argument 'dead'; it takes: assigned, live"),
        ("elect-new assigned=one live=1", "assigned=one: expected a whole number"),
        ("replica from=new to=gone", "no state 'gone'; there are: new, online,"),
    ],
)
def test_unknown_command_or_argument_is_refused_with_what_is_known(
    command: str, message: str
) -> None:
    """A world refuses what it does not understand; file, line and the known names are told."""
    scenario = parse_scenario(f"{HEAD}{BODY}\n{command}\n----\n", "a/b.txt")
    with pytest.raises(ScenarioError) as error:
        run_scenario(scenario)
    assert str(error.value).startswith(f"a/b.txt:12: {command.split(maxsplit=1)[0]}: ")
    assert message in str(error.value)


def test_unknown_world_is_refused_with_those_there_are() -> None:
    """The message about an unknown world lists the worlds."""
    scenario = parse_scenario(HEAD + BODY.replace("tables", "chairs"), "a/b.txt")
    with pytest.raises(ScenarioError, match=r"a/b\.txt:4: world: there is no world 'chairs'"):
        run_scenario(scenario)


def test_expected_output_compares_equal() -> None:
    """There is no difference where the model answers what is expected."""
    scenario = parse_scenario(HEAD + BODY, "a/b.txt")
    assert compare(scenario, run_scenario(scenario)) == ""


def test_other_output_shows_as_unified_diff() -> None:
    """A difference is shown line by line, expected and found."""
    scenario = parse_scenario(HEAD + BODY.replace("leader 1", "leader 2"), "a/b.txt")
    difference = compare(scenario, run_scenario(scenario)).splitlines()
    assert difference[:2] == ["--- a/b.txt (expected)", "+++ a/b.txt (found)"]
    assert "-leader 2 isr [1]" in difference
    assert "+leader 1 isr [1]" in difference


def test_missing_output_is_a_difference() -> None:
    """A block without expected output does not pass."""
    scenario = parse_scenario(HEAD + BODY.replace("leader 1 isr [1]\n", ""), "a/b.txt")
    assert "+leader 1 isr [1]" in compare(scenario, run_scenario(scenario))


def test_rewrite_replaces_outputs_only(tmp_path: Path) -> None:
    """Rewriting changes expected output, keeps everything else, and is stable."""
    path = tmp_path / "b.txt"
    comment = "\n# Between the blocks.\nelect-new assigned=2,1 live=2\n----\nwrong\nlines\n"
    path.write_text(HEAD + BODY + comment)
    assert rewrite(path)
    expected = comment.replace("wrong\nlines", "leader 2 isr [2]")
    assert path.read_text() == HEAD + BODY + expected
    assert not rewrite(path)


def test_rejected_write_changes_nothing() -> None:
    """The world `reassignment` shows the same partition after a write that the rules reject."""
    world = get_world("kip-236")("kip-236", get_profile("kip-236"), {"brokers": "1,2"})
    world.run("topic", {"assigned": "1,2", "online": "yes"})
    before = world.run("show", {})
    assert world.run("write-assigned", {"assigned": "1"}).startswith(
        "rejected by assigned.change.only-as-due: "
    )
    assert world.run("show", {}) == before


def test_impossible_action_is_refused() -> None:
    """A dead broker does not die again: the scenario is wrong, not the model."""
    world = get_world("kip-236")("kip-236", get_profile("kip-236"), {"brokers": "1,2"})
    world.run("topic", {"assigned": "1", "online": "yes"})
    world.run("die", {"broker": "1"})
    with pytest.raises(ScenarioError, match="not possible"):
        world.run("die", {"broker": "1"})


def test_scenarios_are_stories_that_can_be_read() -> None:
    """Each makes a world and does something in it, in at most sixty commands."""
    for path in find_scenarios():
        scenario = read_scenario(path)
        assert 1 < len(scenario.blocks) <= 60, path


def test_every_world_is_used() -> None:
    """No world is there for nothing."""
    assert {read_scenario(path).world for path in find_scenarios()} == set(list_worlds())


def make_rules_world() -> World:
    """The rules of Kafka 2.4 and later, and a partition."""
    world = get_world("rules")("kafka-zk", get_profile("kafka-zk"), {"brokers": "1,2"})
    world.run("before", {"Logged": "yes", "assigned": "[1,2]", "entry": "[2]"})
    return world


def test_a_write_that_is_put_to_the_rules_is_not_taken_over() -> None:
    """Whether it is accepted or not, the next one meets the same partition."""
    world = make_rules_world()
    accepted = "accepted by shipped.complete.entry-last\nentry None"
    assert world.run("write", {"DropEntry": "yes"}) == accepted
    assert world.run("write", {"DropEntry": "yes"}) == accepted


@pytest.mark.parametrize(
    ("command", "arguments", "why"),
    [
        ("before", {"Healing": "yes"}, "no rules are about 'Healing'"),
        ("before", {"Logged": "yes", "assigned": "[1"}, "was never closed"),
        ("before", {"Logged": "yes", "stray": "1"}, "unexpected keyword argument 'stray'"),
        ("before", {"assigned": "[1]"}, "name a record before 'assigned'"),
        ("around", {"live": "open"}, "'open' is no value"),
        ("around", {"live": "ReplicaState(9)"}, "'ReplicaState(9)' is no value"),
        ("write", {"Nothing": "yes"}, "no record 'Nothing'"),
        ("write", {"WriteState": "yes", "state": "LeaderAndIsr(1)"}, "missing 3 required"),
        ("rest", {"now": "yes"}, "it takes none"),
    ],
)
def test_what_is_put_to_the_rules_has_to_be_spelt_right(
    command: str, arguments: dict[str, str], why: str
) -> None:
    """A record or a field that there is not, and a value that is none, are refused."""
    with pytest.raises(ScenarioError, match=re.escape(why)):
        make_rules_world().run(command, arguments)


def test_values_are_spelt_as_they_are_read() -> None:
    """What the world `rules` shows can be put to it again."""
    state = LeaderAndIsr(-1, 0, 1, (1,))
    said = {("orders", 0): Partition((1, 2), state, completing=True), ("", 1): None}
    value = (said, frozenset({1}), frozenset(), ReplicaState.OFFLINE, True, "x")
    names = {each.__name__: each for each in (LeaderAndIsr, Partition, ReplicaState)}
    assert read_value(ast.parse(spell_value(value), mode="eval").body, names) == value


OBSERVED = """\
# What it shows.
# clauses: hw.at-most-leader-end
# profile: kafka-4485
world testimony
----
ok

"""


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("lead broker=1 isr=[1", "isr=\\[1: Expecting"),
        ("evaluate broker=1 pseudo_isr=[1]", "expected a field 'high_watermark'"),
        ("lost", "argument 'writer' is missing"),
        ("verdict twice", "no argument 'twice'"),
    ],
)
def test_what_no_broker_could_say_is_refused(command: str, says: str) -> None:
    """With the field, and the place of the command."""
    scenario = parse_scenario(f"{OBSERVED}{command}\n----\nok\n", "area/name.txt")
    with pytest.raises(ScenarioError, match=f"name.txt:8: .*{says}"):
        run_scenario(scenario)


def test_history_is_judged_as_often_as_it_is_asked_for() -> None:
    """A line that is missing leaves open what would be broken, and lines go on after a verdict."""
    lines = """\
writer writer=broker-1 tells=evaluate,replica
evaluate broker=1 pseudo_isr=[1] high_watermark=0
verdict
lost writer=broker-1
replica broker=1 log_end_offset=1 high_watermark=2
stored leader=2 isr=[2] isr_version=4
verdict goes-on
"""
    found = run_scenario(parse_scenario(OBSERVED + lines, "area/name.txt"))
    assert len(found[3]) == 1 and found[3][0].startswith("kept epoch.replica.never-back 1")
    assert found[-1][0].startswith("line 3 breaks hw.at-most-leader-end: 2 of a log that ends at 1")
