"""`run`: a scenario, once or several times."""

from pathlib import Path

import click

from testbed.cli import options
from testbed.tiers import TIERS


@click.command(epilog="docs/scenarios.md")
@click.argument("scenario", type=options.PATH)
@click.option("--tier", type=click.Choice(list(TIERS)), help="Run on this tier.")
@options.clock
@click.option("--tcp", metavar="NAME", help="What both hosts speak: a profile of the kernel's TCP, or user:NAME.")
@options.settings("Change a value, as in channel.per=0.1.")
@options.devices
@options.seed
@click.option("--repeat", type=click.IntRange(min=1), default=1, help="Run N times with consecutive seeds.")
@options.out
@options.influx
@click.option("--allow-late", is_flag=True, help="Accept a run that did not keep the clock.")
@click.option("--json", "json_", is_flag=True, help="Print one JSON object (with --repeat: one per run) instead.")
def run(
    scenario: Path,
    tier: str | None,
    clock: str | None,
    tcp: str | None,
    settings: tuple[str, ...],
    devices: tuple[str, ...],
    seed: int | None,
    repeat: int,
    out: Path,
    influx: str | None,
    token_file: Path | None,
    allow_late: bool,
    json_: bool,
) -> None:
    """Run SCENARIO (a YAML file) and show its result.

    Each run keeps its scenario, seed, versions, records and result in a folder of its own below --out.
    """
    import json

    from rich.console import Console

    from testbed.cli.machine.virtual_kernel import prepare_clock
    from testbed.observers import database_hooks, open_influx
    from testbed.results import show
    from testbed.results.quality_table import quality_table
    from testbed.results.transfers import plot_transfers
    from testbed.results.validity import require_valid
    from testbed.running import check_tier, run_once, unused
    from testbed.scenario.file import load

    loaded = load(scenario, (*settings, *options.device_settings(devices)), tier=tier, clock=clock, tcp=tcp, seed=seed)
    prepare_clock(loaded)
    check_tier(loaded)
    make_hooks = database_hooks(open_influx(influx, token_file), show.warn)
    show.warn(*unused(loaded))
    summaries = []
    for offset in range(repeat):
        seeded = loaded.model_copy(update={"seed": loaded.seed + offset})
        with show.progress([f"{loaded.name} {loaded.link.scheme} seed {seeded.seed}"]) as [bar]:
            summaries.append(run_once(seeded, out, bar, make_hooks))
        if json_:
            print(json.dumps(summaries[-1].plain()), flush=True)
    if not json_:
        console = Console()
        seeds = f"seed {loaded.seed}" if repeat == 1 else f"seeds {loaded.seed} to {loaded.seed + repeat - 1}"
        console.print(show.table(summaries, f"{loaded.name}: TCP {loaded.tcps}, tier {loaded.tier}, {seeds}"))
        console.print(quality_table(summaries))
        if (told := show.programs(summaries)) is not None:
            console.print(told)
        if (shares := show.paths(summaries)) is not None:
            console.print(shares)
        if (guesses := show.guesses(summaries)) is not None:
            console.print(guesses)
        for summary in summaries:
            folder = Path(str(summary.folder))
            label, direction = f"{summary.scheme} seed {summary.seed}", summary.flows[0].direction
            show.plot([(label, folder)], folder / "plot.png", summary.run, direction)
            plot_transfers(summary, folder / "transfers.png")
            console.print(f"{folder}/  scenario, records, plot.png", highlight=False, soft_wrap=True)
    # corruption and lateness that is not allowed are errors, which say it
    show.warn(*show.warnings(summaries, late=allow_late))
    require_valid(summaries, allow_late)


COMMAND = run
