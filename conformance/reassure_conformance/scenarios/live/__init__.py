"""Live scenarios: the scenario files of the model, told to a real controller on ZooKeeper.

The same file, the same expected lines. `run_live` takes a scenario as `scenarios.parse_scenario`
returns it, so that a counterexample that somebody wrote down as text can be put to the controller:

    scenario = parse_scenario(text, "counterexamples/found.txt")
    with LiveServer.start() as server:          # one server for many scenarios
        outcome = run_live(scenario, server)
    outcome.skipped     # why it could not be told, or not to its end, "" where it was
    outcome.found       # the lines that were found, block by block
    outcome.difference  # a diff against what the file expects, "" where nothing differs
    outcome.violations  # what the judge says of the transaction log
    outcome.passed      # told to its end, no difference, no violation

Without a server `run_live` starts one for this scenario alone. `faults` plants mistakes in the
controller (`LiveServer.start(faults=...)` for many scenarios). Raises AdapterDied, ServerGone and
ServerError: nothing is known of the scenario then.

Every scenario has a chroot of its own. Clients and brokers are real, the controller is stopped
whenever the file does not let it work, and what is shown is read back: the state of a partition
from the znodes, what the controller did from the transaction log, which is judged as well. A write
that nobody asked for is made in the controller's or a broker's name, and put back when the judge
names the clause that it breaks. Where a story ends the controller has to come to rest all the same.

What a machine's world says of its partitions, and of what stands beside them, is said of what
ZooKeeper holds (`machine`). Times are counted from the beginning of a story.

The world of a protocol is told by `protocols/NAME/live.py`, any other by the `live_WORLD.py` of the
protocol whose controller is asked (`live_server`). Where a story says what becomes of records, the
brokers have logs, and each message arrives when the story has it arrive (`stepped`). A leader with
a clock has no cluster: it is told to what the bundled brokers conclude with.

**What may differ.** A controller may raise the leader epoch of a partition where the model owes no
raise, and nothing else changes by that: Kafka's does so on failover and on completion. Such a raise
is not shown, epochs are shown less those raises, and `outcome.raises` counts them. Partitions are
shown one after another; in which order a controller turns to them is its own business, and so is
whether it removes a record of healing before or after it writes another one.
"""

from reassure_conformance.scenarios.live.live_server import (
    LiveServer,
    find_reason_to_skip,
    run_live,
)

__all__ = ["LiveServer", "find_reason_to_skip", "run_live"]
