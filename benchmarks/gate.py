"""How fast the gate drives what is bundled: effective steps per second, and where time goes.

Each round is a run of its own with its own embedded server and seed, generated examples only. The
steps are counted by the clock and by the processor time of this process, which hardly depends on
what else the machine does.

    python benchmarks/gate.py [EXAMPLES] [ROUNDS] [PROFILE]
"""

import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path

from reassure_conformance.gate.running import DEFAULT_PROFILE, Settings, run

TARGET = 150


def main() -> int:
    """Print the medians; answer 1 where the target is missed."""
    examples = int(sys.argv[1]) if len(sys.argv) > 1 else 150
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    profile = sys.argv[3] if len(sys.argv) > 3 else DEFAULT_PROFILE
    speeds: list[float] = []
    per_processor_s: list[float] = []
    shares: dict[str, list[float]] = {}
    for seed in range(rounds):
        settings = Settings(
            seed=seed, profile=profile, examples=examples, steps_min=0, with_stories=False
        )
        since = time.process_time()
        with tempfile.TemporaryDirectory() as scratch:
            result = run(settings, Path(scratch)).as_document()
        steps, clock = result.counts["steps"], result.body["clock"]
        speeds.append(steps / result.seconds)
        per_processor_s.append(steps / (time.process_time() - since))
        for name, seconds in clock.items():
            shares.setdefault(name, []).append(seconds / result.seconds)
    print(f"median of {rounds} runs, {platform.platform()}, Python {platform.python_version()}")
    speed = statistics.median(speeds)
    low, high = min(speeds), max(speeds)
    print(f"{speed:.0f} effective steps/s [{low:.0f}-{high:.0f}], start of the server included")
    print(f"{statistics.median(per_processor_s):.0f} for each second of this process")
    for name, found in sorted(shares.items(), key=lambda item: -statistics.median(item[1])):
        print(f"{statistics.median(found):>6.0%} {name}")
    print(f"target {TARGET}: {'MISSED' if speed < TARGET else 'met'}")
    return 1 if speed < TARGET else 0


if __name__ == "__main__":
    sys.exit(main())
