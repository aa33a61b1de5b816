"""Proof work in other processes, and obligations for other solvers."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
import z3

from reassure_proofs.engine.register import get_theorems
from reassure_proofs.engine.runner import estimate_cost, make_tasks, prove_all, summarise_records
from reassure_proofs.engine.smt import make_scripts
from reassure_proofs.engine.tasks import ProofTask, run_task
from reassure_proofs.engine.worker import Worker, WorkerFailedError, WorkerSilentError

_TASK = ProofTask(("drop-exclusive-leader-kept",), tuple(range(4)), 2, 30.0)


def _program(text: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def test_task_crosses_as_json() -> None:
    """A task comes back from its JSON form as it was."""
    assert ProofTask.from_json(_TASK.to_json()) == _TASK


def test_worker_gives_what_this_process_gives() -> None:
    """A worker's records are those of the same task done here, but for the time it took."""
    with Worker() as worker:
        there = worker.ask(_TASK, 30.0)
    here = run_task(_TASK)
    for record in (*there, *here):
        del record["seconds"]
    assert there == here
    assert len(here) == 2


def test_two_processes_give_the_verdicts_of_one() -> None:
    """Verdicts, paths and counterexamples do not depend on the number of processes."""
    names = ["drop-leader-kept", "drop-exclusive-leader-kept", "hw-never-decreases"]
    calls: list[tuple[int, int]] = []
    one = prove_all(names, replication_factor=2, processes=1)
    two = prove_all(
        names, replication_factor=2, processes=2, progress=lambda *done: calls.append(done)
    )
    assert [(r.verdict, r.paths, r.counterexample) for r in one] == [
        (r.verdict, r.paths, r.counterexample) for r in two
    ]
    assert calls == [(i + 1, len(calls)) for i in range(len(calls))]


def test_costly_tasks_are_begun_first() -> None:
    """A plan cut everywhere is begun before a single step, and long lists before short ones."""
    names = ("failover-ends-alike", "step-keeps-top", "controller-epoch-is-new")
    costs = [
        estimate_cost(task)
        for name in names
        for task in make_tasks(get_theorems([name]), 2, 30.0)[:1]
    ]
    assert costs == sorted(costs, reverse=True)
    tasks = make_tasks(get_theorems(["heal-choice-if-possible"]), 2, 30.0)
    assert estimate_cost(tasks[0]) > estimate_cost(tasks[-1])


def test_worker_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that does not answer in time is killed and its theorem is unknown."""
    started: list[subprocess.Popen[bytes]] = []

    def start() -> "subprocess.Popen[bytes]":
        started.append(_program("import time; time.sleep(60)"))
        return started[-1]

    monkeypatch.setattr(Worker, "_start", staticmethod(start))
    with Worker() as worker, pytest.raises(WorkerSilentError):
        worker.ask(_TASK, 0.2)
    assert started[0].poll() is not None


def test_silent_worker_makes_the_theorem_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """What no worker answered is unknown, with the reason, and not proved."""

    def ask(self: Worker, task: ProofTask, seconds: float) -> list[dict[str, object]]:
        raise WorkerSilentError(f"no answer within {seconds:g} s")

    monkeypatch.setattr(Worker, "ask", ask)
    (result,) = prove_all(["drop-leader-kept"], replication_factor=2, processes=2)
    assert (result.verdict, "no answer" in result.reason) == ("unknown", True)


def test_worker_that_dies_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that ends without an answer is an error that gives its exit code."""
    monkeypatch.setattr(
        Worker, "_start", staticmethod(lambda: _program("input(); raise SystemExit(9)"))
    )
    with Worker() as worker, pytest.raises(WorkerFailedError, match="ended with 9"):
        worker.ask(_TASK, 30.0)


def test_worker_ends_with_its_asker() -> None:
    """Where the asking process is killed, a worker in the midst of a proof does not stay behind."""
    text = (
        "import os, sys, threading\n"
        "from reassure_proofs.engine.tasks import ProofTask\n"
        "from reassure_proofs.engine.worker import Worker\n"
        "worker = Worker()\n"
        "task = ProofTask(('failover-ends-alike',), (4,), 2, 60.0)\n"
        "threading.Thread(target=worker.ask, args=(task, 60.0), daemon=True).start()\n"
        "while worker._process is None: pass\n"
        "print(worker._process.pid, flush=True)\n"
        "threading.Event().wait()\n"
    )
    asker = _program(text)
    assert asker.stdout is not None
    assert asker.stdin is not None
    pid = int(asker.stdout.readline())
    asker.kill()
    asker.wait()
    asker.stdin.close()
    asker.stdout.close()
    deadline = time.monotonic() + 20.0
    while _is_running(pid):
        assert time.monotonic() < deadline, "the worker is still there"
        time.sleep(0.1)


def _is_running(pid: int) -> bool:
    """Whether a process is there that has not ended; one that nobody has waited for has."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_fault_in_a_worker_reaches_the_asker() -> None:
    """An error in a worker is raised where it was asked, with the worker's message."""
    task = ProofTask(("no-such-theorem",), (0,), 2, 30.0)
    with Worker() as worker, pytest.raises(WorkerFailedError, match="no-such-theorem"):
        worker.ask(task, 30.0)


def test_missing_shape_is_not_proved() -> None:
    """A theorem one of whose shapes has no certificate is unknown."""
    (theorem,) = get_theorems(["lag-estimate-never-short"])
    records = run_task(ProofTask((theorem.name,), (0, 1), 2, 30.0))
    assert summarise_records(theorem, records, 2).verdict == "proved"
    result = summarise_records(theorem, records[1:], 2)
    assert (result.verdict, "no certificate" in result.reason) == ("unknown", True)


def test_time_limit_gives_unknown_theorems() -> None:
    """Without time nothing is proved, and nothing is refuted either."""
    results = prove_all(replication_factor=2, timeout_s=-1.0, tier="gate")
    assert {result.verdict for result in results} == {"unknown"}


@pytest.mark.slow
def test_exported_obligations_are_answered_alike() -> None:
    """A fresh solver that reads the exported text gives the status that it declares."""
    scripts = list(make_scripts(replication_factor=2, tier="gate"))
    for script in scripts:
        solver = z3.Solver()
        solver.from_string(script.text)
        assert str(solver.check()) == script.status, script.name
    assert {script.status for script in scripts} == {"sat", "unsat"}
    assert len({script.name for script in scripts}) == len(scripts)


def test_export_has_one_script_for_each_obligation() -> None:
    """The scripts of a theorem are its obligations and the coverage of what was explored."""
    files = list(make_scripts(["protocol-starts-in-invariant"], replication_factor=2))
    assert sorted(file.name for file in files) == sorted(
        f"protocol-starts-in-invariant--assigned{n}{kind}.smt2"
        for n in (1, 2)
        for kind in ("", "--coverage")
    )
    assert files[0].text.startswith("; theorem protocol-starts-in-invariant")
    assert all(file.text.rstrip().endswith("(check-sat)") for file in files)
