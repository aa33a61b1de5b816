"""The page to step through a model, opened from disk in a real browser and clicked."""

import re
from collections.abc import Callable
from pathlib import Path

from reassure_explorer.engine.stepper import make_page
from reassure_explorer.scopes.catalogue import explore_scope, get_model


def find_text(document: str, tag: str, within: str) -> list[str]:
    """Return the texts of the elements with this tag inside the element with that id."""
    inside = re.search(rf'id="{within}"[^>]*>(.*?)(?=<h2|<summary|</section)', document, re.DOTALL)
    assert inside is not None, f"no {within} in the document"
    found = re.findall(rf"<{tag}[^>]*>(.*?)</{tag}>", inside.group(1), re.DOTALL)
    return [re.sub(r"<[^>]+>", "", text) for text in found]


CLICK = """
const pick = words => [...document.querySelectorAll("#can button")]
  .find(button => button.textContent === words).click();
"""


def test_clicks_lead_from_state_to_state(open_page: Callable[..., str], tmp_path: Path) -> None:
    """Clicked actions change the state, are listed, and the clause that forbids others is named."""
    _, model = get_model("small", "kip-236")
    script = f"""{CLICK} pick("submit [2, 3]"); pick("controller"); pick("controller");
    document.title = "height " + document.getElementById("tell").offsetHeight;"""
    document = open_page(make_page(model, states=300), tmp_path, script)
    assert find_text(document, "li", "way") == ["submit [2, 3]", "controller", "controller"]
    cells = find_text(document, "td", "state")
    assert dict(zip(cells[::2], cells[1::2], strict=True))["assigned"] == "[1 2 3]"
    assert "join 3" in find_text(document, "button", "can")
    forbidden = find_text(document, "li", "cannot")
    assert any(text.startswith("leave 1: isr.change.leader-kept: ") for text in forbidden)
    # There is no story, so that the button which tells one takes no room.
    assert "<title>height 0</title>" in document


def test_address_leads_to_the_state(open_page: Callable[..., str], tmp_path: Path) -> None:
    """The way stands in the address: opened again, the page is where it was."""
    _, model = get_model("small", "kip-236")
    page = make_page(model, states=300)
    script = f"{CLICK} pick('submit [2, 3]'); pick('controller'); document.title = location.hash;"
    first = open_page(page, tmp_path, script)
    title = re.search(r"<title>(#[0-9-]+)</title>", first)
    assert title is not None
    again = open_page(page, tmp_path, address=title.group(1))
    assert find_text(again, "li", "way") == ["submit [2, 3]", "controller"]
    assert find_text(again, "td", "state") == find_text(first, "td", "state")


def test_story_is_told_to_its_end(open_page: Callable[..., str], tmp_path: Path) -> None:
    """The button tells the story step by step, until the page says what is broken."""
    (violation,) = explore_scope("logs", profile="kafka-4485").result.violations
    _, model = get_model("logs", "kafka-4485")
    script = 'const tell = document.getElementById("tell"); while (!tell.hidden) tell.click();'
    document = open_page(make_page(model, violation.trace, 50), tmp_path, script)
    assert len(find_text(document, "li", "way")) == len(violation.trace.steps)
    broken = re.search(r'id="broken"[^>]*>(.*?)</p>', document)
    assert broken is not None and broken.group(1).startswith(violation.invariant)
