"""`papers`: compute the cells of a paper and show ours beside the paper's."""

from collections.abc import Sequence
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


@click.command(epilog="docs/experiments.md")
@click.argument("paper", required=False)
@click.option("--only", multiple=True, metavar="GLOB", help="Cells by name, as in 'table2/cra/high/*'.")
@click.option("--list", "list_", is_flag=True, help="Name the cells and do nothing else.")
@click.option("--replications", type=click.IntRange(1, 100_000), help="Runs per cell; default: the paper's own number.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Of the first replication.")
@options.settings("Change a value of all cells' scenarios.")
@click.option("--workers", type=click.IntRange(1, 1024), help="Processes; default: one per core.")
@click.option("--quick", is_flag=True, help="A few runs: do the rankings still hold? Without PAPER: of all.")
@click.option("--all", "all_", is_flag=True, help="All papers, each into a folder of its own in --out.")
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
    all_: bool,
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
    from testbed.papers import outputs
    from testbed.papers.computing import reproduce
    from testbed.papers.folder import compute_into
    from testbed.papers.paper import PAPERS, chosen, find
    from testbed.papers.question import Question

    if quick:
        if only or list_ or replications or settings or out or resume or all_:
            raise FadelabError("--quick chooses cells and runs: give it with PAPER, --seed, --workers and --json alone")
        _check_rankings([find(paper)] if paper else list(PAPERS.values()), seed, workers or cores(), json_)
        return
    if resume and out is None:
        raise FadelabError("--resume needs --out, the folder of the interrupted command")
    if all_:
        if paper or only or list_ or settings or json_ or out is None:
            raise FadelabError("--all computes whole papers: give it with --out, and no PAPER, --only, --set or --json")
        _compute_all(out, replications, seed, workers or cores(), resume)
        return
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
    if not only and replications is None:
        # the whole paper takes longer than to compile
        ensure_compiled()
    written: list[Path] = []
    with bar(paper, "runs") as done:
        question = Question(found, cells, replications=replications, first_seed=seed, settings=settings)
        if out is None:
            results = reproduce(question, workers=workers or cores(), done=done)
        else:
            results, written = compute_into(out, question, workers=workers or cores(), done=done, resume=resume)
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


def _compute_all(out: Path, replications: int | None, seed: int, workers: int, resume: bool) -> None:
    """Compute each paper into a folder of its own; with `resume`, those that are not complete."""
    from testbed.papers.folder import compute_into, read_manifest
    from testbed.papers.paper import PAPERS
    from testbed.papers.question import Question

    ensure_compiled()
    for name, paper in PAPERS.items():
        made = read_manifest(out / name) if resume else None
        question = Question(paper, paper.cells, replications=replications, first_seed=seed)
        if made is not None and made.question == question.digest():
            click.echo(f"{name}: complete since {made.ended}")
            continue
        with bar(name, "runs") as done:
            compute_into(out / name, question, workers=workers, done=done, resume=resume)
        click.echo(f"{name}: {out / name}")


def _check_rankings(papers: "Sequence[Paper]", seed: int, workers: int, json_: bool) -> None:
    """Compute a few runs of the papers and see that their rankings hold. Raises GateError if one does not."""
    import json
    from time import monotonic

    from testbed.papers.gates import GateError, gates, quick_results

    ensure_compiled()
    found = []
    for paper in papers:
        began = monotonic()
        with bar(paper.name, "runs") as done:
            results = quick_results(paper, first_seed=seed, workers=workers, done=done)
        for gate in gates(paper, results):
            found.append(gate)
            if not json_:
                verdict = "holds" if gate.open else "FAILS"
                words = f"{gate.tally.hits} of {gate.tally.of}, at least {gate.least}"
                click.echo(f"{paper.name}: {gate.tally.label}: {words}: {verdict}")
        if not json_:
            click.echo(f"{paper.name}: {monotonic() - began:.0f} s")
    if json_:
        click.echo(json.dumps([asdict(gate) | {"open": gate.open} for gate in found]))
    if closed := [gate for gate in found if not gate.open]:
        first = closed[0]
        raise GateError(
            f"{len(closed)} of {len(found)} rankings do not hold: {first.paper}: {first.tally.name} has "
            f"{first.tally.hits} of {first.tally.of} and needs {first.least}"
        )


COMMAND = papers
