"""Start a program that has mutants of the controller from its beginning.

    python -m reassure_conformance.mutants NAME... -- MODULE [ARGUMENT]...

`MODULE` is run as by `python -m`, with what follows it. So is a controller of one's own planted:

    python -m reassure_conformance.mutants drop-skipped -- reassure_controller controller ...
"""

import runpy
import sys
from collections.abc import Sequence

from reassure_conformance.mutants import check_faults, planted
from reassure_spec.errors import BadUsage, ReassureError


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the names, and the module with its arguments. Raises BadUsage, UnknownFault."""
    if "--" not in words or not list(words)[words.index("--") + 1 :]:
        raise BadUsage("usage: python -m reassure_conformance.mutants NAME... -- MODULE [ARGUMENT]")
    place = words.index("--")
    names = list(words[:place])
    check_faults(names)
    return names, list(words[place + 1 :])


def main() -> int:
    """Run the module; its exit code is that of the process."""
    try:
        names, (module, *arguments) = split(sys.argv[1:])
        with planted(names):
            sys.argv = [module, *arguments]
            runpy.run_module(module, run_name="__main__", alter_sys=True)
    except ReassureError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
