"""Profiles and readings."""

import pytest

from reassure_spec.readings import (
    PROFILES,
    READINGS,
    Reading,
    Readings,
    UnknownReading,
    get_profile,
    override_readings,
)


def test_default_of_each_reading_is_profile_kip_236() -> None:
    """The first value of every reading is what profile kip-236 takes."""
    assert get_profile("kip-236").as_dict() == {r.name: r.values[0] for r in READINGS}


def test_profiles_take_admissible_values_only() -> None:
    """Every profile settles every reading with one of its values."""
    admissible = {reading.name: reading.values for reading in READINGS}
    for profile in PROFILES:
        for name, value in get_profile(profile).as_dict().items():
            assert value in admissible[name], (profile, name)


def test_readings_offer_a_choice_and_a_reason() -> None:
    """A reading has a name of its own, at least two values, a reason and a source."""
    assert len({reading.name for reading in READINGS}) == len(READINGS)
    for reading in READINGS:
        assert len(set(reading.values)) == len(reading.values) >= 2, reading.name
        assert reading.why, reading.name
        assert reading.source, reading.name


@pytest.mark.parametrize("reading", READINGS, ids=lambda reading: reading.name)
def test_override_changes_one_reading(reading: Reading) -> None:
    """Overriding settles the named point anew and leaves the others alone."""
    after = override_readings(Readings(), {reading.name: reading.values[1]}).as_dict()
    assert after == {**Readings().as_dict(), reading.name: reading.values[1]}


def test_unknown_names_and_values_list_known_ones() -> None:
    """A wrong profile, reading or value is refused with those there are."""
    with pytest.raises(UnknownReading, match="kip-236-amended"):
        get_profile("kip-237")
    with pytest.raises(UnknownReading, match=r"drop\.slice"):
        override_readings(Readings(), {"drop.slic": "inclusive"})
    with pytest.raises(UnknownReading, match="inclusive, exclusive"):
        override_readings(Readings(), {"drop.slice": "both"})
