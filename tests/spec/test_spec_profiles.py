"""A profile is a list of protocols and a choice of readings."""

from importlib.util import find_spec
from pkgutil import iter_modules

from reassure_model import protocols
from reassure_model.machine import find_machines
from reassure_spec.profiles import PROTOCOLS, list_profiles
from reassure_spec.readings import PROFILES


def test_every_profile_names_its_protocols() -> None:
    """Each profile has protocols, its own first, and each is a folder of the model."""
    assert set(PROTOCOLS) == set(PROFILES)
    for profile, names in PROTOCOLS.items():
        assert profile.startswith(names[0]), profile
        for name in names:
            assert find_spec(f"reassure_model.protocols.{name.replace('-', '_')}") is not None, name


def test_every_protocol_runs_under_a_profile() -> None:
    """No folder of the model, and no machine, is in no profile."""
    folders = {m.name.replace("_", "-") for m in iter_modules(protocols.__path__) if m.ispkg}
    assert all(list_profiles(name) for name in folders | set(find_machines()))
