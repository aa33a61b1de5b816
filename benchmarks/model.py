"""How fast the reference model steps: steps per second, plain Python, one core.

A seeded random walk over the whole-partition system: at each state every enabled action is listed
and one of them is taken. Listing is not counted, as whoever explores does it once a state; the
figure with it is given beside.

    python benchmarks/model.py [STEPS] [ROUNDS]
"""

import platform
import random
import statistics
import sys
import time

from reassure_model.outcome import Accepted
from reassure_model.protocols.kip_236.system import Submit, enabled, make_system, step
from reassure_spec.readings import get_profile

TARGET = 40_000
ASKED = tuple(map(Submit, ((2, 3), (3, 4), (1, 2), (2, 1), (1, 2, 3))))
WALK = 60
"""Steps before a walk begins anew, as a partition that has settled does little."""


def walk(steps: int, profile: str, seed: int) -> tuple[float, float]:
    """Take so many steps; return the seconds of the steps, and of the steps and the listing."""
    chooser = random.Random(seed)
    readings = get_profile(profile)
    stepping = listing = 0.0
    for number in range(steps):
        if number % WALK == 0:
            system = make_system((1, 2), (1, 2, 3, 4))
        begin = time.perf_counter()
        actions = enabled(system, readings, ASKED)
        listed = time.perf_counter()
        action = chooser.choice(actions)
        chosen = time.perf_counter()
        outcome = step(system, action, readings)
        stepping += time.perf_counter() - chosen
        listing += listed - begin
        if isinstance(outcome, Accepted):
            system = outcome.state
    return stepping, stepping + listing


def main() -> int:
    """Print the medians; answer 1 where the target is missed."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    print(f"{steps:,} steps, median of {rounds}, {platform.platform()}, ", end="")
    print(f"Python {platform.python_version()}")
    missed = False
    for profile in ("kip-236", "kip-236-amended"):
        times = [walk(steps, profile, seed) for seed in range(rounds)]
        alone, listed = (statistics.median(column) for column in zip(*times, strict=True))
        missed = missed or steps / alone < TARGET
        print(f"{profile:>16}: {steps / alone:>9,.0f} steps/s", end="")
        print(f", {steps / listed:>9,.0f} with listing what is enabled")
    print(f"target {TARGET:,}: {'MISSED' if missed else 'met'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
