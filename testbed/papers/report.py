"""report.md, common to all papers: findings, the tables that a paper lays out, its parameters."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.papers.plots import save
from testbed.papers.results import CellResult, Finding, Headline, Quartiles, Results, Tally
from testbed.papers.runs import Parameter

if TYPE_CHECKING:
    from testbed.papers.paper import Paper

#: labels of a row, and its cells; some may not have been computed
Row = tuple[Sequence[str], Sequence[CellResult | None]]


def write(paper: "Paper", results: Results, folder: Path) -> list[Path]:
    """Write report.md and the plots that these results permit; return the files."""
    report = folder / "report.md"
    report.write_text(markdown(paper, results))
    return [report, *(save(figure, folder / name) for name, figure in paper.plots(results))]


def markdown(paper: "Paper", results: Results) -> str:
    """Return findings, tables in the paper's layout and parameters as Markdown."""
    lines = [f"# {paper.heading}", ""]
    for note in paper.notes:
        lines += [note, ""]
    runs = ", ".join(map(str, sorted({len(result.samples) for result in results.cells})))
    seeds = f"from {results.cells[0].first_seed} on" if results.cells else ""
    lines += [f"Tier `{paper.tier}`. Replications per cell: {runs}; seeds {seeds}, the same for all cells.", ""]
    if results.settings:
        lines += [f"With `{' '.join(f'--set {setting}' for setting in results.settings)}`.", ""]
    lines += [*findings(paper.findings(results)), "", *paper.tables(results)]
    return "\n".join([*lines, "## Parameters", "", *paper.choices(), ""])


def findings(found: Sequence[Finding]) -> Iterator[str]:
    """Yield the findings as a table, and after it the cells that do not agree."""
    beside = any(isinstance(finding, Headline) for finding in found)
    yield from ("| | ours | paper |", "|---|---|---|") if beside else ("| | ours |", "|---|---|")
    for finding in found:
        if isinstance(finding, Tally):
            yield f"| {finding.label} | {finding.hits} of {finding.of} |{' |' if beside else ''}"
        else:
            yield f"| {finding.label} | {percent(finding.ours)} | {percent(finding.paper)} |"
    for finding in found:
        if isinstance(finding, Tally) and finding.misses:
            yield from ("", f"Where it does not hold ({finding.label}): {', '.join(finding.misses)}.")


def parameters(groups: Mapping[str, Sequence[Parameter]]) -> Iterator[str]:
    """Yield choices as a table; of several groups, each choice with the cells that it is for."""
    grouped = len(groups) > 1
    headings = [*(["cells"] if grouped else []), "scenario key", "value", "whose", "why"]
    rows = (
        [*([group] if grouped else []), f"`{choice.key}`", f"{choice.value}", choice.whose, choice.why]
        for group, choices in groups.items()
        for choice in choices
    )
    return table(headings, rows)


def section(
    title: str, headings: Sequence[str], rows: Iterable[Row], entry: Callable[[CellResult], str]
) -> Iterator[str]:
    """Yield a table of the paper with `entry` of each cell; rows without a cell that was computed are left out."""
    shown = [
        [*labels, *("" if result is None else entry(result) for result in results)]
        for labels, results in rows
        if any(results)
    ]
    if shown:
        yield from (f"## {title}", "", *table(headings, shown), "")


def entry(result: CellResult, number: Callable[[float], str] = "{:.3g}".format, *, quartiles: bool = True) -> str:
    """Return our median / the paper's, with their `quartiles` as far as they are known; bold where they do not agree.

    Without a figure in the paper, ours alone.
    """
    ours, theirs = (_figure(figure, number, quartiles) for figure in (result.ours, result.cell.paper))
    if not result.cell.paper.known:
        return ours
    text = f"{ours} / {theirs}"
    return text if result.cell.agrees(result.ours.median) else f"**{text}**"


def _figure(figure: Quartiles, number: Callable[[float], str], quartiles: bool) -> str:
    if not quartiles or figure.p25 is None or figure.p75 is None or math.isinf(figure.p25):
        return number(figure.median)
    return f"{number(figure.median)} ({number(figure.p25)} to {number(figure.p75)})"


def cells(results: Results) -> Iterator[str]:
    """Yield all cells as one table."""
    return section("Cells", ["cell", "ours / the paper's"], (([f"`{r.cell.name}`"], [r]) for r in results.cells), entry)


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a table in Markdown."""
    yield f"| {' | '.join(headings)} |"
    yield "|---" * len(headings) + "|"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def percent(share: float | None) -> str:
    """Return a share for people."""
    return "not known" if share is None else f"{100 * share:.1f} %"
