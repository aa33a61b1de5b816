"""How soon a report can be read: a run of 5,000 steps as a page, opened in a real browser.

Makes the document of such a run, with a long story that fails and ten known failures, and its page.
Then opens the page from disk in headless Chromium, each time as a new process, and takes the
browser's own times: from the start of navigation until the document is there, until something is
painted, and until all is done; and, since that depends on what else the machine does, the processor
time that the browser takes for it, all processes together, more than for an empty page. Needs a
browser; `make browser` installs one on Debian.

    python benchmarks/report.py [STEPS] [ROUNDS] [--keep PAGE.html]
"""

import argparse
import json
import platform
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from reassure_conformance.report.document import Document
from reassure_conformance.report.page import render_page
from reassure_spec.clauses import clauses_of_profile

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr")
TARGET_MS, TARGET_MB = 1_000, 5
BROKEN = "drop.before-expansion"
KNOWN, KNOWN_STEPS = 10, 30
"""Known failures, each with a story of its own of so many steps."""
TOPICS, TRIES = 40, 4
LANES = ["client", "controller 1001", "controller 1002", *(f"broker {n}" for n in range(1, 7))]
SCRIPT = """<script>addEventListener("load", () => requestAnimationFrame(() => setTimeout(() => {
const [page] = performance.getEntriesByType("navigation"), paint = {};
for (const each of performance.getEntriesByType("paint")) paint[each.name] = each.startTime;
console.log("TIMES " + JSON.stringify({document: page.domContentLoadedEventEnd,
paint: paint["first-contentful-paint"], done: page.loadEventEnd})); }, 100)));</script>"""


def make_write(zxid: int, number: int, **more: Any) -> dict[str, Any]:
    """Return the row of a write, as `timeline` has it."""
    topic = f"orders-{number % TOPICS}"
    content = f'{{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":{zxid},"isr":[1,2,3]}}'
    return {
        "zxid": zxid,
        "time_ms": 1_700_000_000_000 + zxid,
        "lane": LANES[1 + number % 2],
        "gist": f"= {topic}-0/state leader 1 isr [1, 2, 3] epoch {zxid}",
        "changes": [
            {
                "path": f"/brokers/topics/{topic}/partitions/0/state",
                "before": None,
                "after": content,
            }
        ],
        "due": {f"{topic}-0": f"assigned [{zxid % 6 + 1}, 2, 3] (expand.carried-out)"},
        "state": {
            f"{topic}-0": {
                "assigned": [1, 2, 3],
                "leader": 1,
                "isr": [1, 2, 3],
                "leader_epoch": zxid,
                "target": [4, 5, 6] if number % 3 else None,
                "requests": [number] if number % 3 else [],
            }
        },
        "ended": [f"broker {number % 6 + 1}"] if number % 50 == 7 else [],
        "broken": [],
        **more,
    }


def make_result(steps: int) -> dict[str, Any]:
    """Return the document of a run that made so many steps until one broke a clause."""
    rows: list[dict[str, Any]] = []
    for number in range(1, steps + 1):
        rows.append({"step": f"request orders-{number % TOPICS}-0 to 4,5,6", "result": "ok"})
        rows[-1]["why"] = ""
        rows.append(make_write(number, number))
    rows.append(make_write(steps + 1, steps, broken=[BROKEN]))
    record = {
        "clause": BROKEN,
        "topic": "orders-0",
        "partition": 0,
        "author": "controller 1001",
        "time_ms": 1_700_000_000_000,
        "before": "assigned [1, 2, 3]",
        "after": "assigned [1, 2, 3, 4]",
        "reason": "expanded before the drop that is due",
        "expected": "assigned [1] (drop.carried-out)",
        "besides": [],
        "zxid": steps + 1,
        "path": "/brokers/topics/orders-0",
        "session": "0x1",
    }
    clauses = [
        {
            "id": clause.id,
            "level": clause.level,
            "verdict": "violated" if clause.id == BROKEN else "holds",
            "exercised": steps,
            "undecided": 0,
        }
        for clause in clauses_of_profile("kip-236")
    ]
    aside = {"known": True, "violation": record, "story": []}
    few = {"lanes": [*LANES, "ZooKeeper"], "rows": rows[: 2 * KNOWN_STEPS]}
    body = {
        "implementation": {"name": "benchmark"},
        "clauses": clauses,
        "violations": [record, *({**record, "zxid": n} for n in range(20))],
        "timeline": {"lanes": [*LANES, "ZooKeeper"], "rows": rows},
        "asides": [{**aside, "timeline": few} for _ in range(KNOWN)],
        "story": [row["step"] for row in rows if "step" in row],
        "clause": BROKEN,
        "directory": "runs/benchmark",
    }
    counts = {"steps": steps, "transactions": steps + 1}
    return Document("run", "violated", 1.5, counts, 7, "kip-236", body=body).as_dict()


def open_page(browser: str, page: Path, folder: Path) -> dict[str, float]:
    """Open the page in a new browser; return its times in milliseconds, of processor as well.

    A browser that is done with its picture before the page has said its times leaves those out.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [browser, *FLAGS, f"--user-data-dir={folder / 'profile'}", "--window-size=1280,900"]
    shot = f"--screenshot={folder / 'shot.png'}"
    done = subprocess.run(
        [*command, shot, page.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    found = re.search(r"TIMES (\{.*?\})", done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    times: dict[str, float] = json.loads(found[1]) if found else {}
    return {**times, "processor": 1000 * spent_s}


def main() -> int:
    """Print the medians; answer 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("steps", type=int, nargs="?", default=5_000)
    parser.add_argument("rounds", type=int, nargs="?", default=5)
    parser.add_argument("--keep", type=Path, metavar="PAGE.html", help="Leave the page here.")
    options = parser.parse_args()
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit(f"needs a browser ({', '.join(BROWSERS)})")
    result = make_result(options.steps)
    start = time.perf_counter()
    text = render_page(result)
    made_s = time.perf_counter() - start
    if options.keep:
        options.keep.write_text(text, encoding="utf-8")
    with tempfile.TemporaryDirectory() as scratch:
        page = Path(scratch) / "page.html"
        page.write_text(text.replace("</body>", f"{SCRIPT}</body>"), encoding="utf-8")
        empty = Path(scratch) / "empty.html"
        empty.write_text("<!doctype html><body>-</body>", encoding="utf-8")
        rounds: list[dict[str, float]] = []
        for _ in range(TRIES * options.rounds):
            times, idle = (open_page(browser, each, Path(scratch)) for each in (page, empty))
            times["processor"] -= idle["processor"]
            rounds += [times] if times.keys() >= {"document", "paint"} else []
            if len(rounds) == options.rounds:
                break
        else:
            sys.exit("the page does not say its times")
    megabytes = len(text.encode()) / 1e6
    print(f"{options.steps:,} steps, {megabytes:.2f} MB, made in {made_s:.1f} s,")
    print(f"median of {options.rounds}, {platform.platform()}")
    medians = {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}
    for name, median in medians.items():
        every = ", ".join(f"{each[name]:.0f}" for each in rounds)
        print(f"{name:>9}: {median:6.0f} ms  ({every})")
    return int(max(medians.values()) > TARGET_MS or megabytes > TARGET_MB)


if __name__ == "__main__":
    sys.exit(main())
