"""The register of protocols: a profile finds its rules, and loads nobody else's."""

import subprocess
import sys
from typing import Final

import pytest

from reassure_judge.judge import Judge
from reassure_judge.protocols import NoRules, find_protocols, get_observing, get_rules
from reassure_judge.rules import LOGS, OBSERVATIONS
from reassure_spec.readings import PROFILES, get_profile

ASK: Final = """
import sys
from reassure_judge.protocols import get_rules
import reassure_pipeline.audit.run_audit
get_rules(sys.argv[1])
print(*sorted(name for name in sys.modules if name.startswith("reassure_judge.")))
"""


@pytest.mark.parametrize("profile", PROFILES)
def test_profile_finds_the_rules_that_name_it(profile: str) -> None:
    """Asked for by profile are the rules that are listed for it."""
    assert get_rules(profile) is find_protocols()[profile]


@pytest.mark.parametrize(
    ("profile", "alone"),
    [("kip-236", "kip_236"), ("kip-236-amended", "kip_236"), ("kafka-4485", "kafka_4485")],
)
def test_profile_loads_the_rules_of_nobody_else(profile: str, alone: str) -> None:
    """One profile is judged without the rules of others, logs without the judge of lines.

    And who judges logs alone loads no monitor.
    """
    ran = subprocess.run(
        [sys.executable, "-c", ASK, profile], check=True, capture_output=True, text=True
    )
    loaded = ran.stdout.split()
    package = "reassure_judge.protocols."
    protocols = (name.removeprefix(package) for name in loaded if name.startswith(package))
    assert {name.partition(".")[0] for name in protocols} == {alone}
    assert not [name for name in loaded if name.startswith(package) and name.endswith(".monitor")]
    assert ("reassure_judge.observed.judge" in loaded) is (profile == "kafka-4485")


def test_rules_say_which_history_they_read() -> None:
    """The rules for observations are found by what they read, and judge no transaction log."""
    rules = get_observing()
    assert (rules.reads, get_rules("kip-236").reads) == (OBSERVATIONS, LOGS)
    (profile,) = rules.profiles
    with pytest.raises(NoRules, match="its rules read observations"):
        Judge(profile, get_profile(profile))
