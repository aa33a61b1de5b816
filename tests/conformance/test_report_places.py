"""Where reports say that something is wrong."""

import pytest

from reassure_conformance.report.display import describe_not_followed, render_run


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
    assert list(describe_not_followed([found, found])) == [
        "NOT FOLLOWED c, 2 times",
        f"  first    {shown}: late",
    ]


def test_verdict_says_for_what_it_is() -> None:
    """What an implementation does not declare stands beside the verdict, counted."""
    report = {
        **dict.fromkeys(("unsettled", "died", "stale", "not_exercised"), ""),
        **{name: [] for name in ("violations", "not_followed", "situations", "clauses")},
        "verdict": "holds",
        "seconds": 1.0,
        "counts": {"steps": 2},
        "implementation": {"capabilities": ["brokers", "isr"]},
        "lacking": {"deletion and kill": ["c.d"], "kill": ["a.b", "a.c"]},
        "not_asked": {},
        "directory": None,
        "clock": {},
        "steps": 2,
    }
    lines = render_run(report, "markdown").splitlines()
    said = (
        "HOLDS for brokers, isr; not asked: deletion and kill (1 clause), kill (2 clauses) in 1.0 s"
    )
    assert lines[0] == lines[-1] == f"{said}: steps 2"
    assert "Not asked, as the implementation does not declare kill: a.b, a.c" in lines
    whole = {**report, "lacking": {}}
    assert render_run(whole, "markdown").startswith("HOLDS in 1.0 s: steps 2")
