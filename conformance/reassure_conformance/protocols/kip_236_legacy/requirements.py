"""What clauses on the old znode need of whom the gate drives."""

from typing import Final

from reassure_conformance.adapter import EXPIRE, KILL, OLD_ZNODE, WATCHES
from reassure_conformance.gate.requirements import Needs, either
from reassure_spec.clauses import load_clauses

_BESIDES: Final = {
    "legacy.failover.": (either(EXPIRE, KILL),),
    "legacy.watch.one-more": (WATCHES,),
}
"""What clauses need beside the old znode, by the beginnings of their names."""
NEEDS: Final = Needs(
    {
        name: (
            OLD_ZNODE,
            *(need for begin, more in _BESIDES.items() if name.startswith(begin) for need in more),
        )
        for name in load_clauses()
        if name.startswith("legacy.")
    }
)
