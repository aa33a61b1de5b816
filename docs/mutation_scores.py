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
from reassure_mutation.accepting_table import KILLERS, AcceptingTable, find_judged, load_accepting
from reassure_mutation.table import Table, find_worlds, load_table
from reassure_spec.readings import PROFILES

OF_CONTROLLERS: Final = (kills.UNREACHED, kills.SAME, kills.ALLOWED)
OF_JUDGES: Final = (accepting.UNASKED, accepting.SAME, accepting.WORDS, accepting.OPEN)

WHAT: Final = """\
Every function of the rules is changed in one place, by the operators of
`mutation/reassure_mutation/operators.py`. A *mutant of the controller* decides by the changed
function what to do next. It is killed where the judge refuses one of its writes, or where it comes
to rest and something is owed. A *mutant of the judge* decides by it what to accept. It is killed by
a question that it answers otherwise: one that a test case of the spec puts, one that a right
controller puts on its way through the worlds, or one that a mutant of the controller puts where it
is killed.

What survives has its reason. *The same in every state* and *the same answer* were found by asking,
which is no proof: a mutant of the judge that survives is put over a thousand questions besides,
drawn from those that come to the function and changed in a few places. *Open* says that one of
these is answered otherwise, so that nothing that is recorded pins it. Two profiles whose rules are
the same functions have the same mutants of the judge; the table of one stands for both."""


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


def load_allowed(profile: str) -> dict[str, tuple[str, str]]:
    """Return by function the clause that allows what its mutants do otherwise, and why."""
    found: dict[str, tuple[str, str]] = {}
    for module in find_worlds(profile):
        file = Path(module.__file__ or "").parent / "allowed.toml"
        said = tomllib.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        found |= {name: (each["clause"], each["reason"]) for name, each in said.items()}
    return found


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


def _render_judges(table: AcceptingTable) -> Iterator[str]:
    killed = {name: kill.by for name, kill in table.killed.items()}
    yield from ("", "### Mutants of the judge", "")
    yield from _count((*KILLERS, *OF_JUDGES), killed, table.survivors)
    yield ""
    yield from _list_survivors(table.survivors)


def render_mutation() -> str:
    """Return the matrix by function, with the survivors and the reasons, profile by profile."""
    lines = [WHAT]
    for profile in PROFILES:
        tables = list(_list_tables(profile))
        judged = load_accepting(profile) if profile in find_judged() else None
        if tables or judged:
            lines += ["", f"## {profile}"]
        if tables:
            lines += _render_controllers(profile, tables)
        if judged:
            lines += _render_judges(judged)
    return make_page("Mutants of the rules", *lines)


def format_scores() -> str:
    """Return the table of the README: by profile, how many mutants of the rules are killed."""
    rows = []
    for profile in PROFILES:
        tables = list(_list_tables(profile))
        killed = sum(len(table.killable) for table in tables)
        every = killed + sum(len(table.survivors) for table in tables)
        judged = load_accepting(profile) if profile in find_judged() else None
        if tables or judged:
            rows.append(
                (
                    f"`{profile}`",
                    f"{killed:,} of {every:,}" if tables else "-",
                    "-" if judged is None else _score_judge(judged),
                )
            )
    return "\n".join(make_table(("profile", "of the controller", "of the judge"), rows))


def _score_judge(table: AcceptingTable) -> str:
    opened = sum(why.startswith(accepting.OPEN) for why in table.survivors.values())
    every = len(table.killed) + len(table.survivors)
    return f"{len(table.killed):,} of {every:,}" + (f", {opened} open" if opened else "")
