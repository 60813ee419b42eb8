"""report.md, common to all papers: findings, the tables that a paper lays out, its parameters."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.papers.plots import save
from testbed.papers.results import CellResult, Headline, Quartiles, Results
from testbed.papers.runs import Parameter
from testbed.papers.statements import LEVEL, Finding, Judged, Verdict

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
    found = findings(paper.findings(results), paper.headlines(results))
    lines += [*found, "", *paper.tables(results)]
    return "\n".join([*lines, "## Parameters", "", *paper.choices(), ""])


def findings(found: Sequence[Finding], headlines: Sequence[Headline] = ()) -> Iterator[str]:
    """Yield the statements with their verdicts as a table, the cases that are not met, and headlines."""
    rows = (
        [
            finding.statement.words,
            finding.statement.place,
            f"**{finding.verdict}**" if finding.verdict is Verdict.CONTRADICTED else str(finding.verdict),
            f"{finding.hits} of {len(finding.cases)}",
            *(str(finding.count(verdict)) for verdict in Verdict),
        ]
        for finding in found
    )
    yield from table(["statement", "of the paper", "verdict", "hold", *(str(verdict) for verdict in Verdict)], rows)
    yield from (
        "",
        "*hold*: cases that hold in half of the replications or more. *contradicted*: if the statement were true, so",
        f"few replications would agree with a probability of {100 * LEVEL:g} % at most, over all its cases;",
        "*confirmed*: the mirrored test. A statement is confirmed with all its cases, and contradicted with one. In",
        "brackets: the replications that agree, of all.",
    )
    for finding in found:
        yield from _unmet(finding)
    if headlines:
        rows = ([each.label, percent(each.ours), percent(each.paper)] for each in headlines)
        yield from ("", *table(["", "ours", "paper"], rows))


def _unmet(finding: Finding) -> Iterator[str]:
    """Yield the cases of a statement that do not hold, are contradicted, or were said to disagree, by their reason."""
    groups: dict[str, list[Judged]] = {}
    for case in finding.cases:
        if case.why or not case.holds or case.verdict is Verdict.CONTRADICTED:
            groups.setdefault(case.why or "why is not known", []).append(case)
    if groups:
        yield from ("", f"{finding.statement.words}:", "")
    for why, cases in groups.items():
        yield f"- {'; '.join(map(_words, cases))}: {why}"


def _words(case: Judged) -> str:
    verdict = "" if case.verdict is Verdict.UNDECIDED else f"{case.verdict}, "
    return f"`{case.name}` ({verdict}{min(case.hits)}/{case.of})"


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
