"""`campaign`: many runs, by a plan that is fixed before the first."""

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from testbed.cli import options
from testbed.errors import FadelabError

if TYPE_CHECKING:
    from telemetry.influx import Influx
    from testbed.campaigns.engine import Status
    from testbed.campaigns.folder import CampaignFolder
    from testbed.campaigns.plan import CampaignPlan, Run
    from testbed.campaigns.processes import Workers
    from testbed.campaigns.rows import Row
    from testbed.campaigns.schedule import Schedule


class FailedRunsError(FadelabError):
    """A campaign with failed runs."""


@click.command(epilog="docs/campaigns.md")
@click.argument("file", type=options.FILE)
@click.option("--out", type=options.FOLDER, help="The campaign's folder; default: runs/NAME.")
@options.clock
@click.option("--workers", type=click.IntRange(1, 1024), help="Processes; default: one per core.")
@click.option("--scheduler", metavar="ADDRESS", help="Let a Dask cluster make the runs of tier model.")
@options.influx
@click.option("--retry", is_flag=True, help="Make runs again that failed.")
@click.option("--allow-late", is_flag=True, help="Accept real-time runs that did not keep the clock.")
@click.option("--plan", "plan_only", is_flag=True, help="Show points, seeds and hash, and do nothing else.")
@click.option("--json", "json_", is_flag=True, help="Print the results as one JSON document.")
def campaign(
    file: Path,
    out: Path | None,
    clock: str | None,
    workers: int | None,
    scheduler: str | None,
    influx: str | None,
    token_file: Path | None,
    retry: bool,
    allow_late: bool,
    plan_only: bool,
    json_: bool,
) -> None:
    """Make all runs of a campaign: FILE is YAML, with a scenario, a sweep and seeds, or the plan.json of a campaign.

    The plan (points, seeds, hypotheses) is written down and hashed before the first run. Runs that are done are not
    made again, so that an interrupted campaign goes on with the same command. docs/campaigns.md describes the file.
    """
    from rich.console import Console

    from testbed.campaigns.engine import run_campaign
    from testbed.campaigns.folder import RESULTS, CampaignFolder, planned
    from testbed.observers import open_influx
    from testbed.reports.footnotes import counted
    from testbed.results.show import warn

    plan, source, files = planned(file, clock)
    loaded = plan.campaign
    console = Console(markup=False)
    if plan_only:
        for point in plan.points:
            click.echo(f"{point.name}: tier {point.scenario['tier']} {point.label}")
        click.echo(f"{_seeds(plan)}; plan {plan.sha256}")
        return
    _check_machine(plan)
    database = open_influx(influx, token_file)
    target = Path("runs") / loaded.name if out is None else out
    with CampaignFolder(target, plan, source, files) as folder:
        click.echo(f"{target}: {_seeds(plan)}; plan {plan.sha256[:16]}", err=True)
        with _records(database, folder) as look, _display(loaded.name, target) as show:
            rows = run_campaign(
                folder,
                _workers(plan, workers, scheduler),
                afar=scheduler is not None,
                retry=retry,
                allow_late=allow_late,
                show=show,
                look=look,
            )
    if json_:
        click.echo((target / RESULTS).read_text(), nl=False)
    else:
        console.print(_table(plan, rows))
        runs = counted([row for _, row in rows])
        console.print(f"{target}/  plan, index, {runs}", highlight=False, soft_wrap=True)
        where = f"./fadelab report {shlex.quote(str(target))} writes intervals, tests of the hypotheses and figures"
        console.print(where, highlight=False, soft_wrap=True)
    if len(versions := sorted({row.fadelab for _, row in rows if row.status == "done"})) > 1:
        warn(f"the runs were made by different versions: {', '.join(versions)}")
    if broken := [row for _, row in rows if row.status == "failed"]:
        raise FailedRunsError(
            f"{len(broken)} of {len(rows)} runs failed: {broken[0].run}: {broken[0].error}; --retry makes them again"
        )


def _check_machine(plan: "CampaignPlan") -> None:
    """Refuse a campaign that this machine cannot run, before anything is written."""
    from testbed.cli.machine.virtual_kernel import prepare_clock
    from testbed.running import check_tier
    from testbed.scenario.file import validate
    from testbed.tiers import TIERS

    for point in plan.points:
        if not TIERS[point.scenario["tier"]].simulated:
            scenario = validate({**point.scenario}, point.name)
            prepare_clock(scenario)
            check_tier(scenario)


def _workers(plan: "CampaignPlan", workers: int | None, scheduler: str | None) -> "Callable[[], Workers]":
    from testbed.campaigns.processes import Processes, cores

    if scheduler is None:
        return lambda: Processes(workers or cores())
    from testbed.campaigns.cluster import Cluster

    return lambda: Cluster(scheduler)


@contextmanager
def _records(influx: "Influx | None", folder: "CampaignFolder") -> "Iterator[Callable[[Schedule], None]]":
    """Write the campaign to a database, if there is one."""
    if influx is None:
        yield lambda schedule: None
        return
    from testbed.campaign_database import CampaignDatabase
    from testbed.results.show import warn

    with CampaignDatabase(influx, folder, warn) as database:
        yield database.look


def _seeds(plan: "CampaignPlan") -> str:
    campaign, stop = plan.campaign, plan.campaign.stop
    many = f"{campaign.seeds.count}" if stop is None else f"{stop.least} to {stop.most}"
    return f"{len(plan.points)} points, {many} runs of each"


@contextmanager
def _display(name: str, folder: Path) -> "Iterator[Callable[[Status], None]]":
    """Show how far the campaign is, and when it ends; without a terminal, a line every ten seconds."""
    from time import monotonic

    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn

    from testbed.campaigns.progress import Reporter
    from testbed.results.show import LINE_S, bars_of, rate

    began = told_at = monotonic()
    reporter = Reporter(name, folder, began)
    state = TextColumn("{task.fields[state]}", style="cyan", markup=False)
    with bars_of(TextColumn("{task.description}"), BarColumn(bar_width=30), MofNCompleteColumn(), state) as bars:
        task = bars.add_task(name, total=None, state="")

        def show(status: "Status") -> None:
            nonlocal told_at
            found = reporter.report(status, monotonic())
            words = []
            if found.runs_per_s is not None:
                words.append(f"{found.runs_per_s:.3g} runs/s")
            if found.left_s is not None:
                words.append(f"ETA {_clock(found.left_s)}")
            if found.failed:
                words.append(f"{found.failed} failed")
            if found.run_elapsed_s is not None:
                words.append(f"{found.run}: {found.run_elapsed_s:.0f} s {rate(found.run_goodput_bps or 0.0)}")
            bars.update(task, completed=found.ended, total=found.planned, state=", ".join(words))
            if not bars.console.is_terminal and monotonic() - told_at >= LINE_S:
                told_at = monotonic()
                line = ", ".join([f"{name}: {found.ended} of {found.planned} runs", *words])
                bars.console.print(line, highlight=False, soft_wrap=True)

        try:
            yield show
        finally:
            reporter.remove()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _table(plan: "CampaignPlan", rows: "list[tuple[Run, Row]]") -> object:
    from testbed.reports.footnotes import marked
    from testbed.results.grid import grid
    from testbed.results.statistics import statistic

    metrics = plan.campaign.metrics
    tiers = ", ".join(dict.fromkeys(str(point.scenario["tier"]) for point in plan.points))
    table = grid(f"{plan.campaign.name}: medians, tier {tiers}", "point", padding=(0, 1))
    for heading in ("n", *metrics):
        table.add_column(heading, justify="right", overflow="fold")
    for point in plan.points:
        own = [row for run, row in rows if run.point is point]
        samples = [[v for row in own if (v := row.value(name)) is not None] for name in metrics]
        medians = [f"{statistic(values, 'median'):.4g}".replace("inf", "never") if values else "" for values in samples]
        cells = marked([str(sum(row.counts for row in own)), *medians], own)
        table.add_row(point.label, *cells)
    return table


COMMAND = campaign
