"""The command line: `reassure VERB`, a module for each verb.

These modules import click and little else; every verb imports what it needs when it is called, so
that help is quick and nothing starts a solver or Spark that does not need one.

Exit codes, for every verb: 0 holds, 1 violated, 2 unknown, 3 vacuous or stale, 64 usage, 65 bad
data, 69 implementation or server unavailable, 70 internal error, 78 bad configuration. A crashed
run is never 0 and never 1.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NoReturn

import click

from reassure_conformance.cli import (
    audit,
    check,
    diff,
    explain,
    explore,
    failing,
    init,
    mutants,
    prove,
    report,
    scenarios,
    spec,
    test,
)
from reassure_conformance.report.document import INTERRUPTED
from reassure_conformance.report.spelling import TYPED
from reassure_spec.errors import BadUsage, Unavailable

_TELLS_ONLY: Final = frozenset({"-h", "--help"})
"""Options that only tell something; nothing is run."""
_RUNS_ITSELF: Final = frozenset({"broker", "controller", "cluster", "completion", "watch"})
"""Verbs that put nobody to the test: what they say is said at once, and signals are theirs."""

EPILOG: Final = (
    "Exit codes: 0 holds, 1 violated, 2 unknown, 3 vacuous or stale, 64 usage, 65 bad data, "
    "69 unavailable, 70 internal error, 78 bad configuration."
)

ADDED: Final = "reassure.verbs"
"""The entry points by which packages beside the core add verbs."""
LAB: Final = "lab"
COMPLETE: Final = "_REASSURE_COMPLETE"
"""The variable by which a shell asks for completions, as click names it."""

GROUPS: Final[Mapping[str, tuple[click.Command, ...]]] = {
    "Check": (check.check, test.test, mutants.mutants, init.init),
    "Judge": (audit.audit, report.report, diff.diff),
    "Study": (explain.explain, spec.spec, prove.prove, explore.explore, scenarios.scenarios),
}
"""The verbs of the core, as help lists them."""


class NoLab(Unavailable):
    """A verb of the lab is asked for where the lab is not installed."""


class Verbs(click.Group):
    """The verbs of the core and those that others add, which are loaded when they are needed."""

    def list_commands(self, context: click.Context) -> list[str]:
        """Return the names of all verbs."""
        from importlib.metadata import entry_points

        return [*self.commands, *sorted(entry_points(group=ADDED).names)]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Return a verb by its name; raises NoLab."""
        if name in self.commands:
            return self.commands[name]
        from importlib.metadata import entry_points

        for found in entry_points(group=ADDED, name=name):
            command: click.Command = found.load()
            return command
        if name == LAB:
            raise NoLab("the lab is not installed: pip install 'reassure[lab]'")
        return None

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the verb of a command line; a former name works, and its new one is printed."""
        now = TYPED.get(args[0])
        if now is not None and not context.resilient_parsing:
            click.echo(f"reassure: `{args[0]}` is now `reassure {now}`", err=True)
            args = [*now.split(), *args[1:]]
        return super().resolve_command(context, args)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs by groups, those that others add at last, each in a line."""
        names = self.list_commands(context)
        width = formatter.width - 6 - max(map(len, names))
        for heading, commands in self._list_groups(context, names):
            rows = [(str(each.name), each.get_short_help_str(width)) for each in commands]
            with formatter.section(heading):
                formatter.write_dl(rows)

    def _list_groups(
        self, context: click.Context, names: Sequence[str]
    ) -> Iterator[tuple[str, Sequence[click.Command]]]:
        yield from GROUPS.items()
        added = [self.get_command(context, name) for name in names if name not in self.commands]
        if added:
            yield LAB.capitalize(), [each for each in added if each is not None]


def _show_completion(context: click.Context, _: click.Parameter, shell: str | None) -> None:
    if shell is None or context.resilient_parsing:
        return
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(cli, {}, "reassure", COMPLETE).source())
    context.exit()


@click.group(cls=Verbs, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--completion",
    type=click.Choice(["bash", "zsh", "fish"]),
    expose_value=False,
    is_eager=True,
    callback=_show_completion,
    help="Print the script that makes a shell complete verbs, options and names, and exit.",
)
@click.version_option(package_name="reassure", prog_name="reassure")
def cli() -> None:
    """Check an implementation of partition reassignment against an executable model."""


for _verb in (each for commands in GROUPS.values() for each in commands):
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
    if COMPLETE in os.environ:
        cli(prog_name="reassure")
    verb = failing.find_verb(arguments).partition(" ")[0]
    asks_top = not arguments or arguments[0].startswith("-")
    if asks_top or _TELLS_ONLY & set(arguments) or verb in _RUNS_ITSELF:
        sys.exit(run_command(arguments))
    from reassure_conformance.supervise import supervise

    text, code = supervise(arguments, run_command, partial(failing.explain_end, arguments))
    sys.exit(failing.print_last(text, code))
