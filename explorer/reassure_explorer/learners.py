"""Processes that run the model's own functions side by side, as Python's threads cannot.

Learning a path is plain Python, and takes as long as expanding a thousand states. Where several
threads are asked for, what has to be learned is handed to copies of this process, made by `fork`,
so that a model may be made of any functions. Only packed states and traces travel.
"""

import multiprocessing
import signal
from collections.abc import Callable, Sequence
from typing import Final

from reassure_explorer.packing import Words
from reassure_explorer.tracing import Trace

Question = tuple[int, Words]
"""A root, and the packed state to run it on."""
Learn = Callable[[int, Words], Trace]

_WORTH_SHARING: Final = 8
_learn: list[Learn] = []
"""What a copy runs: one function, set when the copy begins."""


def _begin(learn: Learn) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _learn[:] = [learn]


def _answer(questions: Sequence[Question]) -> list[Trace]:
    return [_learn[0](root, words) for root, words in questions]


class Learners:
    """Copies of this process that trace what they are asked; `close` ends them."""

    def __init__(self, learn: Learn, processes: int) -> None:
        self._learn_here, self._processes = learn, processes
        self._pool = multiprocessing.get_context("fork").Pool(processes, _begin, (learn,))

    @staticmethod
    def can_be_made() -> bool:
        """Whether this system can copy processes."""
        return "fork" in multiprocessing.get_all_start_methods()

    def trace(self, questions: Sequence[Question]) -> list[Trace]:
        """Return a trace for each question. What the model raises is raised here."""
        if len(questions) < _WORTH_SHARING:
            return [self._learn_here(root, words) for root, words in questions]
        pieces = [questions[at :: self._processes] for at in range(self._processes)]
        answers = self._pool.map(_answer, pieces, chunksize=1)
        traces: list[Trace] = [answers[0][0]] * len(questions)
        for at, answer in enumerate(answers):
            traces[at :: self._processes] = answer
        return traces

    def close(self) -> None:
        """End the copies."""
        self._pool.terminate()
        self._pool.join()
