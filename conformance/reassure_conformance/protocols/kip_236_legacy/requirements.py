"""What clauses on the old znode need of whom the gate drives."""

from typing import Final

from reassure_conformance.adapter import OLD_ZNODE, WATCHES
from reassure_conformance.gate.requirements import Needs
from reassure_spec.clauses import load_clauses

NEEDS: Final = Needs(
    each_of={
        **{name: (OLD_ZNODE,) for name in load_clauses() if name.startswith("legacy.")},
        "legacy.watch.one-more": (OLD_ZNODE, WATCHES),
    }
)
