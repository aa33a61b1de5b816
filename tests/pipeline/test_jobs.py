"""Processes that judge side by side: they end with the work."""

import time
from multiprocessing import active_children
from multiprocessing.process import BaseProcess

import pytest

from reassure_pipeline.audit.processes import start_processes

FOR_EVER_S = 3600.0


def begin_and_end(end: type[BaseException], begun: set[BaseProcess]) -> None:
    """Begin processes that have much to do, note them, and end the work before they do."""
    before = set(active_children())
    with start_processes(2) as pool:
        waiting = [pool.submit(time.sleep, FOR_EVER_S) for _ in range(2)]
        while not all(each.running() for each in waiting):
            time.sleep(0.01)
        begun |= set(active_children()) - before
        raise end


@pytest.mark.parametrize("end", [KeyboardInterrupt, OSError])
def test_nobody_waits_for_what_an_interrupted_audit_began(end: type[BaseException]) -> None:
    """Whatever ends the work here ends those processes, and none that others began before."""
    with start_processes(1) as others:
        assert others.submit(abs, -1).result() == 1
        begun = set[BaseProcess]()
        with pytest.raises(end):
            begin_and_end(end, begun)
        assert len(begun) == 2
        assert not begun & set(active_children())
        assert others.submit(abs, -2).result() == 2
