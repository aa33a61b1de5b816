"""The protocols that histories are judged by: one file each, found by being here.

A module `NAME` in this package is called like a protocol and exports `RULES`, a subclass of
`reassure_judge.rules.AnyRules` that names its profiles. Where the module is a folder it may have a
file `monitor.py` that exports `MONITOR`, a subclass of `reassure_judge.monitors.Monitor`; a
protocol that no profile is named for has that alone. Nothing else has to know of it. Of a profile
that is asked for only the files of the protocols that it names are loaded.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from types import MappingProxyType, ModuleType
from typing import Any

from reassure_judge.monitors import Monitor
from reassure_judge.rules import AnyRules, ObservationRules, Rules
from reassure_spec.errors import BadConfiguration
from reassure_spec.profiles import PROTOCOLS
from reassure_spec.protocols import import_parts
from reassure_spec.readings import PROFILES, Readings


class NoRules(BadConfiguration):
    """A profile that the judge has no rules for, so that a verdict would mean nothing."""


def _import_parts(profile: str, part: str = "") -> Iterator[ModuleType]:
    """Yield the modules of a profile's protocols, each loaded when it is asked for."""
    for name in PROTOCOLS.get(profile, ()):
        yield from import_parts("reassure_judge", part, {name}).values()


def _list_rules(modules: Iterable[ModuleType]) -> Iterator[type[AnyRules]]:
    return (module.RULES for module in modules if hasattr(module, "RULES"))


@cache
def find_protocols() -> Mapping[str, type[AnyRules]]:
    """Return the rules by profile, in the order of the profiles; all files are loaded."""
    found: dict[str, type[AnyRules]] = {}
    for rules in _list_rules(import_parts("reassure_judge").values()):
        found.update(dict.fromkeys(rules.profiles, rules))
    return MappingProxyType({profile: found[profile] for profile in PROFILES if profile in found})


def get_rules(profile: str) -> type[AnyRules]:
    """Return the rules of a profile; raises NoRules where there are none."""
    rules = next(_list_rules(_import_parts(profile)), None)
    if rules is not None:
        return rules
    raise NoRules(
        f"histories are not judged under profile {profile!r}: there are rules for "
        f"{', '.join(find_protocols())}; choose one of them with --profile"
    )


def find_monitors(profile: str) -> list[type[Monitor]]:
    """Return what judges the part of a profile's protocols that logs do not show."""
    return [module.MONITOR for module in _import_parts(profile, "monitor")]


def get_observing() -> type[ObservationRules]:
    """Return the rules that observations are held against, whatever the profile of the logs."""
    every = find_protocols().values()
    return next(rules for rules in every if issubclass(rules, ObservationRules))


def check_driven(profile: str) -> None:
    """Raise NoRules where the gate does not know what to ask of an implementation."""
    if profile not in get_rules(profile).driven:
        driven = [name for name, rules in find_protocols().items() if name in rules.driven]
        raise NoRules(
            f"implementations are not driven under profile {profile!r}: they are under "
            f"{', '.join(driven)}; its histories are judged by the verb audit"
        )


def make_rules(profile: str, readings: Readings) -> Rules[Any, Any]:
    """Return a profile's rules for transaction logs; raises NoRules where there are none."""
    rules = get_rules(profile)
    if not issubclass(rules, Rules):
        raise NoRules(
            f"no transaction log is judged under profile {profile!r}: its rules read "
            f"{rules.reads}, which the verb audit takes"
        )
    made: Rules[Any, Any] = rules(profile, readings)
    return made
