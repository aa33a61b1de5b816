"""Pages of reference: what the code knows of its command line, formats, faults, theorems, metrics.

Nothing on them is written by hand but the sentence at the head of each.
"""

import argparse
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import click
from pieces import make_page, make_table

from reassure_conformance.adapter.wire import answer_schema, request_schema
from reassure_conformance.cli import cli
from reassure_conformance.gate.goals import COVERAGE_GOALS
from reassure_conformance.gate.story import shipped_stories
from reassure_conformance.mutants import load_mutants
from reassure_conformance.report.document import EXIT_CODES, INTERRUPTED, result_schema
from reassure_conformance.scenarios.scenario import find_scenarios, read_scenario
from reassure_controller.tally import LabelCounts, TermTimes
from reassure_lab.__main__ import make_parser
from reassure_lab.metrics import measures
from reassure_lab.throttles import RATES, REPLICA_LISTS
from reassure_pipeline.tables.columns import TABLES
from reassure_proofs.engine.register import get_theorems
from reassure_spec import errors
from reassure_spec.schemas import SCHEMAS, load_schema
from reassure_spec.znodes import MESSAGE_BYTES, MIN_ISR, TOPIC_MESSAGE_BYTES, UNCLEAN

_ROOT: Final = Path(__file__).parents[1]
_STORIES: Final = "../../conformance/reassure_conformance/gate/stories"
_LONG_LIST: Final = re.compile(r" \((?:[\w-]+, ){5,}[^)]*\)")
"""Names in brackets that have a page of their own."""
_TAKES_ITS_OWN: Final = {"broker", "controller"}
"""Verbs whose options another program has."""


def _say(text: str) -> str:
    """Return text in one line."""
    return " ".join(text.split())


def _escape(text: str) -> str:
    """Return text in which nothing is taken for a tag."""
    return _say(text).replace("<", "&lt;")


# The command line ---------------------------------------------------------------------------------


def _list_commands(
    command: click.Command, context: click.Context
) -> Iterator[tuple[str, click.Command, click.Context]]:
    """Yield every verb with its full name, groups before what is in them."""
    yield context.command_path, command, context
    if isinstance(command, click.Group):
        for name in sorted(command.list_commands(context)):
            inner = command.get_command(context, name)
            assert inner is not None, name
            yield from _list_commands(inner, click.Context(inner, info_name=name, parent=context))


def _show_command(name: str, command: click.Command, context: click.Context) -> Iterator[str]:
    yield from (f"## {name}", "", _escape(re.sub(r"\x08", "", command.help or "")), "")
    if command.name in _TAKES_ITS_OWN:
        yield from ("Its options: [processes](processes.md).", "")
        return
    usage = " ".join(command.collect_usage_pieces(context))
    yield from ("```", f"{name} {usage}".strip(), "```", "")
    records = [each.get_help_record(context) for each in command.get_params(context)]
    rows = [(f"`{names}`", _escape(text)) for names, text in filter(None, records)]
    if rows:
        yield from (*make_table(("option", "what it does"), rows), "")


def _list_exit_codes() -> Iterator[tuple[str, str]]:
    """Yield every exit code with what it means."""
    for verdict, code in EXIT_CODES.items():
        yield str(code), verdict
    kinds = [each for each in vars(errors).values() if isinstance(each, type)]
    for kind in sorted(kinds, key=attrgetter("exit_code")):
        yield str(kind.exit_code), _escape((kind.__doc__ or "").split("\n\n")[0])
    yield str(INTERRUPTED), "Interrupted."


def render_verbs() -> str:
    """Return every verb with its options, and the exit codes."""
    context = click.Context(cli, info_name="reassure")
    return make_page(
        "Command line",
        "## Exit codes",
        "",
        "Those of every verb; a run that crashed never ends with 0 or 1.",
        "",
        *make_table(("code", "meaning"), _list_exit_codes()),
        "",
        *(line for found in _list_commands(cli, context) for line in _show_command(*found)),
    )


# Formats ------------------------------------------------------------------------------------------


def _name_type(part: Mapping[str, Any]) -> str:
    if "const" in part:
        return f"`{json.dumps(part['const'])}`"
    if "enum" in part:
        return ", ".join(f"`{json.dumps(each)}`" for each in part["enum"])
    if "$ref" in part:
        return f"`{part['$ref'].rpartition('/')[2]}`"
    for several in ("oneOf", "anyOf"):
        if several in part:
            return " or ".join(dict.fromkeys(map(_name_type, part[several])))
    kind = part.get("type", "anything")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _list_fields(schema: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    required = schema.get("required", ())
    for name, part in schema.get("properties", {}).items():
        fields = part if isinstance(part, dict) else {}
        needed = "yes" if name in required else ""
        yield f"`{name}`", _name_type(fields), needed, _escape(fields.get("description", ""))


def _show_schema(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    said = [_escape(schema.get(each, "")) for each in ("title", "description")]
    yield from (f"## {name}", "", ". ".join(each.rstrip(".") for each in said if each) + ".", "")
    rows = list(_list_fields(schema))
    if rows:
        yield from (*make_table(("field", "type", "required", "what it is"), rows), "")
    yield from (f"`reassure spec schema {name}` prints the whole schema.", "")


def render_znodes() -> str:
    """Return the schemas of what is written to ZooKeeper, told to adapters, and observed."""
    schemas = {name: load_schema(name) for name in SCHEMAS}
    schemas |= {"questions": request_schema(), "answers": answer_schema()}
    return make_page(
        "Schemas",
        "Of every znode, and of what a program under test is asked and answers.",
        "[The protocol](../protocol.md) says who writes which and when.",
        "",
        *(line for name, schema in schemas.items() for line in _show_schema(name, schema)),
    )


def _find_verbs(part: Mapping[str, Any]) -> Iterator[str]:
    """Yield the verbs that a condition of a schema is about."""
    verb = part.get("if", {}).get("properties", {}).get("verb", {})
    yield from verb.get("enum", [verb["const"]] if "const" in verb else [])


def render_result() -> str:
    """Return the result document: its head, and what each verb adds."""
    schema = result_schema()
    parts = [
        line
        for part in schema["allOf"]
        for line in (
            f"## {', '.join(_find_verbs(part)) or 'Otherwise'}",
            "",
            *make_table(("field", "type", "required", "what it is"), _list_fields(part["then"])),
            "",
        )
        if part["then"].get("properties")
    ]
    return make_page(
        "The result document",
        _escape(schema["description"]),
        "",
        "`reassure spec schema result` prints the whole schema.",
        "",
        *make_table(("field", "type", "required", "what it is"), _list_fields(schema)),
        "",
        *parts,
    )


def render_tables() -> str:
    """Return the tables of audits, column by column."""
    parts = [
        line
        for name, table in TABLES.items()
        for line in (
            f"## {name}",
            "",
            f"A row for each {table.about}.",
            "",
            *make_table(
                ("column", "type", "what it says"),
                ((f"`{each.name}`", f"`{each.kind}`", each.about) for each in table.columns),
            ),
            "",
        )
    ]
    return make_page(
        "Tables of an audit",
        "`reassure audit --tables DIR` appends to these but the first, which Spark's data source",
        "reads. [Ten questions](../tables.md) show how they are queried.",
        "",
        *parts[:-1],
    )


# Lists --------------------------------------------------------------------------------------------


def _quote(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def render_faults() -> str:
    """Return the mistakes that can be planted, each with the clauses that it has to break."""
    rows = ((f"`{one.name}`", one.sentence, _quote(one.clauses)) for one in load_mutants().values())
    return make_page(
        "Planted faults",
        "`reassure mutants NAME` plants one in the bundled controller or brokers, and shows what",
        "catches it.",
        "",
        *make_table(("fault", "what goes wrong", "made for the clauses"), rows),
    )


def render_theorems() -> str:
    """Return every theorem with what it is about and what is expected of it."""
    theorems = get_theorems()
    rows = (
        (
            f"`{each.name}`",
            _escape(each.statement),
            each.subject.words,
            each.bound(4).removesuffix("; all integers unbounded"),
            each.expected,
            f"`{each.clause}`" if each.clause else each.finding,
        )
        for each in theorems
    )
    return make_page(
        "Theorems",
        f"{len(theorems)} claims about the model's own functions. One that is expected to be",
        "refuted shows a finding. `reassure prove NAME` proves one, `--explain` shows more of it;",
        "[proofs](../proofs.md) says what that rests on.",
        "",
        *make_table(("theorem", "claim", "about", "bound", "expected", "clause or finding"), rows),
    )


def render_tales() -> str:
    """Return the stories, the coverage goals and the scenarios."""
    stories = (
        (f"[`{each.name}`]({_STORIES}/{each.name}.txt)", _escape(" ".join(each.why)))
        for each in sorted(shipped_stories(), key=attrgetter("name"))
    )
    scenarios = (
        (
            f"[`{each.area}/{each.name}`](../../{path.relative_to(_ROOT)})",
            _escape(" ".join(each.why)),
        )
        for path in find_scenarios()
        for each in (read_scenario(path),)
    )
    goals = ((f"`{each.name}`", _escape(each.sentence)) for each in COVERAGE_GOALS)
    return make_page(
        "Stories and scenarios",
        "A [story](../stories.md) drives an implementation; a scenario is told to the model and",
        "holds its answers.",
        "",
        "## Stories",
        "",
        *make_table(("story", "why it is told"), stories),
        "",
        "## Coverage goals",
        "",
        "What has to come up before some clauses count as put to the test.",
        "",
        *make_table(("goal", "what comes up"), goals),
        "",
        "## Scenarios",
        "",
        *make_table(("scenario", "what it shows"), scenarios),
    )


# Processes ----------------------------------------------------------------------------------------


def _list_measured() -> Iterator[Any]:
    """Yield what processes tell Prometheus, asked of a controller and a broker that do nothing."""
    context = SimpleNamespace(partitions={}, epoch=0, requests=())
    idle: Any = SimpleNamespace(
        context=context, terms=TermTimes(), is_active=False, events_waiting=0
    )
    client: Any = SimpleNamespace(operations=LabelCounts())
    yield from measures.measure_controller(idle)
    yield from measures.measure_replicas(())
    yield from measures.measure_isr(LabelCounts())
    yield from measures.measure_requests(LabelCounts())
    yield from measures.measure_zookeeper(client)


def _list_metrics() -> Iterator[tuple[str, str, str, str]]:
    labels = attrgetter("_labelnames")
    for family in _list_measured():
        name = family.name + ("_total" if family.type == "counter" else "")
        yield f"`{name}`", family.type, ", ".join(labels(family)), _escape(family.documentation)


def _list_options(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    formatter = parser.formatter_class(prog="", width=10_000, max_help_position=10_000)
    for action in parser._actions:  # noqa: SLF001 (argparse lists options nowhere else)
        names = formatter._format_action_invocation(action)  # noqa: SLF001
        said = _LONG_LIST.sub("", action.help or "")
        yield f"`{names}`", _escape(said % {"default": action.default})


def render_processes() -> str:
    """Return the options of controller and broker, the settings they read, and their metrics."""
    parser = make_parser("reassure lab")
    (roles,) = (each.choices for each in parser._actions if isinstance(each.choices, dict))  # noqa: SLF001
    settings = (
        (f"`{MIN_ISR}`", "topics, brokers, default"),
        (f"`{UNCLEAN}`", "topics, default"),
        (f"`{MESSAGE_BYTES}`", "brokers, default"),
        (f"`{TOPIC_MESSAGE_BYTES}`", "topics"),
        *((f"`{name}`", "brokers") for name in RATES),
        *((f"`{name}`", "topics") for name in REPLICA_LISTS),
    )
    options = [
        line
        for role, its in roles.items()
        for line in (
            f"## reassure lab {role}",
            "",
            *make_table(("option", "what it does"), _list_options(its)),
            "",
        )
    ]
    return make_page(
        "Processes and metrics",
        "`reassure lab cluster up` starts [a cluster](../lab.md#a-cluster) of these.",
        "",
        *options,
        "## Settings in ZooKeeper",
        "",
        "Read below `/config`, and followed as they change.",
        "",
        *make_table(("setting", "of"), settings),
        "",
        "## Metrics",
        "",
        "Told to Prometheus where `--metrics-port` says.",
        "",
        *make_table(("metric", "type", "labels", "what it is"), _list_metrics()),
    )


REFERENCE: Final[Mapping[str, Callable[[], str]]] = {
    "verbs": render_verbs,
    "znodes": render_znodes,
    "result": render_result,
    "tables": render_tables,
    "faults": render_faults,
    "theorems": render_theorems,
    "tales": render_tales,
    "processes": render_processes,
}
"""The pages by name."""
