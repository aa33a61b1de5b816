"""What scenarios, and shipped tales, ask of the rules: questions that have an answer in a file.

    python -m reassure_conformance.scenarios.asking PROTOCOL...

makes the tables of the mutants of the accepting rules of these protocols anew
(`reassure_mutation.accepting_table`).
"""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from reassure_conformance.gate.replication.brokers import BrokersRunner
from reassure_conformance.gate.run_settings import REPLICATION, Settings
from reassure_conformance.scenarios.scenario import find_scenarios, read_scenario, run_scenario
from reassure_mutation.accepting import Accepting, Question
from reassure_mutation.accepting_table import (
    AcceptingTable,
    find_units,
    make_accepting_table,
    save_accepting,
)

_SEARCH: Final = "shortest"
"""The command that asks thousands of questions and shows one answer."""


def record_questions(rules: Accepting) -> dict[Question, str]:
    """Return the questions that scenarios put to these rules, with the scenario that does first."""
    found: dict[Question, str] = {}
    for path in find_scenarios():
        scenario = read_scenario(path)
        blocks = tuple(each for each in scenario.blocks if each.command != _SEARCH)
        asked: dict[Question, None] = {}
        with rules.recorded(asked):
            run_scenario(replace(scenario, script=replace(scenario.script, blocks=blocks)))
        for question in asked:
            found.setdefault(question, f"{scenario.area}/{scenario.name}")
    for name, question in _list_told(rules) if type(rules) is not Accepting else ():
        found.setdefault(question, f"tales/{name}")
    return found


def _list_told(rules: Accepting) -> Iterator[tuple[str, Question]]:
    """Yield the histories of the bundled brokers that are told the shipped tales."""
    with TemporaryDirectory() as folder:
        runner = BrokersRunner(Settings(seed=1, profile=REPLICATION), Path(folder))
        with runner.open():
            for tale in runner.list_shipped():
                asked: dict[Question, None] = {}
                with rules.recorded(asked):
                    runner.tell(tale)
                yield from ((tale.name, question) for question in asked)


def main(protocols: list[str]) -> int:
    """Make the tables of these protocols."""
    for unit in find_units():
        if unit.protocol not in protocols:
            continue
        for found in make_accepting_table(unit, record_questions(unit.rules)):
            if isinstance(found, AcceptingTable):
                save_accepting(found, unit)
            else:
                sys.stdout.write(f"{found}\n")
                sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
