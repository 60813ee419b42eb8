"""The results of a paper as JSON, as CSV and as a table on the terminal: ours beside the paper's."""

import csv
import json
import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from testbed.papers.paper import Paper
from testbed.papers.report import percent
from testbed.papers.results import CellResult, Quartiles, Results
from testbed.papers.statements import Finding, Verdict
from testbed.results.grid import grid

# -- for programs --------------------------------------------------------------------------------------------


def document(results: Results, paper: Paper) -> dict[str, Any]:
    """Return all that was computed as one JSON document (docs/experiments.md); it has nothing of when or where."""
    return {
        "paper": results.paper,
        "title": paper.title,
        "tier": paper.tier,
        "unit": paper.unit,
        "settings": list(results.settings),
        "cells": [_cell(result, paper) for result in results.cells],
        "summary": {
            **{finding.statement.name: _finding(finding) for finding in paper.findings(results)},
            **{headline.name: asdict(headline) for headline in paper.headlines(results)},
        },
    }


def _finding(finding: Finding) -> dict[str, Any]:
    statement = finding.statement
    return {
        "name": statement.name,
        "label": statement.words,
        "place": statement.place,
        "hits": finding.hits,
        "of": len(finding.cases),
        "misses": list(finding.misses),
        "verdict": finding.verdict,
        **{verdict.value: finding.count(verdict) for verdict in Verdict},
        "why": {case.name: case.why for case in finding.cases if case.why},
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
    """Return a figure for JSON, which has no infinity: a value that could not be measured is null."""
    return {
        name: value if value is not None and math.isfinite(value) else None for name, value in asdict(figure).items()
    }


def write(results: Results, paper: Paper, folder: Path) -> list[Path]:
    """Write the document, one row per cell, and one row per replication; return the files."""
    files = [folder / name for name in ("results.json", "cells.csv", "replications.csv")]
    # a unit that all cells have is in the headings, others are beside the cells
    suffix, own = (f"_{paper.unit}", []) if paper.unit else ("", ["unit"])
    names = sorted({name for result in results.cells for sample in result.samples for name in sample.counts})
    figures = [f"{side}_{name}{suffix}" for side in ("ours", "paper") for name in ("p25", "median", "p75")]
    cells: list[list[Any]] = [["cell", *own, "replications", "not_finished", "ratio", *figures]]
    replications: list[list[Any]] = [["cell", *own, "seed", f"value{suffix}", *names]]
    for result in results.cells:
        cell = [result.cell.name, *(result.cell.unit for _ in own)]
        values = [result.ratio, *asdict(result.ours).values(), *asdict(result.cell.paper).values()]
        cells.append([*cell, len(result.samples), result.unfinished, *map(_short, values)])
        for seed, sample in enumerate(result.samples, result.first_seed):
            counters = [sample.counts.get(name, "") for name in names]
            replications.append([*cell, seed, repr(sample.value), *counters])
    files[0].write_text(json.dumps(document(results, paper), indent=1) + "\n")
    for path, rows in zip(files[1:], (cells, replications), strict=True):
        with path.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
    return files


def _short(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.4g}" if value < 1 else f"{value:.2f}"


# -- for people ----------------------------------------------------------------------------------------------


def table(results: Results, paper: Paper) -> Table:
    """A row per cell: ours, the paper's, and how they compare."""
    rows = grid(f"{results.paper}, tier {paper.tier}: medians{paper.unit and f', {paper.unit}'}")
    cut = any(result.unfinished for result in results.cells)
    rows.add_column("cell", no_wrap=True)
    own = () if paper.unit else ("unit",)
    beside = any(result.cell.paper.known for result in results.cells)
    compared = ("paper", "ratio") if beside else ()
    for heading in (*own, "ours", "quartiles", *compared, "runs", *(("cut",) if cut else ())):
        rows.add_column(heading, justify="right", no_wrap=True)
    for result in results.cells:
        ours = result.ours
        rows.add_row(
            result.cell.name,
            *([result.cell.unit] if own else []),
            _number(ours.median),
            _spread(ours),
            *((_number(result.cell.paper.median), _ratio(result)) if beside else ()),
            str(len(result.samples)),
            *((str(result.unfinished or ""),) if cut else ()),
        )
    return rows


def _spread(figure: Quartiles) -> str:
    if figure.p25 is None or figure.p75 is None or math.isinf(figure.p25):
        return ""
    return f"{_number(figure.p25)}–{_number(figure.p75)}"


def _number(value: float) -> str:
    if math.isinf(value):
        return "never"
    if math.isnan(value):
        return ""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"


def _ratio(result: CellResult) -> Text:
    style = "green" if result.cell.agrees(result.ours.median) else "red"
    return Text("" if result.ratio is None else f"{result.ratio:.2f}", style=style)


def in_words(paper: Paper, results: Results) -> Iterator[str]:
    """Yield statements and headlines as lines with Rich's markup."""
    for finding in paper.findings(results):
        counted = f"[bold]{finding.hits} of {len(finding.cases)}[/], {finding.verdict}"
        yield f"{finding.statement.words}: {counted}"
    for headline in paper.headlines(results):
        yield f"{headline.label}: [bold]{percent(headline.ours)}[/] (paper {percent(headline.paper)})"
