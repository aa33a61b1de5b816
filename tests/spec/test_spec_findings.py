"""The register of findings."""

import re
from dataclasses import replace

import pytest

from reassure_spec.blocks import BadBlock
from reassure_spec.clauses import load_clauses
from reassure_spec.findings import (
    FINDINGS,
    WITHDRAWN,
    Finding,
    UnknownFinding,
    findings_of_reading,
    findings_that_break,
    get_finding,
    parse_findings,
)
from reassure_spec.readings import PROFILES, READINGS, get_profile

EACH = pytest.mark.parametrize("finding", FINDINGS, ids=lambda finding: finding.id)


def test_ids_are_unique_and_in_order() -> None:
    """Each id stands once, and the numbers of an area rise."""
    assert len({finding.id for finding in FINDINGS}) == len(FINDINGS)
    areas: dict[str, list[int]] = {}
    for finding in FINDINGS:
        match = re.fullmatch(r"([a-z]+)-(\d+)", finding.id)
        assert match is not None, finding.id
        areas.setdefault(match[1], []).append(int(match[2]))
    for numbers in areas.values():
        assert numbers == sorted(numbers)


@EACH
def test_finding_refers_to_what_exists(finding: Finding) -> None:
    """Clauses, readings and profiles of a finding are those of the spec."""
    assert set(finding.clauses) <= set(load_clauses())
    values = {reading.name: reading.values for reading in READINGS}
    for each in finding.readings:
        name, _, value = each.partition("=")
        assert value in ("", *values[name]), each
    assert finding.profiles
    assert set(finding.profiles) <= set(PROFILES)
    assert finding.instance
    assert finding.statement.endswith(".")


def test_every_number_is_a_finding_or_withdrawn() -> None:
    """No number is missing without a reason, and none that was withdrawn is given again."""
    ids = [*(finding.id for finding in FINDINGS), *(withdrawn.id for withdrawn in WITHDRAWN)]
    assert len(set(ids)) == len(ids)
    areas: dict[str, list[int]] = {}
    for each in ids:
        area, _, number = each.rpartition("-")
        areas.setdefault(area, []).append(int(number))
    for area, numbers in areas.items():
        assert sorted(numbers) == list(range(1, len(numbers) + 1)), area
    assert all(withdrawn.reason.endswith(".") for withdrawn in WITHDRAWN)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("f[area-1]\nA title.\nStatement: it is so.", "lacks Instance, Document, Profiles"),
        ("w[area-1]\nA title.", "lacks Reason"),
        ("x[area-1]\nA title.\nReason: none.", r"lacks a title, or f\[...\] or w"),
        ("f[Area]\nA title.", "is not a clause id or a finding's"),
    ],
)
def test_bad_block_names_file_and_fault(text: str, complaint: str) -> None:
    """A block that does not keep the format is refused with the file and what is wrong."""
    with pytest.raises(BadBlock, match=rf"some\.md: .*{complaint}"):
        parse_findings(text, "some.md")


def test_withdrawn_finding_says_why() -> None:
    """Asking for a finding that was taken back tells the reason."""
    with pytest.raises(UnknownFinding, match="taken back: Step 3"):
        get_finding("protocol-8")


def test_findings_are_looked_up_by_id_and_reading() -> None:
    """A finding is found by its id and by the readings it depends on; others are refused."""
    assert get_finding("drop-1") in findings_of_reading("drop.slice")
    with pytest.raises(UnknownFinding, match="reassure spec findings"):
        get_finding("drop-99")


def test_finding_breaks_its_clauses_under_the_values_that_it_names() -> None:
    """Only these, all of them, and where somebody has chosen one: what is usual keeps them."""

    def find(clause: str, chosen: tuple[str, ...], **values: str) -> list[str]:
        readings = replace(get_profile("kip-236"), **values).as_dict()
        return [each.id for each in findings_that_break(clause, readings, chosen)]

    assert find("drop.leader-kept", ("drop.slice",), drop_slice="exclusive") == ["drop-1"]
    assert find("drop.leader-kept", ("drop.slice",)) == []
    assert find("drop.leader-kept", ("offline.drop",), drop_slice="exclusive") == []
    assert find("drop.replica.states", ("drop.slice",), drop_slice="exclusive") == []
    assert find("drop.keep-top", ()) == []
    assert find("drop.keep-top", ("drop.protects",)) == ["drop-6", "drop-8"]
