"""Where reports say that something is wrong."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from reassure_conformance.report.display import render_table
from reassure_conformance.report.qualified import list_warnings
from reassure_conformance.report.terminal import describe_warnings, render_run


@pytest.mark.parametrize(
    ("place", "shown"),
    [
        ({"path": "/a", "zxid": 3}, "/a at 0x3"),
        ({"file": "b1/observations.ndjson", "line": 7}, "b1/observations.ndjson:7"),
    ],
)
def test_advice_not_followed_has_its_place_in_either_history(
    place: dict[str, object], shown: str
) -> None:
    """A write is named by znode and transaction, an observation by file and line."""
    found = {"clause": "c", "reason": "late", **place}
    assert list(describe_warnings(list_warnings({"not_followed": [found, found]}))) == [
        "Warning: c, a SHOULD or MAY, was not followed 2 times",
        f"  first at {shown}: late",
    ]


@pytest.mark.parametrize(("credit", "is_known"), [("two-cases", True), ("last-fetch", False)])
def test_advice_that_the_document_breaks_itself_names_the_findings(
    credit: str, is_known: bool
) -> None:
    """Under the readings by which its other rules break the advice, and under no others."""
    found = {"clause": "isr.pseudo.close-follower", "reason": "late", "path": "/a", "zxid": 3}
    result = {"not_followed": [found], "readings": {"lag.credit": credit}}
    told = [line for line in describe_warnings(list_warnings(result)) if "own rules" in line]
    assert [line.partition(": ")[2].partition(",")[0] for line in told] == [
        "watermark-1"
    ] * is_known


def make_report(**more: Any) -> dict[str, Any]:
    """Return what a run found: a clause of each verdict, one of them violated by a transaction."""
    verdicts = {
        "drop.keep-top": "violated",
        "request.consumed": "not exercised",
        "controller.write.epoch-checked": "not exercised",
        "request.order.sequence": "holds",
        "leader.order-preferred": "not followed",
        "election.live": "unknown",
        "message.stored-first": "not exercised",
    }
    record = {
        "clause": "drop.keep-top",
        **dict.fromkeys(("before", "after", "expected", "session", "author"), "assigned [1, 2]"),
        "reason": "dropped [2, 4], which is one too many of those that the rule says to drop",
        "path": "/brokers/topics/orders",
        "zxid": 3,
        "time_ms": 0,
    }
    written = {
        "gist": "= orders-0/state leader 1 isr [1, 2] epoch 3; = orders {0: [1, 2, 4]}",
        "zxid": 3,
        "lane": "controller 1001",
        "ended": ["broker 2"],
        "due": {},
        "broken": ["drop.keep-top"],
    }
    return {
        **dict.fromkeys(("unsettled", "died", "stale", "traceback"), ""),
        **{name: [] for name in ("not_followed", "situations")},
        "verb": "run",
        "verdict": "violated",
        "clause": "drop.keep-top",
        "violations": [record],
        "story": ["create orders with 1,2"],
        "timeline": {
            "lanes": ["client", "controller 1001", "broker 1", "broker 2", "ZooKeeper"],
            "rows": [{"step": "create orders with 1,2", "result": "ok"}, written],
        },
        "clauses": [
            {"id": name, "level": "MUST", "verdict": verdict, "exercised": 0, "undecided": 0}
            for name, verdict in verdicts.items()
        ],
        "not_exercised": ["request.consumed"],
        "seconds": 1.0,
        "counts": {"clauses_required": 5, "clauses_exercised": 4, "steps": 2},
        "implementation": {"capabilities": ["brokers", "isr"]},
        "lacking": {"kill": ["message.stored-first"]},
        "not_asked": {"message.stored-first": ["kill"]},
        "directory": "runs/demo",
        "clock": {},
        "steps": 2,
        **more,
    }


def test_verdict_says_for_what_it_is() -> None:
    """What an implementation does not declare stands beside the verdict, counted."""
    lacking = {"deletion and kill": ["c.d"], "kill": ["a.b", "a.c"]}
    green = {"verdict": "holds", "violations": [], "clauses": [], "not_exercised": []}
    report = make_report(**green, lacking=lacking, not_asked={})
    lines = render_run(report, "markdown").splitlines()
    said = "HOLDS for brokers, isr in 1.0 s: 4 of 5 clauses covered"
    assert lines[0] == f"{said}; skipped: deletion and kill (1 clause), kill (2 clauses)"
    assert render_run({**report, "lacking": {}}, "markdown").startswith("HOLDS in 1.0 s: 4 of 5")


def test_green_says_its_verdict_once_and_warnings_last() -> None:
    """Nothing that looks like a failure follows the verdict of a green run; a warning ends it."""
    advice = {"clause": "leader.order-preferred", "reason": "3 leads", "path": "/a", "zxid": 3}
    clauses = [
        {"id": name, "level": "SHOULD", "verdict": verdict, "exercised": 2, "undecided": 0}
        for name, verdict in (("a.b", "holds"), ("leader.order-preferred", "not followed"))
    ]
    green = {"verdict": "holds", "violations": [], "not_exercised": [], "lacking": {}}
    report = make_report(**green, clauses=clauses, not_followed=[advice] * 95)
    first, *others = render_run(report, "pretty").splitlines()
    assert first == "HOLDS in 1.0 s: 4 of 5 clauses covered"
    assert others == [
        "",
        "Clauses: 1 that hold, 1 with a warning; --verbose lists them.",
        "Counted: steps 2",
        "Warning: leader.order-preferred, a SHOULD or MAY, was not followed 95 times",
        "  first at /a at 0x3: 3 leads",
    ]


@pytest.mark.parametrize("verdict", ["violated", "vacuous"])
def test_only_what_wants_a_look_is_listed(verdict: str) -> None:
    """Verdict and failure come first, then clauses that do not hold; all of them if asked for."""
    text = render_run(make_report(verdict=verdict), "pretty")
    table = text[text.index("\nClauses") :]
    assert text.startswith(f"{verdict.upper()} for brokers")
    assert text.index("VIOLATED drop.keep-top") < text.index("Repeat it with") < len(text)
    shown = {line.split()[0]: line.split()[2:] for line in table.splitlines() if " MUST " in line}
    missing = {"request.consumed": ["vacuous", "0"]} if verdict == "vacuous" else {}
    assert shown == {
        "drop.keep-top": ["violated", "0"],
        **missing,
        "election.live": ["unknown", "0"],
    }
    calm = (
        f"Other clauses: {2 - len(missing)} not exercised, 1 that hold, 1 with a warning, "
        "1 skipped; --verbose lists them."
    )
    assert calm in text
    every = render_run(make_report(verdict=verdict), "pretty", verbose=True)
    assert every.count("   MUST   ") == 7
    assert "--verbose" not in every


def test_what_a_violation_cut_short_is_counted() -> None:
    """What a run did not come to, as a violation ended it, is no list before the evidence ends."""
    never = {"name": "handover", "sentence": "It is cut.", "clauses": ["a.b"], "reached": 0}
    shown = [
        render_run(make_report(verdict=verdict, situations=[never]), "pretty")
        for verdict in ("violated", "vacuous")
    ]
    assert ["Coverage goal missed: handover" in text for text in shown] == [False, True]
    assert "Required, but not exercised before the run ended: 1 clauses." in shown[0]


def strip(text: str) -> str:
    """Return text without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("width", [60, 80])
def test_narrow_terminal_tears_and_cuts_nothing(
    width: int, verbose: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 60 columns the table and the diagram fit, every name is whole, and colours are on."""
    report = make_report()
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = render_run(report, "pretty", verbose=verbose)
    assert shown.startswith("\x1b[1;31mVIOLATED\x1b[0m for brokers")
    text = strip(shown)
    drawn = [*text[text.index("\nClauses") :].splitlines()[:-2]]
    drawn += text[text.index("      a client") : text.index("Repeat it")].splitlines()
    assert max(map(len, drawn)) <= width
    assert "…" not in text
    calm = () if verbose else ("holds", "not exercised", "not followed")
    names = [each["id"] for each in report["clauses"] if each["verdict"] not in calm]
    assert set(names) <= set(text[text.index("\nClauses") :].split())
    table = render_table("T", ["clause", "what"], [["a.b", "word " * 60]], "pretty")
    assert strip(table).split().count("word") == 60


def test_pipe_has_no_colours_and_whole_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a terminal there are no escapes, and no row of a table takes a second line."""
    for name in ("FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    text = render_run(make_report(), "pretty", verbose=True)
    assert "\x1b" not in text
    names = [f"{'n' * 30}.{number}" for number in range(6)]
    table = render_table("T", names, [names], "pretty")
    assert " ".join(names) == " ".join(table.splitlines()[-2].split())
    assert all(line == line.rstrip() for line in table.splitlines())


def test_output_that_is_not_utf8_gets_plain_tables(start_process: Callable[..., Any]) -> None:
    """Where only ASCII can be written, tables are drawn with it: nothing comes out escaped."""
    words = ("spec", "list", "--profile", "kip-46")
    done = start_process(*words, env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert "\\u" not in done.stdout
    assert "-+-" in done.stdout
