"""What a broker with logs takes on its command line."""

import argparse
import ctypes
import subprocess
import sys

import pytest

from reassure_controller.replication.quota import Quotas
from reassure_lab.__main__ import main
from reassure_lab.node.settings import (
    NodeSettings,
    NotOnTheWire,
    add_node_options,
    read_node_settings,
)
from reassure_spec.readings import UnknownReading, get_profile


def read(*arguments: str) -> NodeSettings:
    """Return the settings that a command line asks for."""
    parser = argparse.ArgumentParser()
    add_node_options(parser)
    return read_node_settings(parser.parse_args(["--data", "d", *arguments]))


def test_usual_settings_are_those_of_the_profile() -> None:
    """Without options a broker goes by what loses no acknowledged record, without a quota."""
    settings = read()
    assert settings.rules.readings == get_profile("kip-236-amended")
    assert settings.rules.readings.follower_truncation == "common-prefix"
    assert settings.rules.rule == "lag"
    assert settings.make_quotas() == Quotas()


def test_options_reach_the_rules() -> None:
    """Profile, readings, rule, limits and quota are taken over."""
    settings = read(
        *("--profile", "kafka-4485", "--reading", "lag.initial=now", "--rule", "before"),
        *("--lag-ms", "7", "--min-insync", "2"),
        *("--segment-bytes", "100", "--quota", "50"),
        *("--message-max-bytes", "60", "--request-max-bytes", "70"),
    )
    rules, quotas = settings.rules, settings.make_quotas()
    assert (rules.readings.follower_truncation, rules.readings.lag_initial) == (
        "own-high-watermark",
        "now",
    )
    assert rules.rule == "before"
    assert (rules.lag_ms_max, rules.min_insync_replicas, settings.segment_bytes) == (7, 2, 100)
    assert (rules.batch_bytes_max, settings.request_bytes_max) == (60, 70)
    quotas.as_leader.note(("t", 0), 50, 0)
    assert quotas.as_leader.allow(("t", 0), 50, 0) == 0
    assert quotas.as_follower.allow(("t", 0), 60, 0) == 50


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (["--reading", "follower.truncation=leader-end"], NotOnTheWire, "take own-high-watermark"),
        (["--reading", "no.such=x"], UnknownReading, "no.such"),
    ],
)
def test_what_cannot_be_carried_out_is_refused(
    arguments: list[str], error: type[Exception], words: str
) -> None:
    """A reading that is not carried out, or a name that there is not, is refused by name."""
    with pytest.raises(error, match=words):
        read(*arguments)


@pytest.mark.parametrize("option", ["--lag-ms", "--min-insync", "--segment-bytes", "--quota"])
def test_numbers_below_one_are_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A limit of nothing is a mistake in the command line, and said to be one."""
    arguments = ["broker", "--zookeeper", "127.0.0.1:1", "--id", "1", "--data", "d", option, "0"]
    assert main(arguments) == 64
    assert f"{option}: expected at least 1, found 0" in capsys.readouterr().err


THREADS = """
import ctypes, sys, threading
from reassure_lab.__main__ import return_freed_memory
if sys.argv[1]:
    return_freed_memory()
met = threading.Barrier(8)
def allocate():
    kept = [bytes(1000) for _ in range(1000)]
    met.wait()
threads = [threading.Thread(target=allocate) for _ in range(8)]
for each in threads: each.start()
for each in threads: each.join()
ctypes.CDLL(None).malloc_stats()
"""


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_stats"), reason="the allocator is not that of glibc"
)
def test_threads_share_two_arenas() -> None:
    """A process of many threads keeps what they free in two places, and not in one for each."""
    found = []
    for asked in ("yes", ""):
        command = [sys.executable, "-c", THREADS, asked]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found.append(done.stderr.count("Arena "))
    assert found[0] <= 2 < found[1]
