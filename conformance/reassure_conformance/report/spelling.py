"""What documents call a verb, and how it is typed.

A document keeps the name under which its kind of result was first made, so that stored results, and
programs that read them, stay as they are; only what people are told to type is spelled anew.
"""

from collections.abc import Mapping
from typing import Final

TYPED: Final[Mapping[str, str]] = {
    "run": "test",
    "smoke": "test --smoke",
    "tell": "test --case",
    "replay": "test --replay",
    "faults": "mutants",
    "new-adapter": "init",
    "watch": "audit --follow",
    "compare": "diff",
    "vectors": "scenarios --export",
    **{
        verb: f"lab {verb}"
        for verb in ("broker", "cluster", "controller", "reassign", "soak", "synth")
    },
}
"""By the name that documents have: what follows `reassure`.

Verbs once had these names. Each of them still works until the next release.
"""

_KINDS: Final = {spelled: verb for verb, spelled in TYPED.items()} | {"diff": "diff"}


def spell_verb(verb: str) -> str:
    """Return how the verb of a document is typed.

    >>> spell_verb("tell"), spell_verb("spec list"), spell_verb("cluster up")
    ('test --case', 'spec list', 'lab cluster up')
    """
    first, _, rest = verb.partition(" ")
    return f"{TYPED.get(first, first)} {rest}".rstrip()


def name_kind(verb: str, options: list[str]) -> str:
    """Return what documents call a verb that was typed with these options.

    >>> name_kind("test", ["--case", "--format"]), name_kind("audit", []), name_kind("diff", [])
    ('tell', 'audit', 'diff')
    """
    spelled = (*(f"{verb} {option}" for option in options), verb)
    return next((_KINDS[each] for each in spelled if each in _KINDS), verb)
