"""Explorations on Spark answer as those in one process do."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from reassure_explorer.engine.derived import explore_derived
from reassure_explorer.engine.explore import Elsewhere
from reassure_explorer.engine.interface import Model
from reassure_explorer.engine.loading import Source, load_model
from reassure_explorer.engine.sliced import explore_sliced
from reassure_explorer.scopes.catalogue import make_model
from reassure_pipeline.spreading import NoDirectory, spread_on_spark

ROOT = Path(__file__).parents[2]
LOGS = partial(make_model, "logs", "kafka-4485", {})
MOVES = partial(make_model, "moves", "kafka-42", {})
ELSEWHERE = partial(load_model, "examples/two_phase.py:two_phase", ROOT)


MORTAL: Final = """
import os

from reassure_explorer.engine.interface import Action, Int, Model

MARKER, DRIVER = {marker!r}, {driver}


def grow(state, name):
    # The first process that comes so far, unless it is the driver, dies of it.
    if state.a + state.b == 6 and os.getpid() != DRIVER and not os.path.exists(MARKER):
        open(MARKER, "w").close()
        os._exit(1)
    value = getattr(state, name)
    return None if value == 9 else state.replace(**{{name: value + 1}})


def make():
    names = ("a", "b")
    fields = dict.fromkeys(names, Int(0, 9))
    return Model("mortal", fields, (dict.fromkeys(names, 0),), (Action("grow", grow, names),))
"""


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Elsewhere]:
    """Spark with two cores, which begins a task again up to twice."""
    with spread_on_spark(Source(LOGS), "local[2,3]", slices=3) as found:
        yield found


def strip(result: Any) -> list[Any]:
    """Return what must not depend on who does the work."""
    names = ("levels", "generated", "violations", "goals", "actions", "notes", "unfinished")
    return [getattr(result, name) for name in names]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("make", "keep_going", "alone_to", "broken"),
    [
        (MOVES, True, 100, True),
        (LOGS, False, 0, True),
        (ELSEWHERE, True, 20, False),
    ],
    ids=["all that is broken", "shortest trace", "a model from elsewhere"],
)
def test_spark_answers_as_one_process_does(
    elsewhere: Elsewhere,
    tmp_path: Path,
    make: Callable[[], Model],
    keep_going: bool,
    alone_to: int,
    broken: bool,
) -> None:
    """Counts, verdicts and traces are the same."""
    whole = explore_derived(make(), keep_going=keep_going)
    spread = explore_sliced(
        Source(make),
        elsewhere.spread,
        tmp_path,
        elsewhere.slices,
        keep_going=keep_going,
        alone_to=alone_to,
    )
    assert spread.details["steps_sent"] > 4
    assert strip(spread) == strip(whole)
    assert bool(spread.violations) is broken


@pytest.mark.spark
def test_a_worker_that_dies_is_replaced(elsewhere: Elsewhere, tmp_path: Path) -> None:
    """A process that dies in the middle of a task has no part in the result."""
    marker = tmp_path / "died"
    text = MORTAL.format(marker=str(marker), driver=os.getpid())
    (tmp_path / "mortal.py").write_text(text, encoding="utf-8")
    source = Source(partial(load_model, "mortal.py:make", tmp_path))
    result = explore_sliced(source, elsewhere.spread, tmp_path / "states", 3, alone_to=0)
    assert marker.exists()
    assert (result.distinct, result.generated, result.depth) == (100, 180, 18)


def test_a_cluster_needs_a_directory() -> None:
    """Machines that share nothing are refused before anything is started."""
    with (
        pytest.raises(NoDirectory, match="--directory"),
        spread_on_spark(Source(LOGS), "spark://10.1.2.3:7077"),
    ):
        pass
