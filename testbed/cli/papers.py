"""What `papers` does, behind the command line: compute cells, show ours beside the paper's, keep both."""

import csv
import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from testbed.errors import FadelabError
from testbed.papers.paper import CellResult, Finding, Paper, Quartiles, Results, Tally, chosen, find, papers, reproduce
from testbed.papers.workers import cores

#: on no terminal, how often progress is a line, and how wide the table may be
_TELL_S = 10.0
_WIDTH = 120


def show_papers() -> None:
    """Name all papers."""
    for name in papers():
        print(f"{name}: {find(name).title}")


def show_cells(name: str, only: Sequence[str]) -> None:
    """Name the cells of a paper."""
    for cell in chosen(find(name), only):
        print(cell.name)


def run(
    name: str,
    *,
    only: Sequence[str],
    replications: int | None,
    seed: int,
    settings: Sequence[str],
    workers: int | None,
    out: Path | None,
    json_: bool,
) -> None:
    """Compute cells of a paper and print them; with `out`, keep them as files, too."""
    paper = find(name)
    cells = chosen(paper, only)
    for cell in cells:
        # what cannot be leaves no folder behind
        paper.job(cell, settings)
    _prepare(out)
    with _progress(name) as done:
        results = reproduce(
            name,
            paper,
            cells,
            replications=replications,
            first_seed=seed,
            settings=settings,
            workers=workers or cores(),
            done=done,
        )
    found = paper.findings(results)
    written = [] if out is None else [*write(results, paper, found, out), *paper.write_report(results, out)]
    if json_:
        print(json.dumps(document(results, paper, found)))
        return
    console = Console()
    if not console.is_terminal:
        # a file has room for whole names
        console = Console(width=_WIDTH)
    console.print(table(results, paper))
    for finding in found:
        console.print(_in_words(finding), highlight=False, soft_wrap=True)
    for path in written:
        console.print(str(path), highlight=False, soft_wrap=True)


def _prepare(out: Path | None) -> None:
    """Make the folder before hours of work need it."""
    if out is not None:
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FadelabError(f"--out {out}: cannot be made: {error.strerror}") from None


@contextmanager
def _progress(name: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr; where nobody watches, a line every ten seconds."""
    console = Console(stderr=True)
    if not console.is_terminal:
        told_at = monotonic()

        def tell(runs: int, of: int) -> None:
            nonlocal told_at
            if monotonic() - told_at >= _TELL_S:
                told_at = monotonic()
                console.print(f"{name}: {runs} of {of} runs", highlight=False)

        yield tell
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(name, total=None)
        yield lambda runs, of: bar.update(task, completed=runs, total=of)


# -- for programs --------------------------------------------------------------------------------------------


def document(results: Results, paper: Paper, found: Sequence[Finding]) -> dict[str, Any]:
    """Return all that was computed as one JSON document (docs/experiments.md); it has nothing of when or where."""
    return {
        "paper": results.paper,
        "title": paper.title,
        "tier": paper.tier,
        "unit": paper.unit,
        "settings": list(results.settings),
        "cells": [_cell(result, paper) for result in results.cells],
        "summary": {finding.name: asdict(finding) for finding in found},
    }


def _cell(result: CellResult, paper: Paper) -> dict[str, Any]:
    replications = len(result.samples)
    return {
        "cell": result.cell.name,
        "tier": paper.tier,
        "unit": result.cell.unit or paper.unit,
        "ours": _numbers(result.ours),
        "paper": _numbers(result.cell.paper),
        "ratio": result.ratio,
        "replications": replications,
        "seeds": [result.first_seed, result.first_seed + replications - 1],
        "not_finished": result.unfinished,
        "paper_not_finished": math.isinf(result.cell.paper.median),
        "means": result.means(),
    }


def _numbers(figure: Quartiles) -> dict[str, float | None]:
    """JSON has no infinity: what could not be measured is null."""
    return {
        name: value if value is not None and math.isfinite(value) else None for name, value in asdict(figure).items()
    }


def write(results: Results, paper: Paper, found: Sequence[Finding], folder: Path) -> list[Path]:
    """Write the document, one row per cell, and one row per replication; return the files."""
    files = [folder / name for name in ("results.json", "cells.csv", "replications.csv")]
    # a unit that all cells have is in the headings, others are beside the cells
    suffix, own = (f"_{paper.unit}", ()) if paper.unit else ("", ("unit",))
    files[0].write_text(json.dumps(document(results, paper, found), indent=1) + "\n")
    with files[1].open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(
            [
                *("cell", *own, "replications", "not_finished", "ratio"),
                *(f"{side}_{name}{suffix}" for side in ("ours", "paper") for name in ("p25", "median", "p75")),
            ]
        )
        for result in results.cells:
            figures = [*asdict(result.ours).values(), *asdict(result.cell.paper).values()]
            what = [result.cell.name, *([result.cell.unit] if own else [])]
            rows.writerow([*what, len(result.samples), result.unfinished, _short(result.ratio), *map(_short, figures)])
    with files[2].open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        names = sorted({name for result in results.cells for sample in result.samples for name in sample.counts})
        rows.writerow(["cell", *own, "seed", f"value{suffix}", *names])
        for result in results.cells:
            for seed, sample in enumerate(result.samples, result.first_seed):
                counters = [sample.counts.get(name, "") for name in names]
                what = [result.cell.name, *([result.cell.unit] if own else [])]
                rows.writerow([*what, seed, repr(sample.value), *counters])
    return files


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}" if value < 1 else f"{value:.2f}"


# -- for people ----------------------------------------------------------------------------------------------


def table(results: Results, paper: Paper) -> Table:
    """A row per cell: ours, the paper's, and how they compare."""
    grid = Table(
        title=f"{results.paper}, tier {paper.tier}: medians{paper.unit and f', {paper.unit}'}",
        title_style="bold",
        header_style="bold",
        box=box.SIMPLE_HEAD,
        padding=0,
        show_edge=False,
    )
    cut = any(result.unfinished for result in results.cells)
    grid.add_column("cell", no_wrap=True)
    own = () if paper.unit else ("unit",)
    for heading in (*own, "ours", "quartiles", "paper", "ratio", "runs", *(("cut",) if cut else ())):
        grid.add_column(heading, justify="right", no_wrap=True)
    for result in results.cells:
        ours = result.ours
        grid.add_row(
            result.cell.name,
            *([result.cell.unit] if own else []),
            _number(ours.median),
            _spread(ours),
            _number(result.cell.paper.median),
            _ratio(result),
            str(len(result.samples)),
            *((str(result.unfinished or ""),) if cut else ()),
        )
    return grid


def _spread(figure: Quartiles) -> str:
    if figure.p25 is None or figure.p75 is None or math.isinf(figure.p25):
        return ""
    return f"{_number(figure.p25)}–{_number(figure.p75)}"


def _number(value: float) -> str:
    if math.isinf(value):
        return "never"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"


def _ratio(result: CellResult) -> Text:
    style = "green" if result.cell.agrees(result.ours.median) else "red"
    return Text("" if result.ratio is None else f"{result.ratio:.2f}", style=style)


def _in_words(finding: Finding) -> str:
    if isinstance(finding, Tally):
        return f"{finding.label}: [bold]{finding.hits} of {finding.of}[/]"
    return f"{finding.label}: [bold]{_percent(finding.ours)}[/] (paper {_percent(finding.paper)})"


def _percent(share: float | None) -> str:
    return "not known" if share is None else f"{100 * share:.1f} %"
