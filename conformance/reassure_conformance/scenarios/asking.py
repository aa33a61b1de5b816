"""What scenarios ask of the rules: questions that have an answer in a file.

    python -m reassure_conformance.scenarios.asking PROTOCOL...

makes the tables of the mutants of the accepting rules of these protocols anew
(`reassure_mutation.accepting_table`).
"""

import sys
from dataclasses import replace
from typing import Final

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
    return found


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
