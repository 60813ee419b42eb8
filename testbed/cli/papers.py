"""`papers`: compute the cells of a paper and show ours beside the paper's."""

from pathlib import Path

import click

from testbed.cli import options
from testbed.cli.bar import bar
from testbed.cli.compile import ensure_compiled
from testbed.errors import FadelabError

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
    out: Path | None,
    json_: bool,
) -> None:
    """Compute the tables of PAPER again and show ours beside the paper's; without PAPER, name the papers.

    The result does not depend on the number of workers. Before a whole paper the cores are compiled, if they are not
    (see `compile`). docs/experiments.md says what each paper's cells are.
    """
    import json

    from rich.console import Console

    from testbed.campaigns.processes import cores
    from testbed.papers import outputs, report
    from testbed.papers.computing import reproduce
    from testbed.papers.paper import PAPERS, chosen, find

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
    with bar(paper, "runs") as done:
        results = reproduce(
            found,
            cells,
            replications=replications,
            first_seed=seed,
            settings=settings,
            workers=workers or cores(),
            done=done,
        )
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


COMMAND = papers
