"""A process that does proof tasks: one JSON task on a line in, one JSON answer on a line out.

Proofs run in processes of their own because Python runs one thread at a time, and because a proof
that does not end can then be ended. A worker ends when its input does.
"""

import json
import os
import select
import subprocess
import sys
import threading
import time
import traceback
from dataclasses import dataclass, field
from typing import Any, Final, Self

from reassure_proofs.engine.tasks import ProofTask, run_task
from reassure_spec.errors import ReassureError

_LOOK_SECONDS: Final = 0.5
"""How often a worker looks whether it is still waited for."""


class WorkerFailedError(ReassureError):
    """A worker broke down, or reported that the proof machinery contradicts itself."""


class WorkerSilentError(RuntimeError):
    """A worker did not answer in time and was ended."""


@dataclass(slots=True)
class Worker:
    """A worker process, started when first asked and again after it had to be ended."""

    _process: "subprocess.Popen[bytes] | None" = field(default=None)

    def ask(self, task: ProofTask, seconds: float) -> list[dict[str, Any]]:
        """Return the records of the task.

        Raises WorkerSilentError when there is no answer within `seconds`, and WorkerFailedError
        when the worker broke down; its own message is in the error.
        """
        process = self._process = self._process or self._start()
        if process.stdin is None or process.stdout is None:
            raise WorkerFailedError("a proof worker was started without pipes")
        try:
            process.stdin.write(json.dumps(task.to_json()).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            raise WorkerFailedError(f"a proof worker ended with {process.wait()}") from None
        ready, _, _ = select.select([process.stdout], [], [], seconds)
        if not ready:
            self.close()
            raise WorkerSilentError(f"no answer within {seconds:g} s")
        line = process.stdout.readline()
        if not line:
            raise WorkerFailedError(f"a proof worker ended with {process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise WorkerFailedError(answer["error"])
        records: list[dict[str, Any]] = answer["records"]
        return records

    def kill(self) -> None:
        """End the process while another thread may be waiting for its answer."""
        process = self._process
        if process is not None:
            process.kill()

    def close(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @staticmethod
    def _start() -> "subprocess.Popen[bytes]":
        # The worker must find the same packages, however this process came to find them.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        return subprocess.Popen(
            [sys.executable, "-m", "reassure_proofs.engine.worker", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            # An interrupt from the terminal is for the asker, who then ends its workers.
            start_new_session=True,
        )


def _end_with(asker: int) -> None:
    """End this process once the one that started it is gone, whatever is being proved."""
    while os.getppid() == asker:
        time.sleep(_LOOK_SECONDS)
    os._exit(1)


def main(asker: int) -> None:
    """Answer tasks until the input ends, or the process of this id, whose child this is, is killed.

    The id is given: an asker killed before this process has begun is not its parent any more.
    """
    threading.Thread(target=_end_with, args=(asker,), daemon=True).start()
    for line in sys.stdin:
        try:
            answer: dict[str, Any] = {"records": run_task(ProofTask.from_json(json.loads(line)))}
        except Exception:
            # The message travels; the asking process decides what to do about it.
            answer = {"error": traceback.format_exc()}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
