"""`demo`: one transfer without SLACP and one with it, as far as this machine can carry them."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from testbed.cli import options
from testbed.errors import FadelabError
from testbed.tiers import TIERS

if TYPE_CHECKING:
    from testbed.cli.machine.capacity import DemoPlan
    from testbed.observers import MakeHooks
    from testbed.results.summary import Summary
    from testbed.run_hooks import Progress, Show
    from testbed.scenario.schema import Scenario

#: link schemes and how the demo calls them, the baseline first
SCHEMES = {"none": "without SLACP", "slacp": "with SLACP"}
#: the longest time until a Ctrl-C is noticed
_INTERRUPT_S = 0.2


@click.command()
@click.option(
    "--tier",
    type=click.Choice(list(options.DEMO_SCENARIOS)),
    default=options.DEMO_TIER,
    show_default=True,
    help="The medium.",
)
@options.clock
@options.devices
@click.option("--seconds", type=options.Finite(min=2), default=40.0, show_default=True, help="Length of each run.")
@options.settings("Change a value of the scenario.")
@options.seed
@options.out
@options.influx
# scripts may say it: lateness never fails a demo
@click.option("--allow-late", is_flag=True, hidden=True, expose_value=False)
def demo(
    tier: str,
    clock: str | None,
    devices: tuple[str, ...],
    seconds: float,
    settings: tuple[str, ...],
    seed: int | None,
    out: Path,
    influx: str | None,
    token_file: Path | None,
) -> None:
    """Show what SLACP does: one transfer over a lossy link without it, one with it, side by side.

    Two real Linux hosts and kernel TCP over two radios: virtual ones on an air that fades, real ones with --tier usrp,
    or a frame-level model with --tier emulated. Both at once where this machine can carry that, else one after the
    other, or at a lower rate. Takes one to two minutes and ends with a table and a plot.
    """
    from rich.console import Console

    from testbed.cli.machine import capacity
    from testbed.cli.machine.virtual_kernel import prepare_clock
    from testbed.observers import database_hooks, open_influx
    from testbed.results import show
    from testbed.results.validity import require_intact
    from testbed.running import check_tier
    from testbed.scenario.file import load

    path = options.DEMO_SCENARIOS[tier]
    common = (f"workloads.0.duration_s={seconds}", *settings, *options.device_settings(devices))
    wanted = load(path, common, tier=tier, clock=clock, seed=seed)
    prepare_clock(wanted)
    check_tier(wanted)
    plan, reason = plan_for(wanted)
    common = (*common, *capacity.lowered(wanted, plan.share))
    scenarios = [
        load(path, (*common, f"link.scheme={scheme}"), tier=tier, clock=clock, seed=seed) for scheme in SCHEMES
    ]
    make_hooks = database_hooks(open_influx(influx, token_file), show.warn)
    console = Console()
    first = scenarios[0]
    medium = show.medium_in_words(first)
    console.print(
        f"[bold]{first.description}[/]\n{medium}\nTCP {first.tcps}, tier {first.tier}, seed {first.seed}\n{reason}",
        highlight=False,
    )
    labels = list(SCHEMES.values())
    with show.progress(labels) as bars:
        summaries = _run_all(scenarios, bars, plan.together, out, make_hooks)
    folders = [(label, Path(str(summary.folder))) for label, summary in zip(labels, summaries, strict=True)]
    console.print(show.terminal_plot(folders, console.width))
    lowered = f", at {plan.share} of its rates" if plan.share < 1 else ""
    console.print(show.table(summaries, f"the same {seconds:g} s without and with SLACP, tier {tier}{lowered}"))
    console.print(show.comparison(*(summary.goodput_bps for summary in summaries)), highlight=False)
    picture = folders[-1][1] / "demo.png"
    show.plot(folders, picture, f"TCP over a lossy radio link: {medium}", summaries[0].flows[0].direction)
    console.print(f"plot: {picture}", highlight=False, soft_wrap=True)
    show.warn(*show.lateness(labels, summaries), *show.warnings(summaries, late=False))
    require_intact(summaries)


COMMAND = demo


def plan_for(scenario: "Scenario") -> "tuple[DemoPlan, str]":
    """Return how this machine is to run the demo and, where it cannot run as it should, a line that says why."""
    from fractions import Fraction

    from testbed.campaigns.processes import cores
    from testbed.cli.machine import capacity, processors
    from testbed.scenario.file import load

    if TIERS[scenario.tier].air == "real":
        # each pair of virtual radios has an air of its own; there is one pair of real radios
        return capacity.DemoPlan(1, Fraction(1)), ""
    if scenario.clock == "virtual":
        # a slow machine takes longer, and that is all
        return capacity.DemoPlan(min(len(SCHEMES), cores()), Fraction(1)), ""
    costs = capacity.link_costs(scenario, processors.slowness())
    if _rates(scenario) != _rates(load(options.DEMO_SCENARIOS[scenario.tier], tier=scenario.tier)):
        # a rate that the user asked for stays
        costs = {Fraction(1): costs[Fraction(1)]}
    room, links = processors.look(), len(SCHEMES)
    plan = capacity.choose(room, costs, links)
    reason = capacity.explain(plan, room, costs, links)
    return plan, f"{reason}\n" if reason else ""


def _rates(scenario: "Scenario") -> tuple[float, ...]:
    """The rates that decide the cost of a link."""
    channel = scenario.channel
    return scenario.radio.rate_sps, channel.direction("up").rate_bps, channel.direction("down").rate_bps


def _run_all(
    scenarios: "Sequence[Scenario]", bars: "Sequence[Show]", together: int, out: Path, make_hooks: "MakeHooks"
) -> "list[Summary]":
    """Run the scenarios, `together` at a time; when one fails, the others end, too."""
    from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
    from threading import Event

    from testbed.running import run_once

    ended = Event()

    def until_ended(bar: "Show") -> "Show":
        def shown(progress: "Progress") -> None:
            if ended.is_set():
                raise FadelabError("ended with the other run")
            bar(progress)

        return shown

    with ThreadPoolExecutor(together) as pool:
        try:
            futures = [
                pool.submit(run_once, scenario, out, until_ended(bar), make_hooks)
                for scenario, bar in zip(scenarios, bars, strict=True)
            ]
            running = set(futures)
            while running:
                # with a timeout: Python may miss a Ctrl-C that comes just before it begins to wait
                done, running = wait(running, timeout=_INTERRUPT_S, return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()
        except BaseException:
            ended.set()
            raise
        return [future.result() for future in futures]
