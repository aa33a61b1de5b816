"""How long the proofs take, and the same property with CrossHair beside them.

    python benchmarks/proofs.py [--runs 5] [--crosshair]

Prints medians. What CrossHair answered is printed with its time: "Confirmed over all paths" is the
same result; with "Not confirmed" it has only run out of time, and the ratio is a lower bound.
CrossHair is given the drop rule with the leader kept as its contract, for lists of
at most two or three replicas; ours proves the same and certifies that no path was left out. Both
run in processes of their own, so that start-up counts for both.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

CONTRACT: Final = '''
from reassure_model.protocols.kip_236 import compute_drop
from reassure_spec.readings import Readings


def leader_kept(
    assigned: list[int], isr: list[int], leader: int, top: int, minimum: int
) -> bool:
    """
    pre: 1 <= len(assigned) <= {size} and len(set(assigned)) == len(assigned)
    pre: 1 <= len(isr) <= len(assigned) and len(set(isr)) == len(isr)
    pre: all(replica in assigned for replica in isr)
    pre: leader in isr
    pre: top >= minimum >= 1 and len(isr) >= minimum
    post: __return__
    """
    drop = compute_drop(tuple(assigned), leader, tuple(isr), top, (), Readings())
    return leader not in drop and len([r for r in isr if r not in drop]) >= minimum
'''
OURS: Final = (
    "from reassure_proofs.engine.runner import prove_all\n"
    "results = prove_all(['drop-leader-kept', 'drop-isr-at-least-min'], {size}, processes=1)\n"
    "assert [r.verdict for r in results] == ['proved', 'proved']\n"
)


def measure(command: list[str], runs: int, directory: str) -> tuple[float, str]:
    """Return the median wall time (s) and the last output of a command."""
    times, text = [], ""
    for _ in range(runs):
        started = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, cwd=directory, check=False)
        times.append(time.perf_counter() - started)
        text = (done.stdout + done.stderr).strip().splitlines()[-1:] or [""]
        text = text[0][-120:]
    return statistics.median(times), text


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--size", type=int, default=2, help="most replicas in a list")
    parser.add_argument("--limit", type=int, default=120, help="seconds that CrossHair is given")
    parser.add_argument("--crosshair", action="store_true", help="measure CrossHair as well")
    parser.add_argument("--set", action="store_true", help="measure the default set as well")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        ours = [sys.executable, "-c", OURS.format(size=given.size)]
        ours_s, _ = measure(ours, given.runs, directory)
        print(f"ours, up to {given.size} replicas: {ours_s:.2f} s (median of {given.runs})")
        if given.crosshair:
            text = CONTRACT.replace("{size}", str(given.size))
            (Path(directory) / "rule.py").write_text(text, encoding="utf-8")
            limit = f"--per_condition_timeout={given.limit}"
            options = ["--analysis_kind=PEP316", "--report_all", limit]
            command = [sys.executable, "-m", "crosshair", "check", *options, "rule.py"]
            theirs_s, said = measure(command, given.runs, directory)
            print(f"CrossHair, the same: {theirs_s:.2f} s; ratio {theirs_s / ours_s:.1f}; {said}")
        if given.set:
            command = [
                sys.executable,
                "-c",
                "from reassure_conformance.cli import run_command; run_command(['prove'])",
            ]
            set_s, said = measure(command, given.runs, directory)
            print(f"default set: {set_s:.1f} s; {said}")


if __name__ == "__main__":
    main()
