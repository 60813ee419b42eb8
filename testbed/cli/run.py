"""What `run` and `demo` do, behind the command line."""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from threading import Event
from typing import Any

from rich.console import Console

from common.sides import SIDES
from testbed.cli import machine_capacity
from testbed.errors import FadelabError
from testbed.observers import database_only, open_influx
from testbed.onlookers import Progress, Show
from testbed.paths import root
from testbed.results import show
from testbed.results.summary import Summary
from testbed.running import check_tier, repetitions, require_on_time, run_once, unused
from testbed.scenario.file import load
from testbed.scenario.schema import Scenario

#: by the tier the demo runs on
DEMO_SCENARIOS = {
    "vusrp": root() / "scenarios" / "fading-link.yaml",
    "usrp": root() / "scenarios" / "fading-link.yaml",
    "emulated": root() / "scenarios" / "lossy-link.yaml",
}
#: the schemes the demo shows, the baseline first
DEMO_SCHEMES = ("none", "slacp")
#: how soon a Ctrl-C is noticed at the latest
_INTERRUPT_S = 0.2


def run(
    path: Path,
    settings: Sequence[str],
    overrides: Mapping[str, Any],
    *,
    repeat: int,
    out: Path,
    influx: tuple[str | None, Path | None],
    allow_late: bool,
    json_: bool,
) -> None:
    """Run a scenario `repeat` times and print what came of it; `influx` is a database's URL and token file."""
    scenario = load(path, settings, **overrides)
    check_tier(scenario)
    audience = database_only(open_influx(*influx), _warn_once)
    _say_warnings(unused(scenario))
    summaries: list[Summary] = []
    for seeded in repetitions(scenario, repeat):
        label = f"{scenario.name} {scenario.link.scheme} seed {seeded.seed}"
        with show.progress([label]) as [bar]:
            summaries.append(run_once(seeded, out, bar, audience))
        if json_:
            print(json.dumps(asdict(summaries[-1])), flush=True)
    if not json_:
        console = Console()
        console.print(show.table(summaries, f"{scenario.name}: TCP {scenario.tcps}, tier {scenario.tier}"))
        if (guesses := show.guesses(summaries)) is not None:
            console.print(guesses)
        for summary in summaries:
            folder = Path(str(summary.folder))
            show.plot([(f"{summary.scheme} seed {summary.seed}", folder)], folder / "plot.png", summary.run)
            console.print(f"{folder}/  scenario, records, plot.png", highlight=False, soft_wrap=True)
    _warn(summaries, allow_late)
    require_on_time(summaries, allow_late)


def device_settings(devices: Sequence[str]) -> tuple[str, ...]:
    """The `--set` that `--device` stands for."""
    if not devices:
        return ()
    if len(devices) != len(SIDES):
        raise FadelabError(f"--device is given {len(devices)} times: name ST's radio, then BAS's")
    return (f"radio.devices={json.dumps(devices)}",)


def demo(
    tier: str,
    seconds: float,
    settings: Sequence[str],
    seed: int | None,
    *,
    out: Path,
    influx: tuple[str | None, Path | None],
) -> None:
    """Run the tier's demo without and with SLACP, as this machine can carry it, and show both.

    Events that were late all the same are a warning.
    """
    common = (f"workloads.0.duration_s={seconds}", *settings)
    wanted = load(DEMO_SCENARIOS[tier], common, tier=tier, seed=seed)
    check_tier(wanted)
    plan, reason = _plan(wanted)
    common = (*common, *machine_capacity.lowered(wanted, plan.share))
    scenarios = [
        load(DEMO_SCENARIOS[tier], (*common, f"link.scheme={scheme}"), tier=tier, seed=seed) for scheme in DEMO_SCHEMES
    ]
    audience = database_only(open_influx(*influx), _warn_once)
    console = Console()
    medium = show.medium_in_words(scenarios[0])
    run_by = f"TCP {scenarios[0].tcps}, tier {scenarios[0].tier}, seed {scenarios[0].seed}"
    console.print(f"[bold]{scenarios[0].description}[/]\n{medium}\n{run_by}\n{reason}", highlight=False)
    labels = ["without SLACP", "with SLACP"]
    with show.progress(labels) as bars, ThreadPoolExecutor(plan.together) as pool:
        ended = Event()
        try:
            futures = [
                pool.submit(run_once, scenario, out, _until(ended, bar), audience)
                for scenario, bar in zip(scenarios, bars, strict=True)
            ]
            running = set(futures)
            while running:
                # not without a timeout: Python may miss a Ctrl-C that comes just before it begins to wait
                done, running = wait(running, timeout=_INTERRUPT_S, return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()
        except BaseException:
            # Ctrl-C, or one run has failed: the other must not go on to its end
            ended.set()
            raise
        summaries = [future.result() for future in futures]
    folders = [(label, Path(str(summary.folder))) for label, summary in zip(labels, summaries, strict=True)]
    console.print(show.terminal_plot(folders, console.width))
    lowered = f", at {plan.share} of its rates" if plan.share < 1 else ""
    console.print(show.table(summaries, f"the same {seconds:g} s without and with SLACP, tier {tier}{lowered}"))
    bare, slacp = summaries
    console.print(show.comparison(bare.goodput_bps, slacp.goodput_bps), highlight=False)
    picture = folders[-1][1] / "demo.png"
    show.plot(folders, picture, f"TCP over a lossy radio link: {medium}")
    console.print(f"plot: {picture}", highlight=False, soft_wrap=True)
    _say_warnings([*show.lateness(labels, summaries), *show.warnings(summaries, late=False)])


def _plan(scenario: Scenario) -> tuple[machine_capacity.Plan, str]:
    """How this machine is to run the demo, and why, for people: lines, or nothing where it runs as it should."""
    if scenario.tier == "usrp":
        # two pairs of virtual radios have an air each, one pair of real ones has not
        return machine_capacity.Plan(1, Fraction(1)), ""
    costs = machine_capacity.link_costs(scenario, machine_capacity.slowness())
    if _rates(scenario) != _rates(load(DEMO_SCENARIOS[scenario.tier], tier=scenario.tier)):
        # a rate that somebody has asked for stays
        costs = {Fraction(1): costs[Fraction(1)]}
    room, links = machine_capacity.look(), len(DEMO_SCHEMES)
    plan = machine_capacity.choose(room, costs, links)
    reason = machine_capacity.explain(plan, room, costs, links)
    return plan, f"{reason}\n" if reason else ""


def _rates(scenario: Scenario) -> tuple[float, ...]:
    """The rates that decide what a link costs."""
    return scenario.radio.rate_sps, *(scenario.channel.direction(side).rate_bps for side in SIDES)


def _until(ended: Event, bar: Show) -> Show:
    """What a run in a thread is to call: it ends the run once `ended` is set."""

    def shown(progress: Progress) -> None:
        if ended.is_set():
            raise FadelabError("ended with the other run")
        bar(progress)

    return shown


def _warn(summaries: Sequence[Summary], allow_late: bool) -> None:
    """Say what is wrong with these results; lateness that is not allowed is an error, and said there."""
    _say_warnings(show.warnings(summaries, late=allow_late))


def _warn_once(line: str) -> None:
    _say_warnings([line])


def _say_warnings(lines: Sequence[str]) -> None:
    console = Console(stderr=True)
    for line in lines:
        console.print(f"[yellow]warning:[/] {line}", highlight=False, soft_wrap=True)
