"""`papers`: compute the cells of a paper and show ours beside the paper's."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from testbed.cli import options
from testbed.cli.bar import bar
from testbed.cli.compile import ensure_compiled
from testbed.errors import FadelabError

if TYPE_CHECKING:
    from testbed.papers.paper import Paper

#: width of the table where there is no terminal
_WIDTH = 120


@click.command()
@click.argument("paper", required=False)
@click.option("--only", multiple=True, metavar="GLOB", help="Cells by name, as in 'table2/cra/high/*'.")
@click.option("--list", "list_", is_flag=True, help="Name the cells and do nothing else.")
@click.option("--replications", type=click.IntRange(1, 100_000), help="Runs per cell; default: the paper's own number.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Of the first replication.")
@options.settings("Change a value of all cells' scenarios.")
@click.option("--workers", type=click.IntRange(1, 1024), help="Processes; default: one per core.")
@click.option("--quick", is_flag=True, help="A few runs per cell: do the rankings still hold? Without PAPER: of all.")
@click.option("--resume", is_flag=True, help="Go on where an interrupted command with the same --out was.")
@click.option("--out", type=options.FOLDER, help="Keep results, tables and plots there.")
@click.option("--json", "json_", is_flag=True, help="Print one JSON document instead of the table.")
def papers(
    paper: str | None,
    only: tuple[str, ...],
    list_: bool,
    replications: int | None,
    seed: int,
    settings: tuple[str, ...],
    workers: int | None,
    quick: bool,
    resume: bool,
    out: Path | None,
    json_: bool,
) -> None:
    """Compute the tables of PAPER again and show ours beside the paper's; without PAPER, name the papers.

    The result does not depend on the number of workers, nor on interruptions with --resume. Before a whole paper the
    cores are compiled, if they are not (see `compile`). docs/experiments.md says what each paper's cells are.
    """
    import json

    from rich.console import Console

    from testbed.campaigns.processes import cores
    from testbed.papers import outputs, report
    from testbed.papers.computing import reproduce
    from testbed.papers.paper import PAPERS, chosen, find
    from testbed.papers.samples import SampleStore, question

    if quick:
        if only or list_ or replications or settings or out or resume or seed != 1:
            raise FadelabError("--quick chooses cells, runs and seeds: give it with PAPER, --workers and --json alone")
        _check_rankings([find(paper)] if paper else list(PAPERS.values()), workers or cores(), json_)
        return
    if resume and out is None:
        raise FadelabError("--resume needs --out, the folder of the interrupted command")
    if paper is None:
        for name, each in PAPERS.items():
            print(f"{name}: {each.title}")
        return
    found = find(paper)
    cells = chosen(found, only)
    if list_:
        for cell in cells:
            print(cell.name)
        return
    for cell in cells:
        # settings that are refused leave no folder behind
        found.job(cell.case, settings)
    if out is not None:
        # before hours of work need it
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FadelabError(f"--out {out}: cannot be made: {error.strerror}") from None
    if not only and replications is None:
        # the whole paper takes longer than to compile
        ensure_compiled()
    with ExitStack() as stack:
        kept = (
            None
            if out is None
            else stack.enter_context(
                SampleStore(out, question(found, cells, replications, seed, settings), resume=resume)
            )
        )
        results = reproduce(
            found,
            cells,
            replications=replications,
            first_seed=seed,
            settings=settings,
            workers=workers or cores(),
            done=stack.enter_context(bar(paper, "runs")),
            store=kept,
        )
        if kept is not None:
            kept.remove()
    written = [] if out is None else [*outputs.write(results, found, out), *report.write(found, results, out)]
    if json_:
        print(json.dumps(outputs.document(results, found)))
        return
    console = Console()
    if not console.is_terminal:
        # a file has room for whole names
        console = Console(width=_WIDTH)
    console.print(outputs.table(results, found))
    for finding in found.findings(results):
        console.print(outputs.in_words(finding), highlight=False, soft_wrap=True)
    for path in written:
        console.print(str(path), highlight=False, soft_wrap=True)


def _check_rankings(papers: "Sequence[Paper]", workers: int, json_: bool) -> None:
    """Compute a few runs of each cell and see that the papers' rankings hold. Raises GateError if one does not."""
    import json

    from testbed.papers.computing import reproduce
    from testbed.papers.gates import GateError, gates

    ensure_compiled()
    found = []
    for paper in (paper for paper in papers if paper.gates):
        with bar(paper.name, "runs") as done:
            results = reproduce(paper, paper.cells, replications=paper.quick, workers=workers, done=done)
        for gate in gates(paper, results):
            found.append(gate)
            if not json_:
                verdict = "holds" if gate.open else "FAILS"
                words = f"{gate.tally.hits} of {gate.tally.of}, at least {gate.least}"
                click.echo(f"{paper.name}: {gate.tally.label}: {words}: {verdict}")
    if json_:
        click.echo(json.dumps([asdict(gate) | {"open": gate.open} for gate in found]))
    if closed := [gate for gate in found if not gate.open]:
        first = closed[0]
        raise GateError(
            f"{len(closed)} of {len(found)} rankings do not hold: {first.paper}: {first.tally.name} has "
            f"{first.tally.hits} of {first.tally.of} and needs {first.least}"
        )


COMMAND = papers
