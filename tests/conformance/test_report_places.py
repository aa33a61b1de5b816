"""Where reports say that something is wrong."""

import pytest

from reassure_conformance.report.display import describe_not_followed


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
