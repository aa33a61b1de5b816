"""How fast the gate drives the bundled controller: effective steps per second, and where time goes.

Each round is a run of its own with its own embedded server and seed, generated examples only.

    python benchmarks/gate.py [EXAMPLES] [ROUNDS]
"""

import platform
import statistics
import sys
import tempfile
from pathlib import Path

from reassure_conformance.gate.running import Settings, run

TARGET = 100


def main() -> int:
    """Print the medians; answer 1 where the target is missed."""
    examples = int(sys.argv[1]) if len(sys.argv) > 1 else 150
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    speeds: list[float] = []
    shares: dict[str, list[float]] = {}
    for seed in range(rounds):
        settings = Settings(seed=seed, examples=examples, steps_min=0, with_stories=False)
        with tempfile.TemporaryDirectory() as scratch:
            result = run(settings, Path(scratch))
        speeds.append(result.steps / result.seconds)
        for name, seconds in result.clock.items():
            shares.setdefault(name, []).append(seconds / result.seconds)
    print(f"median of {rounds} runs, {platform.platform()}, Python {platform.python_version()}")
    speed = statistics.median(speeds)
    low, high = min(speeds), max(speeds)
    print(f"{speed:.0f} effective steps/s [{low:.0f}-{high:.0f}], start of the server included")
    for name, found in sorted(shares.items(), key=lambda item: -statistics.median(item[1])):
        print(f"{statistics.median(found):>6.0%} {name}")
    print(f"target {TARGET}: {'MISSED' if speed < TARGET else 'met'}")
    return 1 if speed < TARGET else 0


if __name__ == "__main__":
    sys.exit(main())
