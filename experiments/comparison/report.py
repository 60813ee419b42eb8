"""What `papers comparison --out` writes besides the numbers: report.md with the paper's tables; `plots.py` draws."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments.comparison import cells as tables
from experiments.comparison import parameters, plots
from experiments.comparison.cells import FAMILIES, METRICS, SETTINGS, Case, Cases
from testbed.papers.paper import CellResult, Finding, Results, Tally

_HEADINGS = {2: "link-layer schemes", 3: "end-to-end schemes", 4: "split connections"}


def write(results: Results, found: Sequence[Finding], folder: Path) -> list[Path]:
    """Write what these results allow, and return the files."""
    by_name = {result.cell.name: result for result in results.cells}
    cases = {case: by_name[cell.name] for case, cell in tables.read().items() if cell.name in by_name}
    report = folder / "report.md"
    report.write_text(markdown(cases, found, results))
    return [report, *plots.draw(cases, results, folder)]


def markdown(cases: Cases, found: Sequence[Finding], results: Results) -> str:
    """Return findings, tables in the paper's layout and parameters as Markdown."""
    lines = ["# COMPARISON's tables, in virtual time", ""]
    lines += ["Medians, ours / the paper's; bold: throughput more than 20 %, or goodput more than 2 points, apart.", ""]
    runs = sorted({len(result.samples) for result in cases.values()})
    seeds = f"from {results.cells[0].first_seed} on" if results.cells else ""
    lines += [
        f"Tier `model`, {', '.join(map(str, runs))} transfers per cell; seeds {seeds}, the same for all cells.",
        "",
    ]
    if results.settings:
        lines += [f"With `{' '.join(f'--set {setting}' for setting in results.settings)}`.", ""]
    lines += [*findings_markdown(found), ""]
    for table in FAMILIES:
        lines += _table(cases, table)
    lines += [*_table5(cases), *_figure12(cases)]
    lines += ["## Parameters", "", *parameters_markdown(), "", *schemes_markdown(), ""]
    return "\n".join(lines)


def findings_markdown(found: Sequence[Finding]) -> list[str]:
    """The findings as a table, and what misses."""
    lines = ["| | ours |", "|---|---|"]
    tallies = [finding for finding in found if isinstance(finding, Tally)]
    lines += [f"| {finding.label} | {finding.hits} of {finding.of} |" for finding in tallies]
    for finding in tallies:
        if finding.misses:
            lines += ["", f"Where it does not hold ({finding.label}): {', '.join(finding.misses)}."]
    return lines


def parameters_markdown() -> list[str]:
    """Every parameter of every cell as a table."""
    rows = [("all", p) for p in parameters.SCENARIO]
    rows += [(place, p) for place, some in parameters.SETTINGS.items() for p in some]
    return [
        "| cells | scenario key | value | whose | why |",
        "|---|---|---|---|---|",
        *(f"| {place} | `{p.key}` | {p.value} | {p.whose} | {p.why} |" for place, p in rows),
    ]


def schemes_markdown() -> list[str]:
    """What the paper's schemes are here."""
    rows = (f"| {scheme} | `{link}` | `{tcp}` | `{eln}` |" for scheme, (link, tcp, eln) in parameters.SCHEMES.items())
    return ["| scheme | `link.scheme` | `tcp` | `link.eln` |", "|---|---|---|---|", *rows]


def _table(cases: Cases, table: int) -> Iterator[str]:
    """One of tables 2 to 4: an entry is throughput (Mbps), wireless and wired goodput (percent)."""
    if not any(case.place == f"table{table}" for case in cases):
        return
    yield from (f"## Table {table}: {_HEADINGS[table]}", "")
    yield f"| scheme | metric | {' | '.join(SETTINGS)} |"
    yield "|---" * (2 + len(SETTINGS)) + "|"
    for scheme in FAMILIES[table]:
        for metric in METRICS:
            row = [cases.get(Case(f"table{table}", scheme, setting, metric)) for setting in SETTINGS]
            if any(row):
                what = "throughput (Mbps)" if metric == "throughput" else f"{metric} goodput (%)"
                yield f"| {scheme} | {what} | {' | '.join(map(_entry, row))} |"
    yield ""


def _table5(cases: Cases) -> Iterator[str]:
    rows = {case: result for case, result in cases.items() if case.place == "table5"}
    if rows:
        yield from ("## Table 5: bursts, LAN 32 KB", "", "| scheme | packets | throughput (Mbps) |", "|---|---|---|")
        for case, result in rows.items():
            yield f"| {case.scheme} | {case.burst} | {_entry(result)} |"
        yield ""


def _figure12(cases: Cases) -> Iterator[str]:
    rows = {case: result for case, result in cases.items() if case.place == "figure12"}
    if not rows:
        return
    spacings = sorted({case.spacing_kb for case in rows})
    yield from ("## Figure 12: throughput (Mbps), LAN 32 KB, by the mean distance of errors", "")
    yield f"| scheme | {' | '.join(f'{spacing} KB' for spacing in spacings)} |"
    yield "|---" * (1 + len(spacings)) + "|"
    for scheme in dict.fromkeys(case.scheme for case in rows):
        row = [rows.get(Case("figure12", scheme, tables.SWEEP_SETTING, spacing_kb=spacing)) for spacing in spacings]
        yield f"| {scheme} | {' | '.join(map(_entry, row))} |"
    yield ""


def _entry(result: CellResult | None) -> str:
    """Ours / the paper's, bold where they are far apart."""
    if result is None:
        return ""
    digits = 1 if result.cell.unit == "%" else 2
    ours, theirs = result.ours.median, result.cell.paper.median
    text = f"{ours:.{digits}f} / {theirs:.{digits}f}"
    return text if result.cell.agrees(ours) else f"**{text}**"
