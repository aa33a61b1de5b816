"""The verb `soak`: a whole cluster as processes, under random faults."""

from pathlib import Path

import click

from reassure_conformance.cli.options import ProgressLine, choose_seed, emit, format_option
from reassure_spec.profiles import DEFAULT_PROFILE, list_profiles


@click.command()
@click.option(
    "--seconds",
    type=click.FloatRange(min=10),
    default=60.0,
    show_default=True,
    help="How long faults are injected.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Repeat the plan of this seed.")
@click.option("--kills", type=click.IntRange(min=1), help="How many kills (one in four seconds).")
@click.option("--brokers", type=click.IntRange(min=4), default=5, show_default=True)
@click.option("--controllers", type=click.IntRange(min=1), default=2, show_default=True)
@click.option("--zookeepers", type=click.IntRange(min=1), default=3, show_default=True)
@click.option(
    "--wide",
    type=click.IntRange(min=1),
    default=300,
    show_default=True,
    help="Partitions of the topic that is moved as a whole.",
)
@click.option(
    "--profile",
    type=click.Choice(list_profiles(DEFAULT_PROFILE)),
    default=DEFAULT_PROFILE,
    show_default=True,
    help="The controllers' rules; a profile with healing has brokers replaced.",
)
@click.option("--full-disks", is_flag=True, help="Let brokers' disks be full for a while.")
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="NAME",
    help="Plant a mistake: one of the soak's own, or of `reassure mutants`.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Directory of the run.")
@format_option
def soak(
    seconds: float,
    seed: int | None,
    kills: int | None,
    brokers: int,
    controllers: int,
    zookeepers: int,
    wide: int,
    profile: str,
    full_disks: bool,
    faults: tuple[str, ...],
    out: Path | None,
    form: str,
) -> int:
    """Run a cluster of processes under random faults, and check what clients were promised.

    Processes are killed, paused and partitioned from each other by a plan that is drawn from the
    seed. Meanwhile stock clients produce and consume, and partitions are moved. Then all faults are
    healed, and it is checked what clients saw, and how often each guarantee was put to the test.
    """
    from reassure_lab.answers.soaking import run_soak
    from reassure_lab.soak.members import Shape
    from reassure_lab.soak.one_soak import SoakSettings
    from reassure_lab.soak.schedule import default_kills

    shape = Shape(brokers, controllers, zookeepers, wide, profile, faults)
    kills = default_kills(seconds) if kills is None else kills
    settings = SoakSettings(choose_seed(seed), seconds, kills, full_disks, shape)
    with ProgressLine() as progress:
        document, text = run_soak(settings, out, progress)
    return emit(document, form, lambda: text(form))
