"""The page that is made from a result, opened from disk in a real browser and clicked."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from reassure_conformance.report.document import Document
from reassure_conformance.report.lifecycle import list_drawings, list_ways
from reassure_conformance.report.page import render_page
from reassure_explorer.lifecycle import find_lives
from reassure_explorer.protocols.kip_236.stages import MOVES
from reassure_spec.clauses import clauses_of_profile
from reassure_spec.profiles import PROTOCOLS

Ask = Callable[[dict[str, Any], str], list[str]]
PARTITION = {
    "assigned": [1, 2],
    "leader": 1,
    "isr": [1, 2],
    "leader_epoch": 4,
    "target": None,
    "requests": [],
}
BROKEN = "drop.before-expansion"
CLAUSES = len(clauses_of_profile("kip-236"))
GATED = ("kip-236", "kip-236-amended", "kip-236-legacy", "kip-46", "kafka-42", "kafka-4485")
"""The profiles that the gate runs."""


def make_write(zxid: int, **more: Any) -> dict[str, Any]:
    """Return the row of a controller's write."""
    content = f'{{"version":1,"leader":1,"leader_epoch":{zxid},"isr":[1,2]}}'
    return {
        "zxid": zxid,
        "time_ms": 1_700_000_000_000 + zxid,
        "lane": "controller 1001",
        "gist": f"= orders-0/state leader 1 isr [1, 2] epoch {zxid}",
        "changes": [
            {"path": "/brokers/topics/orders/partitions/0/state", "before": None, "after": content}
        ],
        "due": {"orders-0": f"assigned [{zxid % 7}, 2] (expand.carried-out)"},
        "state": {"orders-0": {**PARTITION, "leader_epoch": zxid}},
        "ended": [],
        "broken": [],
        **more,
    }


def make_result(steps: int, *, violated: bool = True) -> dict[str, Any]:
    """Return the document of a run whose story has so many steps, each with a transaction."""
    rows: list[dict[str, Any]] = []
    for number in range(1, steps + 1):
        rows.append({"step": f"request orders-0 to {number % 5}", "result": "ok", "why": ""})
        rows.append(make_write(2 * number))
    rows.append(make_write(2 * steps + 1, lane="broker 2", ended=["broker 2"]))
    rows.append(make_write(2 * steps + 2, gist="= <b>orders</b>", broken=[BROKEN]))
    verdicts = {BROKEN: "violated" if violated else "holds", "request.consumed": "not exercised"}
    clauses = [
        {
            "id": clause.id,
            "level": clause.level,
            "verdict": verdicts.get(clause.id, "holds"),
            "exercised": 0 if clause.id == "request.consumed" else 3,
            "undecided": 0,
        }
        for clause in clauses_of_profile("kip-236")
    ]
    lanes = ["client", "controller 1001", "broker 2", "ZooKeeper"]
    body = {
        "implementation": {"name": "page-test"},
        "clauses": clauses,
        "violations": [],
        "timeline": {"lanes": lanes, "rows": rows} if violated else None,
        "story": [f"step {number}" for number in range(3)] if violated else [],
        "clause": BROKEN if violated else None,
        "directory": "runs/it's <here>",
    }
    verdict = "violated" if violated else "holds"
    counts = {"steps": steps}
    document = Document("run", verdict, 1.5, counts, 7, "kip-236", body=body)
    return document.as_dict()


@pytest.fixture
def ask(ask_page: Callable[[str, str], list[str]]) -> Ask:
    """What returns what a script says in the page of a result, after it has clicked around."""
    return lambda result, script: ask_page(render_page(result), script)


FILTERS = """
const rows = () => [...document.querySelectorAll("#table tbody tr")].filter(r => !r.hidden);
const pick = o => document.querySelector(`.filters [data-o="${o}"]`).click();
const find = w => { document.getElementById("find").value = w;
                    document.getElementById("find").dispatchEvent(new Event("input")); };
said.push(rows().length);
pick("failed"); said.push(rows().length, rows()[0].querySelector(".name").textContent);
find("no such word"); said.push(rows().length, document.getElementById("none").hidden);
pick(""); find("REQUEST.CONSUMED"); said.push(rows().length);
"""
CRASHES = """
const count = q => document.querySelectorAll(".sheet svg " + q).length;
said.push(count(".x"), count(".off"), count(".b.d"));
"""
FAR = """
const film = document.querySelector("#story .film"), map = document.querySelector("#story .map");
const high = () => film.querySelector(".rows button").offsetHeight;
const middle = () => Math.round((film.scrollTop + film.clientHeight / 2) / high());
map.onclick({ offsetX: map.clientWidth / 2 });
const before = middle(), close = high();
document.querySelector("#story .out").click();
said.push(Math.abs(before - 500) < 10, Math.abs(middle() - before) < 10, high() < close);
"""
LONG = """
const drawn = () => [...document.querySelectorAll("[data-r]")].map(b => +b.dataset.r);
said.push(drawn().length < 200, Math.max(...drawn()));
said.push(document.querySelector("#story .detail").textContent.includes("breaks"));
document.querySelector("#story .film").scrollTop = 0;
document.querySelector("#story .film").onscroll();
said.push(Math.min(...drawn()), drawn().length < 200);
"""


@pytest.mark.parametrize(
    ("steps", "script", "expected"),
    [
        pytest.param(1, FILTERS, f"{CLAUSES}|1|{BROKEN}|0|false|1", id="filters leave what fits"),
        pytest.param(2, CRASHES, "1|1|1", id="a dead broker has a cross, its lane is dotted"),
        pytest.param(500, FAR, "true|true|true", id="zoom keeps the place, the strip leads on"),
        pytest.param(5_000, LONG, "true|10001|true|0|true", id="only what is looked at is drawn"),
    ],
)
def test_page_answers_clicks(ask: Ask, steps: int, script: str, expected: str) -> None:
    """What somebody does on the page of a story has the effect that it should."""
    assert ask(make_result(steps), script) == expected.split("|")


def test_selected_row_has_model_beside_real(ask: Ask) -> None:
    """The broken row is selected first; the arrow key leads on; each shows model and reality.

    A step that is selected shows the transactions that came before the next step.
    """
    script = """
    const panel = document.querySelector("#story .detail");
    said.push(panel.textContent);
    document.querySelector("#story .film").dispatchEvent(
      new KeyboardEvent("keydown", {key: "ArrowUp"}));
    said.push(panel.textContent);
    document.querySelector("[data-r='0']").click();
    said.push(panel.textContent);
    """
    first, then, step = ask(make_result(3), script)
    assert "model: next write" in first and "expand.carried-out" in first
    assert f"breaks {BROKEN}" in first and "<b>orders</b>" in first
    assert '"leader_epoch":7' in first, "what stood there before"
    assert "real: broker 2" in then and "breaks" not in then
    assert "request orders-0 to 1" in step and "0x2 = orders-0/state" in step
    assert "0x4" not in step


def test_page_fits_and_loads_nothing(ask: Ask) -> None:
    """Nothing is wider than a window of 500 pixels, nothing comes from elsewhere, none is large."""
    script = "said.push(document.documentElement.scrollWidth <= innerWidth);"
    assert ask(make_result(2), script) == ["true"]
    page = render_page(make_result(2))
    loaded = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert [each for each in loaded if not each.startswith("data:")] == []
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert len(render_page(make_result(5_000)).encode()) < 5_000_000


def test_what_is_missing_is_said() -> None:
    """A page of an audit says what is missing for a verdict, and of which span that is."""
    need = "logs: what is found from 0x35 up to 0x48 is not certain, <so> add a file"
    result = make_result(2)
    assert "Needed:" not in render_page(result)
    page = render_page({**result, "needs": [need]})
    assert "up to 0x48 is not certain, &lt;so&gt; add a file</p>" in page


RECORD = {
    "clause": BROKEN,
    "topic": "orders",
    "partition": 0,
    "author": "controller 1001",
    "time_ms": 0,
    "before": "assigned [1, 2]",
    "after": "assigned [1, 2, 3]",
    "reason": "expanded <too> early",
    "expected": "assigned [1]",
    "besides": [],
    "zxid": 8,
    "path": "/brokers/topics/orders",
    "session": "0x1",
}


def test_violations_are_listed_and_have_their_diagrams(ask: Ask) -> None:
    """Each violation has its evidence once it is opened, 50 at a time, and its own diagram.

    There its row is selected; of what no story tells there is none.
    """
    result = make_result(3)
    result["violations"] = [RECORD, *({**RECORD, "zxid": 1000 + n} for n in range(69))]
    script = """
    const list = document.getElementById("list"), items = () => [...list.children];
    said.push(items().length, items()[0].children.length);
    document.getElementById("more").click();
    said.push(items().length, document.getElementById("more").hidden);
    for (const item of items().slice(0, 2)) item.querySelector("summary").click();
    said.push(items()[0].textContent.includes("expanded <too> early"));
    said.push(items()[1].querySelector(".film") === null);
    const own = items()[0];
    said.push(own.querySelectorAll(".film .sheet svg .d").length > 3);
    said.push(own.querySelector(".detail").textContent.includes("breaks"));
    said.push(own.querySelector("[aria-current]").textContent.includes("<b>orders</b>"));
    """
    assert ask(result, script) == ["50", "1", "70", *["true"] * 6]


def test_known_failures_and_advice_have_their_diagrams(ask: Ask) -> None:
    """What counts for no verdict is listed for what it is, each with the diagram of its own story.

    A run that holds has these alone, and no story of a failure.
    """
    result = make_result(1, violated=False)
    advice = {**RECORD, "clause": "isr.pseudo.close-follower", "zxid": 4}
    known = {**RECORD, "clause": "request.consumed", "zxid": 8}
    result["not_followed"] = [{**advice, "zxid": 99}, advice]
    result["asides"] = [
        {"known": is_known, "violation": record, "story": [], "timeline": timeline}
        for is_known, record, timeline in (
            (False, advice, make_result(1)["timeline"]),
            (True, known, make_result(3)["timeline"]),
        )
    ]
    script = """
    const items = [...document.getElementById("list").children];
    for (const item of items) {
      item.querySelector("summary").click();
      const film = item.querySelector(".film");
      const row = film && item.querySelector("[aria-current]").textContent.slice(0, 3);
      said.push(item.querySelector("summary .pill").textContent, row);
    }
    said.push(document.getElementById("story") === null);
    """
    said = ["warning", "0x4", "known", "0x8", "true"]
    assert ask(result, script) == said


def test_explored_violation_shows_its_states(ask: Ask) -> None:
    """The states of an explored violation are a table of the fields that change."""
    states = [
        {"action": None, "state": {"isr": [1], "other": 1}},
        {"action": "request 2", "state": {"isr": [1, 2], "other": 1}},
    ]
    broken = {"clause": BROKEN, "reason": "why", "steps": 1, "story": states}
    body = {"scope": "x", "violations": [broken], "coverage": {}}
    result = Document("explore", "violated", 1.0, {"distinct": 2}, body=body).as_dict()
    script = """
    said.push(...[...document.querySelectorAll("#list th, #list .now")].map(e => e.textContent));
    """
    assert ask(result, script) == ["action", "isr", "[1, 2]"]


def test_page_says_the_verdict_first_and_how_to_repeat() -> None:
    """The verdict comes before anything else, then what is wrong, with the command; all escaped."""
    page = render_page(make_result(1))
    body = page[page.index("<body>") :]
    places = [body.index(each) for each in ("<h1>violated", 'id="failing"', 'id="asked"')]
    assert places == sorted(places)
    assert "reassure test --replay runs/it&#39;s &lt;here&gt;" in body
    assert "<here>" not in body


def test_death_is_headed_by_what_it_is() -> None:
    """The card of an implementation that died is headed by that, and says in which step it did."""
    died = {"died": "it ended with 7 in broker 2 dies", "died_after": ["broker 2 dies"]}
    result = {**make_result(2, violated=False), "verdict": "unknown", **died}
    card = render_page(result).partition('<section id="failing">')[2].partition("</section>")[0]
    assert "<h3>adapter-died</h3>" in card
    assert "alive" not in card
    assert "it ended with 7 in broker 2 dies" in card


def test_green_page_has_nothing_wrong() -> None:
    """A page of what holds has no story and nothing that is wrong, and its lifecycle."""
    page = render_page(make_result(1, violated=False))
    assert 'id="failing"' not in page
    assert 'id="story"' not in page
    assert 'class="way bad"' not in page
    assert 'id="lifecycle"' in page


def test_lifecycle_has_every_move_of_the_model() -> None:
    """The picture has each move of the model's table, and those that break a clause stand out."""
    life = find_lives()["kip-236"]
    ways = list_ways(life)
    assert {(way.before, way.after) for way in ways} == {
        (before, after) for (before, _), move in MOVES.items() for after in move.to
    }
    (drawn,) = (each for each in list_drawings(make_result(1)) if each.protocol == "kip-236")
    assert drawn.svg.count('class="way ') == len(ways)
    assert drawn.svg.count('class="way bad"') == sum(BROKEN in way.clauses for way in ways) > 0
    assert drawn.svg in render_page(make_result(1))


@pytest.mark.parametrize("profile", GATED)
def test_every_gated_profile_has_its_life_drawn(profile: str) -> None:
    """Under each profile that the gate runs there is a drawing, none cut off, of what it is about.

    What was exercised stands beside what was not; a profile that builds on another has both.
    """
    clauses = clauses_of_profile(profile)
    rows = [
        {"id": c.id, "level": c.level, "verdict": "holds", "exercised": n % 2, "undecided": 0}
        for n, c in enumerate(clauses)
    ]
    result = Document("run", "holds", 1.0, {}, profile=profile, body={"clauses": rows}).as_dict()
    drawings = list_drawings(result)
    told = [each for each in PROTOCOLS[profile] if each in find_lives()]
    assert [each.protocol for each in drawings] == told != []
    for drawing in drawings:
        width = float(re.findall(r'viewBox="0 0 (\d+) ', drawing.svg)[0])
        places = [float(x) for x in re.findall(r'<text x="(-?\d+)"', drawing.svg)]
        assert all(8 <= place <= width - 30 for place in places), drawing.protocol
    assert {"ok", "part", "none"} & set(re.findall(r'class="way (\w+)"', drawings[0].svg))


def test_kill_matrix_has_a_spot_for_each_fault() -> None:
    """Each killed fault has one spot, in the column of its clause's area; survivors stand out."""
    kill = {"fault": "drop-skipped", "outcome": "killed", "clause": BROKEN, "expected": True}
    kill |= {"steps": 3, "story": ["create orders with 1"], "examples": 0, "repeats": True}
    kill |= {"seconds": 1.0, "why": ""}
    lived = {**kill, "fault": "other", "outcome": "survived", "clause": "", "steps": 0, "story": []}
    body = {"matrix": [kill, lived], "directory": "runs/x"}
    result = Document("faults", "violated", 1.0, {"faults": 2}, 1, "kip-236", body=body).as_dict()
    page = render_page(result)
    matrix = page[page.index('<section id="matrix">') :]
    assert re.findall(r'<td class="(h\d[^"]*)"[^>]*>(\d+)</td>', matrix) == [("h1", "3")]
    assert re.findall(r'class="lived" title="(\w+)"', matrix) == ["other"]


@pytest.mark.parametrize("verb", ["spec list", "prove"])
def test_any_result_has_a_page(verb: str) -> None:
    """A result without clauses or story has a page too."""
    page = render_page(Document(verb, "vacuous", None, {}).as_dict())
    assert "<h1>vacuous</h1>" in page
