"""The verb `explain`: a name of each kind, names nearly right, and names completed by a shell."""

import os
import subprocess
import sys

import pytest

from reassure_conformance.answers.explaining import (
    KINDS,
    UnknownName,
    complete_name,
    explain_document,
    find_kinds,
)
from reassure_conformance.cli import COMPLETE
from reassure_spec.clauses import load_clauses

PROGRAM = [sys.executable, "-c", "from reassure_conformance.cli import main; main()"]


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        ("clause", "drop.keep-top", ("MUST", "KIP-236", "kip_236.drop.compute_drop")),
        ("finding", "drop-4", ("drops in-sync replicas of its own target", "drop.protects")),
        ("theorem", "drop-leader-kept", ("proved", "reassure prove drop-leader-kept")),
        ("theorem", "drop-target-in-sync-kept", ("refuted", "shows finding drop-4")),
        ("reading", "drop.slice", ("inclusive", "in no profile", "drop.keep-top", "drop-1")),
        ("reading", "drop.order", ("Refused", "by-lag by controller")),
        ("fault", "drop-skipped", ("drops nothing", "drop.before-expansion", "the controller")),
        ("fault", "credit-any-fetch", ("Changes     brokers",)),
        (
            "profile",
            "kip-46",
            ("kip-236:", "spec list --profile kip-46", "spec diff kip-236 kip-46"),
        ),
        ("profile", "kip-236-amended", ("drop.protects=target",)),
        ("scope", "small", ("three brokers", "17,507 states", "leader.in-isr")),
        ("story", "cancel", ("4. cancel orders-0", "isr", "reassure test --case cancel")),
        ("scenario", "batches/cancel-of-one", ("world ", "client.cancel.by-old-list")),
        ("capability", "kill", ("kill_controller: End the acting", "child.foreign-removed")),
        ("capability", "clock", ("advance: Let so much time pass",)),
    ],
)
def test_each_kind_is_explained(kind: str, name: str, words: tuple[str, ...]) -> None:
    """What there is to say of a name: what it is, what it belongs to, and how to try it."""
    document = explain_document(name)
    text = "\n".join(document.body["text"])
    assert document.body["kinds"] == [kind]
    assert text.startswith(f"{kind} {name}\n")
    assert [each for each in words if each not in text] == []


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("clause", "scope")])
def test_every_name_is_explained(kind: str) -> None:
    """There is something to say of each name of a kind, and names are not said twice."""
    names = list(KINDS[kind].get_names())
    assert len(set(names)) == len(names) > 0
    assert all(any(KINDS[kind].describe(name)) for name in names)


def test_name_of_two_kinds_is_explained_as_both() -> None:
    """Where a name has two meanings neither is hidden."""
    names = [name for name, _ in complete_name("")]
    twice = sorted({name for name in names if names.count(name) > 1})
    for name in twice:
        text = explain_document(name).body["text"]
        assert all(f"{kind} {name}" in text for kind in find_kinds(name))


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("drop.caried-out", "drop.carried-out (clause)"),
        ("drop-skiped", "drop-skipped (fault)"),
        ("drop-leader-ketp", "drop-leader-kept (theorem)"),
        ("drop.slise", "drop.slice (reading)"),
        ("kip-236-ammended", "kip-236-amended (profile)"),
        ("batches/cancel-of-on", "batches/cancel-of-one (scenario)"),
        ("change-in-flihgt", "change-in-flight (story)"),
        ("mesages", "messages (capability)"),
    ],
)
def test_misspelt_name_has_the_nearest(wrong: str, right: str) -> None:
    """The nearest names are looked for over all kinds, and each is told with its kind."""
    with pytest.raises(UnknownName, match="Did you mean") as caught:
        explain_document(wrong)
    assert right in str(caught.value)


def complete(*words: str, shell: str = "bash") -> list[str]:
    """Return what a shell is offered for the last word of a command line."""
    line = " ".join(("reassure", *words))
    done = subprocess.run(
        PROGRAM,
        env={
            **os.environ,
            COMPLETE: f"{shell}_complete",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words)),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["expl"], "plain,explain"),
        (["explain", "drop.keep-t"], "plain,drop.keep-top"),
        (["mutants", "drop-skip"], "plain,drop-skipped"),
        (["prove", "drop-leader-ke"], "plain,drop-leader-kept"),
        (["test", "--case", "change-in-fl"], "plain,change-in-flight"),
        (["scenarios", "batches/cancel-of-o"], "plain,batches/cancel-of-one"),
        (["explore", "--scope", "smal"], "plain,small"),
        (["test", "--profile", "kip-4"], "plain,kip-46"),
        (["test", "--fault", "drop-skip"], "plain,drop-skipped"),
        (["spec", "diff", "kip-236-l"], "plain,kip-236-legacy"),
    ],
)
def test_shell_is_offered_names(words: list[str], offered: str) -> None:
    """Verbs and the names of each kind are completed where they can stand."""
    assert offered in complete(*words)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_of_the_shell(shell: str) -> None:
    """`--completion` prints what the shell reads, which asks by the variable of the test above."""
    done = subprocess.run(
        [*PROGRAM, "--completion", shell], capture_output=True, text=True, timeout=120, check=True
    )
    assert f"{COMPLETE}={shell}_complete" in done.stdout


def test_clauses_are_names() -> None:
    """All clauses can be explained, and completed."""
    assert {name for name, _ in complete_name("", "clause")} == set(load_clauses())
