"""The page on the mutants of the rules, and the lines of the README that say how many are killed.

Both come from the tables in `mutation/reassure_mutation/protocols`, in both directions: controllers
that have a mistake, and judges that have one.
"""

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from pieces import make_page, make_table

from reassure_mutation import accepting, kills
from reassure_mutation.accepting_table import (
    KILLERS,
    AcceptingTable,
    Unit,
    find_units,
    load_accepting,
    load_judged,
)
from reassure_mutation.table import Table, find_worlds, load_table
from reassure_spec.readings import PROFILES

OF_CONTROLLERS: Final = (kills.UNREACHED, kills.SAME, kills.ALLOWED)
ALLOWED: Final = "allowed"
OF_JUDGES: Final = (accepting.UNASKED, accepting.SAME, accepting.WORDS, ALLOWED, accepting.OPEN)
_JUDGE: Final = "judge"
"""Where `allowed.toml` has reasons for mutants of the judge, by what their names contain."""

WHAT: Final = """\
Every function of the rules is changed in one place, by the operators of
`mutation/reassure_mutation/operators.py`. A *mutant of the controller* decides by the changed
function what to do next. It is killed where the judge refuses one of its writes, or where it comes
to rest and something is owed. A *mutant of the judge* decides by it what to accept. It is killed by
a question that it answers otherwise: one that a test case of the spec puts, one that a right
controller puts on its way through the worlds, or one that a mutant of the controller puts where it
is killed. Of KAFKA-4485 a question is a history of observations, and test cases are tales as well.

What survives has its reason. *The same in every state* and *the same answer* were found by asking,
which is no proof: a mutant of the judge that survives is put over a thousand questions besides,
drawn from those that come to the function and changed in a few places. *Open* says that one of
these is answered otherwise, so that nothing that is recorded pins it. *Allowed* ones are equal, or
differ only where nothing can come to; the reason stands beside them. Profiles whose rules are the
same functions have the same mutants of the judge, and one table; a function that another table has
as well is only in the first."""


def _get_function(name: str) -> str:
    return name.partition(": ")[0]


def _list_tables(profile: str) -> Iterator[Table]:
    for module in find_worlds(profile):
        table = load_table(module, profile)
        if table is not None:
            yield table


def _count(
    columns: tuple[str, ...], killed: Mapping[str, str], survivors: Mapping[str, str]
) -> Iterator[str]:
    """Yield a table with a row for each function; what becomes of mutants is by their names."""
    by: dict[str, Counter[str]] = {}
    for name, what in (*killed.items(), *survivors.items()):
        by.setdefault(_get_function(name), Counter())[what.partition(":")[0]] += 1
    by["in all"] = sum(by.values(), Counter())
    rows = (
        (
            f"`{name}`" if "." in name else name,
            str(found.total()),
            *(str(found[c]) for c in columns),
        )
        for name, found in by.items()
    )
    yield from make_table(("function", "mutants", *columns), rows)


def _list_survivors(survivors: Mapping[str, str]) -> Iterator[str]:
    yield from make_table(
        ("survives", "why"), ((f"`` {name} ``", reason) for name, reason in survivors.items())
    )


def _load_file(folder: Path) -> dict[str, dict[str, str]]:
    file = folder / "allowed.toml"
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def load_allowed(profile: str) -> dict[str, tuple[str, str]]:
    """Return by function the clause that allows what its mutants do otherwise, and why."""
    found: dict[str, tuple[str, str]] = {}
    for module in find_worlds(profile):
        said = _load_file(Path(module.__file__ or "").parent)
        said.pop(_JUDGE, None)
        found |= {name: (each["clause"], each["reason"]) for name, each in said.items()}
    return found


def load_reasons() -> dict[str, str]:
    """Return why mutants of the judge are allowed, by what stands in their names."""
    folders = dict.fromkeys(unit.path.parent for unit in find_units())
    return {k: v for each in folders for k, v in _load_file(each).get(_JUDGE, {}).items()}


def explain(survivors: Mapping[str, str]) -> dict[str, str]:
    """Return by the name of each survivor why, those that are allowed with the reason."""
    reasons = load_reasons()
    return {
        name: next((f"{ALLOWED}: {r}" for text, r in reasons.items() if text in name), why)
        for name, why in survivors.items()
    }


def _render_controllers(profile: str, tables: list[Table]) -> Iterator[str]:
    killed = {name: "killed" for table in tables for name in table.killable}
    survivors = {name: why for table in tables for name, why in table.survivors.items()}
    yield from ("", "### Mutants of the controller", "")
    yield from _count(("killed", *OF_CONTROLLERS), killed, survivors)
    yield ""
    reasons = load_allowed(profile)
    said = {}
    for name, why in survivors.items():
        clause, reason = reasons.get(_get_function(name), ("", ""))
        said[name] = f"{why}: {reason} (`{clause}`)" if why == kills.ALLOWED and clause else why
    yield from _list_survivors(said)


def _render_judges(unit: Unit, table: AcceptingTable) -> Iterator[str]:
    killed = {name: kill.by for name, kill in table.killed.items()}
    survivors = explain(table.survivors)
    profiles = ", ".join(f"`{each}`" for each in unit.profiles)
    yield from ("", f"### Mutants of the judge of {profiles}", "")
    yield from _count((*KILLERS, *OF_JUDGES), killed, survivors)
    yield ""
    yield from _list_survivors(survivors)


def render_mutation() -> str:
    """Return the matrix by function, with the survivors and the reasons, profile by profile."""
    lines = [WHAT]
    for profile in PROFILES:
        tables = list(_list_tables(profile))
        judged = [unit for unit in find_units() if unit.profiles[0] == profile]
        if tables or any(map(load_accepting, judged)):
            lines += ["", f"## {profile}"]
        if tables:
            lines += _render_controllers(profile, tables)
        for unit in judged:
            table = load_accepting(unit)
            lines += _render_judges(unit, table) if table else ()
    return make_page("Mutants of the rules", *lines)


def format_scores() -> str:
    """Return the table of the README: by profile, how many mutants of the rules are killed."""
    rows = []
    for profile in PROFILES:
        tables = list(_list_tables(profile))
        killed = {name for table in tables for name in table.killable}
        every = killed.union(*(table.survivors for table in tables))
        judge = _score_judge(profile)
        if tables or judge:
            controller = f"{len(killed):,} of {len(every):,}" if tables else "-"
            rows.append((f"`{profile}`", controller, judge or "-"))
    return "\n".join(make_table(("profile", "of the controller", "of the judge"), rows))


def _score_judge(profile: str) -> str:
    judged = load_judged(profile)
    if judged is None:
        return ""
    killed, survivors = judged
    opened = sum(why.startswith(accepting.OPEN) for why in explain(survivors).values())
    every = len(killed) + len(survivors)
    return f"{len(killed):,} of {every:,}" + (f", {opened} open" if opened else "")
