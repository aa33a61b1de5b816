"""The fleet over time: the part of an audit's page that tells more than violations."""

import json
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from reassure_conformance.answers.auditing import audit_document, render_audit
from reassure_conformance.report.display import show_duration
from reassure_conformance.report.document import result_schema
from reassure_conformance.report.fleet import draw_fleet
from reassure_conformance.report.page import render_page
from reassure_lab.archives.sample import SampleCluster
from reassure_lab.protocols.kip_236.synthetic import Size, write_archive
from reassure_zookeeper.txnlog_writer import write_log

AskPage = Callable[[str, str], list[str]]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The document of an audit of two archives, with facts."""
    place = tmp_path_factory.mktemp("fleet")
    write_archive(place / "made", Size(3_000, 20, 10, 1))
    cluster = SampleCluster(chroot="/kafka", time_ms=10**12)
    cluster.create_topic("<i>orders", {0: (1, 2, 3)})
    cluster.kill(1)
    cluster.time_ms += 20_000
    cluster.elect(2)
    cluster.write_state("<i>orders", 0, leader=4, isr=(4,))
    (place / "other").mkdir()
    write_log(place / "other", cluster.transactions)
    document = audit_document([place / "made", place / "other"], "kip-236", {}, None, facts=True)
    result: dict[str, Any] = json.loads(document.as_json())
    return result


def test_bars_are_as_high_as_what_they_stand_for(told: dict[str, Any]) -> None:
    """In the picture of the elections the bars have the proportions of the document."""
    facts = told["facts"]
    section = draw_fleet(told)
    picture = section[section.index('id="t-elections"') :]
    clean = re.search(r'class="f-skip" d="([^"]*)"', picture)
    assert clean is not None
    drawn = {
        int(number): float(height)
        for number, height in re.findall(r"M(\d+) [\d.]+v-([\d.]+)h", clean[1])
    }
    series, width = facts["series"]["elections"], facts["bin_ms"]
    start = facts["from_ms"] // width
    sums: dict[int, int] = {}
    for name in series.values():
        for since, value in name.items():
            sums[int(since) // width - start] = sums.get(int(since) // width - start, 0) + value
    expected = {
        int(since) // width - start: 100 * value / max(sums.values())
        for since, value in series["clean"].items()
    }
    assert drawn == pytest.approx(expected, abs=0.006)


def test_tables_say_what_is_not_at_rest_at_the_end(told: dict[str, Any]) -> None:
    """Partitions behind, most urgent first, and the oldest reassignments that have not ended."""
    facts = told["facts"]
    _, _, section = draw_fleet(told).partition("<h3>Behind at the end</h3>")
    behind, _, moves = section.partition("<h3>Reassignments under way at the end</h3>")
    moves = moves[: moves.index("<h3>")]
    at_end, oldest = facts["at_end"], facts["reassignments"]["oldest_under_way"]
    counted = f"{at_end['offline']} without a leader, {at_end['under']} under-replicated, "
    assert f"{counted}{at_end['moving']} behind in a move" in behind
    for part, records in ((behind, at_end["partitions"]), (moves, oldest)):
        names = re.findall(r'<td class="name"[^>]*>([^<]*)</td>', part)
        expected = [f"{each['topic']}-{each['partition']}" for each in records[:10]]
        assert [unescape(name).rpartition("/")[2] for name in names] == expected
        assert len(expected) == 10
    assert "/kafka/<i>orders-0" in unescape(behind)
    assert "<i>orders" not in behind + moves
    more = len(at_end["partitions"]) - 10
    assert f"and {more} more partitions" in behind
    assert f"and {facts['reassignments']['under_way'] - 10} more later ones" in moves


def test_upper_edges_say_how_much_of_what(told: dict[str, Any]) -> None:
    """The number above a plot is its highest bar's, with its unit; nothing is no bar."""
    facts = told["facts"]
    changes = facts["series"]["in_sync"].values()
    most = max(value for bins in changes for value in bins.values())
    per_bin = f"in {show_duration(facts['bin_ms'])}"
    above = re.findall(r'<span class="top">([^<]*)</span>', draw_fleet(told))
    assert len(above) == 4
    assert above[2] == f"{most} either way {per_bin}"
    assert above[0].endswith(" partitions")
    assert above[3].endswith(f" {per_bin}")
    calm = {**told, "facts": {**facts, "series": {}}}
    assert re.findall(r'<span class="top">([^<]*)</span>', draw_fleet(calm)) == ["none"] * 4


def test_shades_are_explained_where_there_are_several(told: dict[str, Any]) -> None:
    """The key goes from one finding to the most that a bin of one clause has."""
    facts = told["facts"]
    start = str(facts["from_ms"] // facts["bin_ms"] * facts["bin_ms"])
    series = {"violations": {"election.clean": {start: 7}}}
    section = draw_fleet({**told, "facts": {**facts, "series": series}})
    key = section[section.index("Findings by clause") :]
    assert re.search(r'<ul class="key">.*?>1<.*?class="s5".*?>7<', key)
    series["violations"]["election.clean"][start] = 1
    section = draw_fleet({**told, "facts": {**facts, "series": series}})
    assert 'class="words"' not in section


def test_fleet_names_places_and_escapes_them(told: dict[str, Any]) -> None:
    """Names come from znodes, so they are text; each finding's clause has a row with its count."""
    section = draw_fleet(told)
    assert "/kafka/&lt;i&gt;orders-0" in section
    assert "<i>orders" not in section
    for clause, bins in told["facts"]["series"]["violations"].items():
        row = f"{clause} <span>{sum(bins.values())}</span>"
        assert row in section or "other clauses" in section
    assert 'class="none"' in section, "the time without a controller"
    assert section.count('role="img"') >= 6
    for each in re.findall(r'aria-labelledby="([^"]+)"', section):
        assert all(f'id="{name}"' in section for name in each.split())


def test_moment_is_chosen_by_keyboard_and_by_pointer(
    told: dict[str, Any], ask_page: AskPage
) -> None:
    """The arrows go from bin to bin, and what is read there is what the document says."""
    script = """
    const axis = document.getElementById("axis"), told = document.getElementById("told");
    const press = key => axis.dispatchEvent(new KeyboardEvent("keydown", {key}));
    press("ArrowRight"); said.push(axis.getAttribute("aria-valuenow"), told.textContent);
    press("End"); said.push(axis.getAttribute("aria-valuenow"));
    press("ArrowLeft"); said.push(axis.getAttribute("aria-valuenow"));
    const plot = document.querySelector("#fleet .plot"), box = plot.getBoundingClientRect();
    plot.dispatchEvent(new PointerEvent("pointermove", {clientX: box.left + 1}));
    said.push(axis.getAttribute("aria-valuenow"));
    said.push([...document.querySelectorAll("#fleet .mark")].every(m => !m.hidden));
    """
    now, read, last, before, pointed, marked = ask_page(render_page(told), script)
    facts = told["facts"]
    width = facts["bin_ms"]
    count = facts["to_ms"] // width - facts["from_ms"] // width + 1
    assert (now, last, before) == ("1", str(count), str(count - 1))
    assert (pointed, marked) == ("1", "true")
    start = str(facts["from_ms"] // width * width)
    assert f"joined {facts['series']['in_sync']['joined'][start]}" in read


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_fleet_fits_any_window(told: dict[str, Any], ask_page: AskPage, width: int) -> None:
    """Nothing is wider than the window, every picture has some size, nothing is loaded."""
    inner = render_page(told)
    quoted = json.dumps(inner).replace("</", "<\\/")
    frame = f'<iframe id="f" style="width:{width}px;height:900px;border:0"></iframe>'
    page = f"<!doctype html><html><head><title></title></head><body>{frame}</body></html>"
    script = f"""
    const frame = document.getElementById("f");
    frame.srcdoc = {quoted};
    frame.onload = () => {{
      const root = frame.contentDocument.documentElement;
      const small = [...frame.contentDocument.querySelectorAll("#fleet svg, #fleet .lane")]
        .filter(e => e.getBoundingClientRect().width < {width} / 3);
      document.title = [root.scrollWidth <= {width}, small.length].join("|");
    }};
    """
    assert ask_page(page, script) == ["true", "0"]
    assert re.findall(r'(?:src|href)="(?!data:|#)[^"]*"', inner) == []


def test_page_stays_small_however_large_the_fleet_is(told: dict[str, Any]) -> None:
    """Of 500 archives, 300 clusters and 170 clauses there is a page of less than a megabyte."""
    archive, facts = told["archives"][0], json.loads(json.dumps(told["facts"]))
    archives = [{**archive, "path": f"/var/lib/{n}", "violations": n} for n in range(500)]
    bins = facts["series"]["violations"].popitem()[1]
    facts["series"]["violations"] = {f"area.clause-{n}": bins for n in range(170)}
    (term, *_) = facts["controllers"]["latest"]
    terms = [{**term, "archive": f"/var/lib/{n}"} for n in range(100)]
    facts["controllers"]["latest"] = terms
    page = render_page({**told, "archives": archives, "facts": facts})
    assert len(page.encode()) < 1_000_000
    assert "/var/lib/499<" in page
    assert "and 450 more" in page
    assert "158 other clauses" in page


def test_many_violations_leave_the_page_small(told: dict[str, Any]) -> None:
    """Of 30,000 findings a page holds the first of each clause, and counts the others."""
    (record, *_) = told["violations"]
    long = {**record, "before": "x" * 5_000}
    found = [{**long, "clause": f"area.clause-{n % 150}", "zxid": n} for n in range(30_000)]
    beyond = {"violations": {"area.clause-7": 12_345}, "not_followed": {}, "unsettled": {}}
    page = render_page({**told, "violations": found, "not_listed": beyond})
    assert len(page.encode()) < 5_000_000
    shown = 2_000 // 150
    assert f"<code>area.clause-7</code> {12_345 + 200 - shown:,} more" in page
    assert f"<code>area.clause-8</code> {200 - shown} more" in page
    assert "and 4400 characters more" in page


@pytest.mark.parametrize("asked", [True, False])
def test_facts_are_told_in_short_on_a_terminal(tmp_path: Path, asked: bool) -> None:
    """People see the sums without asking for JSON, and only where facts were asked for."""
    write_archive(tmp_path / "made", Size(1_000, 20, 0, 1))
    document = audit_document([tmp_path / "made"], "kip-236", {}, None, facts=asked)
    text = render_audit(document, "pretty")
    assert ("Elections" in text) == asked
    if asked:
        facts = document.as_dict()["facts"]
        assert f"{facts['reassignments']['completed']} completed" in text
        assert f"Elections        {facts['elections']['clean']} clean, 0 unclean" in text


def test_no_facts_no_section(told: dict[str, Any]) -> None:
    """Without facts there are the archives alone, and of one archive nothing."""
    plain = {name: value for name, value in told.items() if name != "facts"}
    assert 'id="fleet"' not in draw_fleet(plain)
    assert 'id="archives"' in draw_fleet(plain)
    assert draw_fleet({**plain, "archives": plain["archives"][:1]}) == ""


def test_facts_are_described_field_by_field(told: dict[str, Any]) -> None:
    """The schema allows no field of the facts that it does not name."""
    from jsonschema import Draft202012Validator

    validator = Draft202012Validator(result_schema())
    validator.validate(told)
    broken = json.loads(json.dumps(told))
    broken["facts"]["elections"]["disputed"] = 1
    assert not validator.is_valid(broken)
