"""Explore every standard scope to its end and print its counts, as `counts.toml` keeps them.

    python benchmarks/explorer_counts.py [--all] [SCOPE...]

Each scope is explored under its own profile and as amended. `--all` takes in `large`, which needs
minutes and 24 GiB. Exit code 1 where a number differs from the one that is kept.
"""

import sys

from reassure_explorer.scopes.catalogue import COUNTS, MEETINGS, SCOPES, explore_scope
from reassure_spec.profiles import AMENDED_PROFILE

LARGE = ("large",)


def main() -> int:
    """Print a line for each scope and profile."""
    asked = [name for name in sys.argv[1:] if not name.startswith("-")]
    scopes = {**SCOPES, **{n: s for n, s in MEETINGS.items() if (n, s.profile) in COUNTS}}
    names = asked or [n for n in scopes if n not in LARGE or "--all" in sys.argv]
    different = 0
    for name in names:
        for profile in dict.fromkeys((scopes[name].profile, AMENDED_PROFILE)):
            result = explore_scope(name, profile=profile, keep_going=True).result
            counts = (result.distinct, result.generated, result.depth)
            kept = COUNTS.get((name, profile))
            seconds = f"{result.seconds:.1f} s and {result.seconds_compiling:.1f} s to load"
            broken = len(result.violations)
            print(f"{name} = {list(counts)}  # {profile}: {seconds}, {broken} broken", flush=True)
            if counts != kept:
                different += 1
                print(f"  kept: {kept}", flush=True)
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
