"""A page to step through a model by hand: one HTML file that needs no network and no server.

It holds the states nearest to the start with their actions. For each state it shows the fields,
what the last step changed, the actions that are possible, and why the others are not. The way is in
the page's address, so that a state can be passed on as a link.
"""

import json
from html import escape
from typing import Any, Final

from reassure_explorer.engine.interface import Action, Model
from reassure_explorer.engine.renderings import format_value
from reassure_explorer.engine.result import Trace

MOST_STATES: Final = 2000
_BEYOND: Final = -1


def make_page(model: Model, trace: Trace | None = None, states: int = MOST_STATES) -> str:
    """Return the page, with at most about `states` states; those of the trace are among them."""
    data = json.dumps(_collect(model, trace, states), separators=(",", ":")).replace("<", "\\u003c")
    return _PAGE.replace("@TITLE@", escape(model.name)).replace("@DATA@", data)


def _collect(model: Model, trace: Trace | None, most: int) -> dict[str, Any]:
    told = [] if trace is None else [trace.initial, *(step.state for step in trace.steps)]
    numbers: dict[Any, int] = {}
    order: list[Any] = []

    def number(state: Any, *, always: bool = False) -> int:
        if state not in numbers:
            if len(order) >= most and not always:
                return _BEYOND
            numbers[state] = len(order)
            order.append(state)
        return numbers[state]

    starts = [number(state, always=True) for state in model.initial_states]
    path = [number(state, always=True) for state in told]
    records: list[dict[str, Any]] = []
    while len(records) < len(order):
        state = order[len(records)]
        possible, others = [], []
        for at, (action, parameter) in enumerate(model.instances):
            if not model.is_within(state):
                others.append([at, "the exploration ends here, outside the constraint"])
                continue
            ways = model.take(state, action, parameter)
            if not ways:
                others.append([at, _explain(action, state, parameter)])
            for way, (after, notes) in enumerate(ways):
                word = f"{at}.{way}" if way else str(at)
                possible.append([at, number(after), list(notes), word])
        broken = [f"{i.name}: {why}" for i in model.invariants if (why := i.explain(state))]
        values = [format_value(getattr(state, name)) for name in model.fields]
        records.append({"v": values, "a": possible, "n": others, "b": broken})
    return {
        "fields": list(model.fields),
        "actions": [action.describe(parameter) for action, parameter in model.instances],
        "states": records,
        "starts": starts,
        "path": path,
    }


def _explain(action: Action, state: Any, parameter: Any) -> str:
    return "" if action.why is None else action.why(state, parameter)


_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>@TITLE@, step by step</title>
<style>
body{font:14px/1.4 sans-serif;margin:1.5em;color:#222;max-width:75em}
main{display:grid;grid-template-columns:1fr 1fr;gap:2em}
table{border-collapse:collapse}td{padding:.15em .8em .15em 0;vertical-align:top}
.new{background:#fe9;font-weight:bold}.bad{color:#b00;font-weight:bold}
button{margin:.1em .6em .1em 0;padding:.3em .8em;font:inherit;cursor:pointer}
[hidden]{display:none}b{font-weight:normal;color:#248}
.no{color:#777}.small{font-size:12px}li.now{font-weight:bold}
</style></head><body>
<h1>@TITLE@, step by step</h1>
<p><button id="back">one step back (Backspace)</button>
<button id="tell" hidden>next step of the trace (right arrow)</button></p>
<main><section><h2>State</h2><p id="broken" class="bad"></p><table id="state"></table>
<h2>How it came to this</h2><ol id="way" class="small"></ol></section>
<section><h2>What can happen</h2><div id="can"></div>
<details open><summary>What cannot, and why</summary>
<ul id="cannot" class="small no"></ul></details>
</section></main>
<script id="data" type="application/json">@DATA@</script>
<script>
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const way = [[null, data.path.length ? data.path[0] : data.starts[0]]];
const get = id => document.getElementById(id);
function make(tag, text, css) {
  const element = document.createElement(tag);
  element.textContent = text;
  if (css) element.className = css;
  return element;
}
function show() {
  const now = data.states[way[way.length - 1][1]];
  const before = way.length > 1 ? data.states[way[way.length - 2][1]] : now;
  get("broken").textContent = now.b.join("; ");
  get("state").replaceChildren(...data.fields.map((field, i) => {
    const row = document.createElement("tr");
    row.append(make("td", field), make("td", now.v[i], now.v[i] === before.v[i] ? "" : "new"));
    return row;
  }));
  const taken = way.slice(1).map(step => step[0]);
  get("way").replaceChildren(...taken.map(word => make("li", data.actions[parseInt(word)])));
  get("can").replaceChildren(...now.a.map(([action, target, notes, word]) => {
    const button = make("button", data.actions[action]);
    button.disabled = target < 0;
    if (target < 0) button.textContent += " (beyond this page)";
    button.onclick = () => { way.push([word, target]); show(); };
    const row = document.createElement("div");
    row.append(button, make("span", notes.join(", "), "small no"));
    return row;
  }));
  get("cannot").replaceChildren(...now.n.map(([action, why]) => {
    const [clause, reason] = /^[a-z0-9-]+(\\.[a-z0-9-]+)+: /.test(why)
      ? [why.split(": ", 1)[0], why.slice(why.indexOf(": "))] : ["", why];
    const item = make("li", data.actions[action] + (why ? ": " : ""));
    item.append(make("b", clause), reason);
    return item;
  }));
  get("back").disabled = way.length === 1;
  get("tell").hidden = next() === null;
  const address = "#" + taken.join("-");
  if (typeof history !== "undefined") history.replaceState(null, "", address);
}
function follow(address) {
  for (const word of address.replace("#", "").split("-").filter(word => word)) {
    const now = data.states[way[way.length - 1][1]];
    const edge = now.a.find(edge => edge[3] === word && edge[1] >= 0);
    if (!edge) return;
    way.push([edge[3], edge[1]]);
  }
}
function next() {
  const at = way.length - 1;
  if (at + 1 >= data.path.length || way[at][1] !== data.path[at]) return null;
  const edge = data.states[data.path[at]].a.find(([, target]) => target === data.path[at + 1]);
  return edge ? [edge[3], edge[1]] : null;
}
function back() { if (way.length > 1) { way.pop(); show(); } }
function tell() { const step = next(); if (step) { way.push(step); show(); } }
get("back").onclick = back;
get("tell").onclick = tell;
document.addEventListener("keydown", event => {
  if (event.key === "Backspace") back();
  if (event.key === "ArrowRight") tell();
});
if (typeof location !== "undefined") follow(location.hash);
show();
</script></body></html>
"""
