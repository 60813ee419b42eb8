"""`report`: a campaign's tables and figures, and bundles with which others can check them."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from common.units import number_of
from testbed.cli import options
from testbed.errors import FadelabError

if TYPE_CHECKING:
    from testbed.reports.document import Table

#: width of a table where there is no terminal
_WIDTH = 160


class DisagreementError(FadelabError):
    """A bundle that differs from the runs made again."""


class _ReportGroup(click.Group):
    """`report CAMPAIGN` is short for `report write CAMPAIGN`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            args = ["write", *args]
        return super().resolve_command(ctx, args)


@click.group(cls=_ReportGroup, subcommand_metavar="CAMPAIGN | COMMAND [ARGS]...", epilog="docs/campaigns.md#reports")
def report() -> None:
    """Write the report of CAMPAIGN (a campaign's folder), compare two, bundle one, verify a bundle; publish papers."""


@report.command()
@click.argument("campaign", type=options.FOLDER)
@click.option("--out", type=options.FOLDER, help="Where to write; default: the campaign's folder.")
def write(campaign: Path, out: Path | None) -> None:
    """Write report.html (one file), report.md and figures/ of a campaign."""
    from testbed.reports.numbers import read_campaign
    from testbed.reports.report import write_report

    for path in write_report(read_campaign(campaign), out or campaign):
        click.echo(path)


@report.command()
@click.argument("a", type=options.FOLDER)
@click.argument("b", type=options.FOLDER)
@click.option("--out", type=options.FOLDER, help="Write report.html and report.md there, too.")
def compare(a: Path, b: Path, out: Path | None) -> None:
    """Compare the points that two campaigns have in common, run by run with the same seed."""
    from testbed.reports.footnotes import counted
    from testbed.reports.numbers import read_campaign
    from testbed.reports.report import compared, write_comparison

    ours, theirs = read_campaign(a), read_campaign(b)
    table, notes = compared(ours, theirs)
    _print(f"A: {a}   B: {b}", table)
    for campaign in (ours, theirs):
        click.echo(f"{campaign.path}: {counted(campaign.rows)}")
    for note in notes:
        click.echo(note.text)
    if out is not None:
        for path in write_comparison(ours, theirs, out):
            click.echo(path)


def _print(title: str, table: "Table") -> None:
    """Print a table of a report on the terminal."""
    from rich.console import Console

    from testbed.results.grid import grid

    shown = grid(title, padding=(0, 1))
    for index, heading in enumerate(table.headings):
        shown.add_column(heading, justify="right" if index >= table.numbers_from else "left", overflow="fold")
    for row in table.rows:
        shown.add_row(*row)
    console = Console(markup=False)
    (console if console.is_terminal else Console(width=_WIDTH, markup=False)).print(shown)


@report.command()
@click.argument("campaign", type=options.FOLDER)
@click.option("--out", type=options.FILE, help="The archive; default: CAMPAIGN.zip.")
@click.option("--source/--no-source", default=True, help="Whether to pack the program that made the runs.")
@click.option("--author", "authors", multiple=True, metavar="NAME", help="An author, or 'NAME <ORCID>'; repeatable.")
@click.option("--license", "licence", default="", metavar="SPDX", help="As in CC-BY-4.0; default: fadelab's licence.")
@click.option("--doi", default="", metavar="DOI", help="The DOI under which it is published.")
@click.option("--publisher", default="", metavar="NAME", help="Who publishes it; default: the authors.")
def bundle(
    campaign: Path,
    out: Path | None,
    source: bool,
    authors: tuple[str, ...],
    licence: str,
    doi: str,
    publisher: str,
) -> None:
    """Pack all that a stranger needs to check a campaign."""
    from testbed.reports.bundle import write_bundle
    from testbed.reports.crate import Publication
    from testbed.reports.numbers import read_campaign

    target = out or campaign.resolve().with_name(f"{campaign.resolve().name}.zip")
    publication = Publication(authors, licence, doi, publisher)
    write_bundle(read_campaign(campaign), target, source=source, publication=publication)
    click.echo(f"{target}  {target.stat().st_size / 1e6:.1f} MB")


@report.command()
@click.argument("bundle", type=options.PATH)
@click.option("--sample", type=click.IntRange(min=0), default=10, show_default=True, help="Runs to make again.")
@click.option(
    "--draw", type=click.IntRange(0, 2**32 - 1), metavar="N", help="The number that draws them; default: by chance."
)
@click.option("--all", "all_", is_flag=True, help="Make all runs again.")
@click.option("--workers", type=click.IntRange(1, 1024), help="Processes; default: one per core.")
def verify(bundle: Path, sample: int, draw: int | None, all_: bool, workers: int | None) -> None:
    """Check BUNDLE, or a campaign's folder: checksums, results, report, and a sample of runs made again."""
    from testbed.campaigns.processes import cores
    from testbed.cli.bar import bar
    from testbed.reports.verify import verify as check
    from testbed.sources import sources

    with bar("verify", "runs") as done:
        verdict = check(bundle, sample=None if all_ else sample, draw=draw, workers=workers or cores(), done=done)
    click.echo(f"campaign {verdict.campaign}, plan {verdict.plan}")
    theirs = ", ".join(digest[:12] or "not recorded" for digest in verdict.sources)
    click.echo(f"made by fadelab {', '.join(verdict.versions)}, sources {theirs}")
    ours = sources()
    same = verdict.sources == (ours.digest,)
    click.echo(f"checked by fadelab {ours.version}, {'the same' if same else f'sources {ours.digest[:12]}'}")
    click.echo(f"checksums: {verdict.files} files compared; results and scenarios with the runs' files, run by run")
    if verdict.has_report:
        click.echo("report: text and figures compared with those that the rows give")
    if verdict.has_program:
        click.echo("source.tar.gz: its sources compared with those that made the runs")
    drawn = "" if verdict.recomputed == verdict.of else f"; drawn by {verdict.draw}: --draw {verdict.draw} repeats it"
    click.echo(f"made again: {verdict.recomputed} of {verdict.of} runs of tier model, compared byte by byte{drawn}")
    if verdict.real_time:
        click.echo(f"not made again: {verdict.real_time} real-time runs, which do not repeat to the byte")
    for unchecked in verdict.unchecked:
        click.echo(f"not checked: {unchecked}")
    for difference in verdict.differences[1:]:
        click.echo(f"differs: {difference}")
    if verdict.differences:
        if not same:
            click.echo("other sources may give other results: source.tar.gz of a bundle has those that made it")
        words = number_of(len(verdict.differences), "difference")
        raise DisagreementError(f"{bundle}: {words}, the first: {verdict.differences[0]}")
    click.echo("all that was checked agrees")


@report.command()
@click.argument("campaign", type=options.FOLDER)
def agreement(campaign: Path) -> None:
    """Compare the tiers of a campaign: goodput, retransmissions, delay and cwnd, and its bounds of the goodput."""
    from testbed.reports.agreement import compare as compare_points
    from testbed.reports.agreement import footnotes, summary, tables
    from testbed.reports.numbers import read_campaign

    read = read_campaign(campaign)
    found = compare_points(read)
    if not found:
        raise FadelabError(f"{campaign}: compares no points: its file has no agreement, or no pair of runs is done")
    for table in tables(found):
        _print(str(campaign), table)
    for note in footnotes(read):
        click.echo(note.text)
    click.echo(summary(found))
    if off := [each for each in found if not each.agrees]:
        first = off[0]
        raise DisagreementError(
            f"{campaign}: {len(off)} of {len(found)} do not agree within the bound, the first: {first.where}: "
            f"{first.quantity} {first.ours:.4g} with {first.points}, {first.theirs:.4g} with {first.to}"
        )


@report.command()
@click.argument("folder", type=options.FOLDER)
@click.option("--out", type=options.FOLDER, required=True, help="Where to write, as in docs.")
@click.option("--plots/--no-plots", default=True, help="Whether to draw the plots, too.")
def papers(folder: Path, out: Path, plots: bool) -> None:
    """Write the results of `papers --all --out FOLDER` for readers: results.md, and papers/ with tables and plots."""
    from testbed.papers.publishing import publish

    for path in publish(folder, out, plots=plots):
        click.echo(path)


COMMAND = report
