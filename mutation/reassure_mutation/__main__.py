"""Make the tables of what can be killed anew: `python -m reassure_mutation [PROFILE...]`."""

import sys

from reassure_mutation.table import Table, find_worlds, make_table, save_table
from reassure_spec.readings import PROFILES


def main(profiles: list[str]) -> int:
    """Make the tables of these profiles, of all that have worlds without any."""
    pairs = ((module, each) for each in profiles or PROFILES for module in find_worlds(each))
    for module, profile in pairs:
        for found in make_table(module, profile):
            if isinstance(found, Table):
                save_table(found, module, profile)
            else:
                sys.stdout.write(f"{found}\n")
                sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
