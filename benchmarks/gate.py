"""How fast the gate drives what is bundled: effective steps per second, and where time goes.

Each round is a run of its own with its own embedded server and seed, generated examples only. The
steps are counted by the clock and by processor time, of this process and of ZooKeeper, which
depends less on what else the machine does; what depends on nothing else is how often ZooKeeper is
asked for anything.

    python benchmarks/gate.py [EXAMPLES] [ROUNDS] [PROFILE]
"""

import platform
import resource
import statistics
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from reassure_conformance.gate.run_settings import Settings
from reassure_conformance.gate.running import run
from reassure_controller.client import Client
from reassure_spec.profiles import DEFAULT_PROFILE

TARGET = 150
ASKED: Counter[str] = Counter()
"""How often ZooKeeper was asked for what, by Kazoo's name for it."""


def count(client: Client, request: Any, before: Any = Client.count) -> None:
    """Count a request for the whole process, as its client counts it for itself."""
    ASKED[type(request).__name__.lstrip("_")] += 1
    before(client, request)


def measure_processor_ms() -> tuple[float, float]:
    """Return what this process has used so far, and those that it started and that have ended."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    own, ended = (1000 * (each.ru_utime + each.ru_stime) for each in used)
    return own, ended


def main() -> int:
    """Print the medians; answer 1 where the target is missed."""
    examples = int(sys.argv[1]) if len(sys.argv) > 1 else 150
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    profile = sys.argv[3] if len(sys.argv) > 3 else DEFAULT_PROFILE
    Client.count = count  # type: ignore[method-assign]
    found: dict[str, list[float]] = {}
    for seed in range(rounds):
        settings = Settings(
            seed=seed, profile=profile, examples=examples, steps_min=0, with_stories=False
        )
        before = measure_processor_ms()
        ASKED.clear()
        with tempfile.TemporaryDirectory() as scratch:
            result = run(settings, Path(scratch)).as_document()
        steps = result.counts["steps"]
        own, zookeeper = (
            now - then for now, then in zip(measure_processor_ms(), before, strict=True)
        )
        figures = {
            "steps/s": steps / result.seconds,
            "ms of this process": own / steps,
            "ms of ZooKeeper": zookeeper / steps,
            "requests": ASKED.total() / steps,
            **{f"% {name}": 100 * s / result.seconds for name, s in result.body["clock"].items()},
            **{f"of them {name}": times / steps for name, times in ASKED.most_common(5)},
        }
        for name, figure in figures.items():
            found.setdefault(name, []).append(figure)
    print(f"medians of {rounds} runs, {platform.platform()}, Python {platform.python_version()}")
    print("by the clock, start of the server included; milliseconds and requests for each step")
    for name, values in found.items():
        low, high = min(values), max(values)
        print(f"{statistics.median(values):>7.2f} {name} [{low:.2f}-{high:.2f}]")
    speed = statistics.median(found["steps/s"])
    print(f"target {TARGET}: {'MISSED' if speed < TARGET else 'met'}")
    return 1 if speed < TARGET else 0


if __name__ == "__main__":
    sys.exit(main())
