"""The verbs `broker` and `controller`: one process of a cluster each.

Their options are those of `python -m reassure_lab`, which is the same program.
"""

from typing import Final

import click

_AS_THEY_ARE: Final = {"ignore_unknown_options": True, "help_option_names": []}


def _make(role: str, what: str) -> click.Command:
    @click.command(role, help=what, context_settings=_AS_THEY_ARE)
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[OPTION]...")
    def run(arguments: tuple[str, ...]) -> int:
        from reassure_lab.__main__ import main

        return main([role, *arguments], program="reassure lab")

    command: click.Command = run
    return command


broker: Final = _make("broker", "Run a broker until it is stopped (--help lists options).")
controller: Final = _make(
    "controller", "Run a controller until it is stopped (--help lists options)."
)
