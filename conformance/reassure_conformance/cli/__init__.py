"""The command line: `reassure VERB`, a module for each verb.

These modules import click and little else; every verb imports what it needs when it is called, so
that help is quick and nothing starts a solver or Spark that does not need one.

Exit codes, for every verb: 0 holds, 1 violated, 2 unknown, 3 vacuous or stale, 64 usage, 65 bad
data, 69 implementation or server unavailable, 70 internal error, 78 bad configuration. A crashed
run is never 0 and never 1.
"""

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NoReturn

import click

from reassure_conformance.cli import (
    audit,
    check,
    completion,
    diff,
    explain,
    explore,
    failing,
    faults,
    new_adapter,
    prove,
    replay,
    report,
    run,
    scenarios,
    smoke,
    spec,
    tell,
    vectors,
    watch,
)
from reassure_conformance.report.document import INTERRUPTED
from reassure_lab.cli import cluster, reassign, roles, soak, synth
from reassure_spec.errors import BadUsage

_TELLS_ONLY: Final = frozenset({"-h", "--help", "--version"})
"""Options that only tell something; nothing is run."""
_RUNS_ITSELF: Final = frozenset({"broker", "controller", "cluster", "completion", "watch"})
"""Verbs that put nobody to the test: what they say is said at once, and signals are theirs."""

EPILOG: Final = (
    "Exit codes: 0 holds, 1 violated, 2 unknown, 3 vacuous or stale, 64 usage, 65 bad data, "
    "69 unavailable, 70 internal error, 78 bad configuration."
)


@click.group(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="reassure", prog_name="reassure")
def cli() -> None:
    """Hold a partition reassignment implementation to an executable reference model."""


for _verb in (
    check.check,
    run.run,
    smoke.smoke,
    tell.tell,
    new_adapter.new_adapter,
    replay.replay,
    diff.diff,
    diff.compare,
    report.report,
    faults.faults,
    prove.prove,
    explore.explore,
    audit.audit,
    watch.watch,
    synth.synth,
    soak.soak,
    explain.explain,
    completion.completion,
    spec.spec,
    vectors.vectors,
    scenarios.scenarios,
    reassign.reassign,
    cluster.cluster,
    roles.broker,
    roles.controller,
):
    cli.add_command(_verb)


def run_command(
    arguments: Sequence[str] | None = None, say: Callable[[str], None] = click.echo
) -> int:
    """Run one command line in this process and return its exit code; nothing is raised.

    What it has to say is given to `say`: with `--format json` one document, whatever happens.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        code = cli.main(args=given, prog_name="reassure", standalone_mode=False, obj=say)
    except click.ClickException as error:
        error.show()
        failing.say_error(given, BadUsage.exit_code, error, say)
        return BadUsage.exit_code
    except (click.Abort, KeyboardInterrupt) as error:
        # Click takes what ended too early for a user who has left.
        if isinstance(error.__cause__, EOFError):
            return failing.report_error(given, error.__cause__, say)
        failing.report_interrupt(given, INTERRUPTED, error, say)
        return INTERRUPTED
    except BaseException as error:
        return failing.report_error(given, error, say)
    return code if isinstance(code, int) else 0


def main() -> NoReturn:
    """Run the command line of this process."""
    arguments = sys.argv[1:]
    if completion.COMPLETE in os.environ:
        cli(prog_name="reassure")
    if not arguments or _TELLS_ONLY & set(arguments) or arguments[0] in _RUNS_ITSELF:
        sys.exit(run_command(arguments))
    from reassure_conformance.report.supervise import supervise

    text, code = supervise(arguments, run_command, partial(failing.explain_end, arguments))
    sys.exit(failing.print_last(text, code))
