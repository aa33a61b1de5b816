"""The protocols that histories are judged by: one file each, found by being here.

A file `NAME.py` in this package exports `RULES`, a subclass of `reassure_judge.rules.Rules` that
names its profiles. Nothing else has to know of it.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType
from typing import Any

from reassure_judge.rules import Rules
from reassure_spec.errors import BadConfiguration
from reassure_spec.readings import PROFILES, Readings


class NoRules(BadConfiguration):
    """A profile that the judge has no rules for, so that a verdict would mean nothing."""


@cache
def find_protocols() -> Mapping[str, type[Rules[Any, Any]]]:
    """Return the rules by profile, in the order of the profiles."""
    found: dict[str, type[Rules[Any, Any]]] = {}
    for module in iter_modules(__path__):
        rules = import_module(f"{__name__}.{module.name}").RULES
        found.update(dict.fromkeys(rules.profiles, rules))
    return MappingProxyType({profile: found[profile] for profile in PROFILES if profile in found})


def check_judged(profile: str) -> None:
    """Raise NoRules where a history cannot be held against the profile."""
    judged = find_protocols()
    if profile not in judged:
        raise NoRules(
            f"histories are not judged under profile {profile!r}: there are rules for "
            f"{' and '.join(judged)}; choose one of them with --profile"
        )


def check_driven(profile: str) -> None:
    """Raise NoRules where the gate does not know what to ask of an implementation."""
    check_judged(profile)
    driven = [name for name, rules in find_protocols().items() if name in rules.driven]
    if profile not in driven:
        raise NoRules(
            f"implementations are not driven under profile {profile!r}: they are under "
            f"{' and '.join(driven)}; its histories are judged by the verb audit"
        )


def make_rules(profile: str, readings: Readings) -> Rules[Any, Any]:
    """Return the rules of a profile under these readings; raises NoRules where there are none."""
    check_judged(profile)
    return find_protocols()[profile](profile, readings)
