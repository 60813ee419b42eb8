"""`papers`: compute the cells of a paper and show ours beside the paper's."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from testbed.cli import options
from testbed.cli.bar import bar
from testbed.cli.compile import ensure_compiled
from testbed.errors import FadelabError

if TYPE_CHECKING:
    from testbed.papers.gates import Gate
    from testbed.papers.paper import Paper


#: width of the table where there is no terminal
_WIDTH = 120


@click.command(epilog="docs/experiments.md")
@click.argument("paper", required=False)
@click.option("--only", multiple=True, metavar="GLOB", help="Cells by name, as in 'table2/cra/high/*'.")
@click.option("--list", "list_", is_flag=True, help="Name the cells and do nothing else.")
@click.option("--replications", type=click.IntRange(1, 100_000), help="Runs per cell; default: the paper's own number.")
@click.option("--seed", type=click.IntRange(min=0), help="Of the first replication; default: 1, with --quick 7001.")
@options.settings("Change a value of all cells' scenarios.")
@click.option("--workers", type=click.IntRange(1, 1024), help="Processes; default: one per core.")
@click.option("--quick", is_flag=True, help="A few runs: does no statement fail? Without PAPER: of all.")
@click.option("--blocks", type=click.IntRange(1, 10_000), help="With --quick: so many fresh blocks of seeds.")
@click.option(
    "--draw", type=click.IntRange(min=0), help="With --blocks: the number that seeds are drawn from; else entropy."
)
@click.option("--all", "all_", is_flag=True, help="All papers, each into a folder of its own in --out.")
@click.option("--resume", is_flag=True, help="Go on where an interrupted command with the same --out was.")
@click.option("--out", type=options.FOLDER, help="Keep results, tables and plots there.")
@click.option("--json", "json_", is_flag=True, help="Print one JSON document instead of the table.")
def papers(
    paper: str | None,
    only: tuple[str, ...],
    list_: bool,
    replications: int | None,
    seed: int | None,
    settings: tuple[str, ...],
    workers: int | None,
    quick: bool,
    blocks: int | None,
    draw: int | None,
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
    from testbed.papers.gates import BLOCK
    from testbed.papers.paper import PAPERS, chosen, find
    from testbed.papers.question import Question

    if quick:
        if only or list_ or replications or settings or out or resume or all_:
            raise FadelabError(
                "--quick chooses cells and runs: give it with PAPER, --seed or --blocks, --workers and --json alone"
            )
        checked = [find(paper)] if paper else list(PAPERS.values())
        if blocks is None:
            _check_block(checked, BLOCK if seed is None else seed, workers or cores(), json_)
        elif seed is None:
            _try_blocks(checked, blocks, draw, workers or cores(), json_)
        else:
            raise FadelabError("--blocks draws its seeds: give it without --seed, with --draw to repeat them")
        return
    if blocks is not None or draw is not None:
        raise FadelabError("--blocks and --draw are of --quick")
    seed = 1 if seed is None else seed
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
    for line in outputs.in_words(found, results):
        console.print(line, highlight=False, soft_wrap=True)
    for path in written:
        console.print(str(path), highlight=False, soft_wrap=True)


def _compute_all(out: Path, replications: int | None, seed: int, workers: int, resume: bool) -> None:
    """Compute each paper, and its variants, into folders of their own; with `resume`, those that are not complete."""
    from testbed.papers.folder import compute_into, editions, read_manifest
    from testbed.papers.paper import PAPERS
    from testbed.papers.question import Question

    ensure_compiled()
    every = [(paper, *edition) for paper in PAPERS.values() for edition in editions(paper)]
    for paper, name, settings in every:
        made = read_manifest(out / name) if resume else None
        question = Question(paper, paper.cells, replications=replications, first_seed=seed, settings=settings)
        if made is not None and made.question == question.digest():
            click.echo(f"{name}: complete since {made.ended}")
            continue
        with bar(name, "runs") as done:
            compute_into(out / name, question, workers=workers, done=done, resume=resume)
        click.echo(f"{name}: {out / name}")


def _check_block(papers: "Sequence[Paper]", seed: int, workers: int, json_: bool) -> None:
    """Compute one block of seeds of the papers. Raises GateError if a statement is contradicted."""
    import json

    from testbed.papers.gates import GateError

    ensure_compiled()
    found = []
    for paper in papers:
        found += _gates(paper, seed, workers, quiet=json_)
    if json_:
        click.echo(json.dumps([gate.document() for gate in found]))
    if closed := [gate for gate in found if not gate.open]:
        first = closed[0]
        case = first.broken[0]
        raise GateError(
            f"{len(closed)} of {len(found)} statements are contradicted: {first.paper}: "
            f"{first.finding.statement.name}: {case.name} holds in {min(case.hits)} of {case.of} replications"
        )


def _gates(paper: "Paper", seed: int, workers: int, *, quiet: bool) -> "list[Gate]":
    """Compute the quick cells of a paper and return its gates; print them unless `quiet`."""
    from time import monotonic

    from testbed.papers.gates import gates, quick_results
    from testbed.papers.statements import Verdict

    began = monotonic()
    with bar(paper.name, "runs") as done:
        found = list(gates(paper, quick_results(paper, first_seed=seed, workers=workers, done=done)))
    for gate in () if quiet else found:
        demanded = gate.demanded
        confirmed = sum(case.verdict is Verdict.CONFIRMED for case in demanded)
        words = f"of {len(demanded)} cases {confirmed} confirmed, {len(gate.broken)} contradicted"
        click.echo(
            f"{paper.name}: {gate.finding.statement.words}: {words}: {'holds' if gate.open else 'FAILS'}"
            if demanded
            else f"{paper.name}: {gate.finding.statement.words}: known not to be met"
        )
        for case in gate.surprises:
            click.echo(f"{paper.name}:   {case.name} is met, although: {case.why}")
    if not quiet:
        click.echo(f"{paper.name}: seeds from {seed} on, {monotonic() - began:.0f} s")
    return found


def _try_blocks(papers: "Sequence[Paper]", blocks: int, draw: int | None, workers: int, json_: bool) -> None:
    """Compute fresh blocks of seeds and print how often each gate holds.

    Raises GateError where more blocks fail than the bound of a block lets expect.
    """
    import json
    import secrets

    from testbed.papers.gates import ALPHA, GateError, failures_within_bound, fresh_blocks, promise

    ensure_compiled()
    draw = secrets.randbits(32) if draw is None else draw
    seeds = fresh_blocks(draw, blocks)
    found = {seed: [gate for paper in papers for gate in _gates(paper, seed, workers, quiet=True)] for seed in seeds}
    failed = sum(not all(gate.open for gate in gates) for gates in found.values())
    if json_:
        rows = [{"seed": seed, "gates": [gate.document() for gate in gates]} for seed, gates in found.items()]
        click.echo(json.dumps({"draw": draw, "failed": failed, "blocks": rows}))
    else:
        click.echo(f"--draw {draw}: blocks from the seeds {', '.join(map(str, seeds))} on")
        for same in zip(*found.values(), strict=True):
            first, held = same[0], sum(gate.open for gate in same)
            if first.demanded:
                words = f"holds in {held} of {blocks}, promised at least {promise(first):.3%}"
                click.echo(f"{first.paper}: {first.finding.statement.words}: {words}")
        click.echo(
            f"{failed} of {blocks} blocks fail; expected if all statements are true: at most {ALPHA:.0%} of them"
        )
    if not failures_within_bound(failed, blocks):
        raise GateError(f"{failed} of {blocks} blocks fail: too many for true statements (--draw {draw} repeats them)")


COMMAND = papers
