"""The verbs of `reassure lab`, a module for each.

As those of the core they import click and little else before they are called.
"""

from typing import Any, Final

import click

from reassure_lab.cli import cluster, reassign, roles, soak, synth
from reassure_spec.errors import Unavailable

_OURS: Final = "reassure_"


class NotInstalled(Unavailable):
    """A package that the extra `lab` brings is missing."""


class _Lab(click.Group):
    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except ModuleNotFoundError as missing:
            name = (missing.name or "").partition(".")[0]
            if name.startswith(_OURS):
                raise
            raise NotInstalled(f"{name} is not installed: pip install 'reassure[lab]'") from missing


@click.group(cls=_Lab)
def lab() -> None:
    """Run clusters, disturb them, move partitions, write logs."""


for _verb in (
    cluster.cluster,
    soak.soak,
    synth.synth,
    reassign.reassign,
    roles.broker,
    roles.controller,
):
    lab.add_command(_verb)
