"""Mistakes of brokers that clients have to notice, to show that a soak can fail.

    python -m reassure_lab.soak.own_mistakes NAME... -- MODULE [ARGUMENT]...

They are changes of text like the mutants of the gate (`reassure_conformance.mutants`), which can be
named as well; `faults.toml` has those that are made for a soak, and which guarantee they break.
"""

import runpy
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import Any

from reassure_conformance.mutants import check_faults, load_mutants
from reassure_conformance.mutants.exchange import Patch, exchanged
from reassure_spec.errors import ReassureError


def load_faults() -> Mapping[str, Mapping[str, Any]]:
    """Return the mistakes made for a soak by name: `sentence`, `guarantee` and `patches`."""
    file = resources.files("reassure_lab.soak") / "faults.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


def find_patches(names: Iterable[str]) -> tuple[Patch, ...]:
    """Return the changes of these mistakes. Raises UnknownFault."""
    own, chosen = load_faults(), set(names)
    others = sorted(check_faults(chosen - own.keys()))
    found = [Patch(**each) for name in sorted(chosen & own.keys()) for each in own[name]["patches"]]
    return (*found, *(each for name in others for each in load_mutants()[name].patches))


def start_with(names: Sequence[str], command: Sequence[str]) -> tuple[str, ...]:
    """Return a command `python ... -m MODULE ...` so that its process has these mistakes."""
    if not names:
        return tuple(command)
    place = command.index("-m") + 1
    return (*command[:place], __name__, *names, "--", *command[place:])


def main() -> int:
    """Run the module; its exit code is that of the process."""
    place = sys.argv.index("--")
    try:
        with exchanged(find_patches(sys.argv[1:place])):
            sys.argv = sys.argv[place + 1 :]
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    except ReassureError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
