"""The verb `explain`: a name of each kind, names nearly right, and names completed by a shell."""

from collections.abc import Callable
from typing import Any

import pytest
from click.shell_completion import ShellComplete

from reassure_conformance.answers.explaining import (
    KINDS,
    UnknownName,
    complete_name,
    explain_document,
    find_kinds,
)
from reassure_conformance.cli import COMPLETE, cli, run_command
from reassure_spec.clauses import load_clauses


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        ("clause", "drop.keep-top", ("MUST", "KIP-236", "kip_236.compute_drop")),
        ("clause", "drop.leader-kept", ("A drop MUST keep the leader.",)),
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


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["expl"], "explain"),
        (["explain", "drop.keep-t"], "drop.keep-top"),
        (["mutants", "drop-skip"], "drop-skipped"),
        (["prove", "drop-leader-ke"], "drop-leader-kept"),
        (["test", "--case", "change-in-fl"], "change-in-flight"),
        (["scenarios", "batches/cancel-of-o"], "batches/cancel-of-one"),
        (["explore", "--scope", "smal"], "small"),
        (["test", "--profile", "kip-4"], "kip-46"),
        (["test", "--fault", "drop-skip"], "drop-skipped"),
        (["spec", "diff", "kip-236-l"], "kip-236-legacy"),
    ],
)
def test_shell_is_offered_names(words: list[str], offered: str) -> None:
    """Verbs and the names of each kind are completed where they can stand."""
    *before, begun = words
    asked = ShellComplete(cli, {}, "reassure", COMPLETE).get_completions(before, begun)
    assert offered in [each.value for each in asked]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_of_the_shell(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--completion` prints what the shell reads, which asks by the variable that we look at."""
    assert run_command(["--completion", shell]) == 0
    assert f"{COMPLETE}={shell}_complete" in capsys.readouterr().out


def test_a_process_that_a_shell_asks_answers(start_process: Callable[..., Any]) -> None:
    """Where the shell's variable is set, the command offers names, and does nothing else."""
    line = {"COMP_WORDS": "reassure expl", "COMP_CWORD": "1", COMPLETE: "bash_complete"}
    done = start_process(env=line)
    assert done.returncode == 0
    assert done.stdout.split() == ["plain,explain", "plain,explore"]


def test_clauses_are_names() -> None:
    """All clauses can be explained, and completed."""
    assert {name for name, _ in complete_name("", "clause")} == set(load_clauses())
