"""What `papers slacp --out` writes besides the numbers: report.md with the paper's tables, and plots.

Rule kept: a figure that could not be measured stands at three hours, with a mark of its own.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.slacp import cells as tables
from experiments.slacp import parameters
from experiments.slacp.cells import COLUMNS, DAMA, ERRORS, WORKLOADS, Case
from experiments.slacp.findings import NEAR
from experiments.slacp.traces import FIGURE3, Trace, trace
from testbed.papers.paper import CellResult, Finding, Quartiles, Results, Tally, near
from testbed.results.show import COLOURS, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: what did not finish is drawn here
_LIMIT_S = 10_800.0
#: what figure 3 of the paper shows
_SHOWN_S, _SHOWN_BYTES = 60.0, 400_000
_WORDS = {"ref": "reference", "enh": "enhanced", "enh+cbi": "with CBI", "enh-daass": "without DAASS"}

#: the results by what they measure
_Cases = dict[Case, CellResult]


def write(results: Results, found: Sequence[Finding], folder: Path) -> list[Path]:
    """Write what these results allow, and return the files."""
    by_name = {result.cell.name: result for result in results.cells}
    cases = {case: by_name[cell.name] for case, cell in tables.read().items() if cell.name in by_name}
    report = folder / "report.md"
    report.write_text(markdown(cases, found, results))
    written = [report]

    def draw(name: str, wanted: bool, draw_on: Callable[[Path], None]) -> None:
        if wanted:
            draw_on(folder / name)
            written.append(folder / name)

    draw("table2.png", any(case.table == 2 for case in cases), lambda path: _plot_table2(cases, path))
    draw("figure4.png", any(case.table == 4 for case in cases), lambda path: _plot_figure4(cases, path))
    draw("ratios.png", bool(cases), lambda path: _plot_ratios(cases, path))
    if FIGURE3 in cases:
        seen = trace(FIGURE3, cases[FIGURE3].first_seed, results.settings)
        draw("figure3.png", True, lambda path: _plot_figure3(seen, path))
    return written


# -- Markdown ------------------------------------------------------------------------------------------------


def markdown(cases: _Cases, found: Sequence[Finding], results: Results) -> str:
    """Return findings, tables in the paper's layout and parameters as Markdown."""
    lines = ["# The SLACP paper's tables, in virtual time", ""]
    lines += [f"Seconds, ours / the paper's, with quartiles; bold: more than {100 * NEAR:g} % apart.", ""]
    lines += ["`never`: not finished within three hours.", ""]
    runs = sorted({len(result.samples) for result in cases.values()})
    seeds = f"from {results.cells[0].first_seed} on" if results.cells else ""
    lines += [f"Replications per cell: {', '.join(map(str, runs))}; seeds {seeds}, the same for all cells.", ""]
    if results.settings:
        lines += [f"With `{' '.join(f'--set {setting}' for setting in results.settings)}`.", ""]
    lines += [*findings_markdown(found), ""]
    lines += [*_table2(cases), *_table3(cases), *_table4(cases)]
    lines += ["## Parameters", "", *parameters_markdown(), ""]
    return "\n".join(lines)


def findings_markdown(found: Sequence[Finding]) -> list[str]:
    """The findings as a table."""
    lines = ["| | ours | paper |", "|---|---|---|"]
    for finding in found:
        if isinstance(finding, Tally):
            lines.append(f"| {finding.label} | {finding.hits} of {finding.of} | |")
        else:
            lines.append(f"| {finding.label} | {_percent(finding.ours)} | {_percent(finding.paper)} |")
    for finding in found:
        if isinstance(finding, Tally) and finding.misses:
            lines += ["", f"Where it does not hold ({finding.label}): {', '.join(finding.misses)}."]
    return lines


def parameters_markdown() -> list[str]:
    """Every parameter of every cell as a table."""
    rows = (f"| `{p.key}` | {p.value} | {p.whose} | {p.why} |" for p in parameters.SCENARIO)
    return ["| scenario key | value | whose | why |", "|---|---|---|---|", *rows]


def _table2(cases: _Cases) -> Iterator[str]:
    if not any(case.table == 2 for case in cases):
        return
    yield from ("## Table 2", "")
    columns = [f"{workload} {'SLACP' if link == 'slacp' else 'bare'}" for workload in WORKLOADS for link in _LINKS]
    yield f"| DAMA | errors | TCP | {' | '.join(columns)} |"
    yield "|---" * (3 + len(columns)) + "|"
    for dama in DAMA:
        for errors in ERRORS:
            for tcp in ("ref", "enh"):
                row = [
                    cases.get(Case(2, dama, errors, tcp, workload, link)) for workload in WORKLOADS for link in _LINKS
                ]
                if any(row):
                    yield f"| {dama} | {errors} | {tcp} | {' | '.join(map(_entry, row))} |"
    yield ""


def _table3(cases: _Cases) -> Iterator[str]:
    if not any(case.table == 3 for case in cases):
        return
    shown = ERRORS[:4]
    yield from ("## Table 3: the first 50 kbytes, VBDC", "")
    yield f"| link | TCP | {' | '.join(shown)} |"
    yield "|---" * (2 + len(shown)) + "|"
    for link in _LINKS:
        for tcp in ("ref", "enh"):
            row = [cases.get(Case(3, "vbdc", errors, tcp, "50KB", link)) for errors in shown]
            if any(row):
                yield f"| {'SLACP' if link == 'slacp' else 'bare'} | {tcp} | {' | '.join(map(_entry, row))} |"
    yield ""


def _table4(cases: _Cases) -> Iterator[str]:
    if not any(case.table == 4 for case in cases):
        return
    yield from ("## Table 4: SLACP, VBDC, 1 MB", "")
    yield f"| errors | {' | '.join(parameters.TCP)} |"
    yield "|---" * (1 + len(parameters.TCP)) + "|"
    for errors in ERRORS:
        row = [cases.get(Case(4, "vbdc", errors, tcp, "1x1MB", "slacp")) for tcp in parameters.TCP]
        if any(row):
            yield f"| {errors} | {' | '.join(map(_entry, row))} |"
    yield ""


_LINKS = ("none", "slacp")


def _entry(result: CellResult | None) -> str:
    """Ours / the paper's, bold where they are far apart."""
    if result is None:
        return ""
    text = f"{_in_seconds(result.ours)} / {_in_seconds(result.cell.paper)}"
    return text if near(result.ours.median, result.cell.paper.median, NEAR) else f"**{text}**"


def _in_seconds(figure: Quartiles) -> str:
    if figure.p25 is None or figure.p75 is None or math.isinf(figure.p25):
        return _number(figure.median)
    return f"{_number(figure.median)} ({_number(figure.p25)} to {_number(figure.p75)})"


def _number(value: float) -> str:
    return f"{value:.1f}" if math.isfinite(value) else "never"


def _percent(share: float | None) -> str:
    return "not known" if share is None else f"{100 * share:.1f} %"


# -- plots ---------------------------------------------------------------------------------------------------


def _plot_table2(cases: _Cases, target: Path) -> None:
    """Medians and quartiles over the error models: ours filled, the paper's hollow."""
    plt = pyplot()
    figure, grid = plt.subplots(
        len(WORKLOADS), len(DAMA), figsize=(13, 7.5), layout="constrained", sharex=True, sharey="row"
    )
    for axes, workload in zip(grid, WORKLOADS, strict=True):
        for axis, dama in zip(axes, DAMA, strict=True):
            for index, (colour, (tcp, link)) in enumerate(zip(COLOURS, COLUMNS, strict=False)):
                label = f"{_WORDS[tcp]}, {'SLACP' if link == 'slacp' else 'bare'}"
                row = [cases.get(Case(2, dama, errors, tcp, workload, link)) for errors in ERRORS]
                _draw_row(axis, row, colour, label, (index - 1.5) * 0.11)
            axis.set_title(f"{dama.upper()}, {workload}", loc="left", fontsize=10)
            _dress(axis)
            axis.set_yscale("log")
            axis.set_yticks((*_TICKS_S[2:], _LIMIT_S), (*(f"{tick:g}" for tick in _TICKS_S[2:]), "3 h"))
            axis.minorticks_off()
        axes[0].set_ylabel("transfer time (s)")
    for axis in grid[-1]:
        axis.set_xlabel("error model")
    _title(figure, grid.flat[0], "SLACP paper, table 2")
    figure.savefig(target, dpi=130)
    plt.close(figure)


def _plot_figure4(cases: _Cases, target: Path) -> None:
    """Table 4 as the paper draws it."""
    plt = pyplot()
    figure, axis = plt.subplots(figsize=(8, 5), layout="constrained")
    for index, (colour, tcp) in enumerate(zip(COLOURS, parameters.TCP, strict=False)):
        row = [cases.get(Case(4, "vbdc", errors, tcp, "1x1MB", "slacp")) for errors in ERRORS]
        _draw_row(axis, row, colour, _WORDS[tcp], (index - 1.5) * 0.08)
    _dress(axis)
    axis.set_xlabel("error model")
    axis.set_ylabel("transfer time (s)")
    _title(figure, axis, "SLACP paper, table 4 and figure 4: 1 MB, SLACP, VBDC")
    figure.savefig(target, dpi=130)
    plt.close(figure)


def _draw_row(axis: "Axes", row: Sequence[CellResult | None], colour: str, label: str, shift: float) -> None:
    known = [(place + shift, result) for place, result in enumerate(row) if result is not None]
    if not known:
        return
    places = [place for place, _ in known]
    for theirs, sides in ((True, [r.cell.paper for _, r in known]), (False, [r.ours for _, r in known])):
        spots = [place + (0.03 if theirs else -0.03) for place in places]
        middles = [min(side.median, _LIMIT_S) for side in sides]
        axis.plot(spots, middles, color=colour, linewidth=1, alpha=0.55, linestyle=":" if theirs else "-")
        axis.errorbar(
            spots,
            middles,
            yerr=_spreads(sides),
            color=colour,
            marker="s" if theirs else "o",
            markersize=4.5,
            linestyle="none",
            elinewidth=1,
            markerfacecolor="white" if theirs else colour,
            label=None if theirs else label,
        )
        endless = [(spot, _LIMIT_S) for spot, side in zip(spots, sides, strict=True) if math.isinf(side.median)]
        if endless:
            axis.plot(
                *zip(*endless, strict=True), color=colour, marker="^", markersize=9, linestyle="none", fillstyle="none"
            )


def _dress(axis: "Axes") -> None:
    """The axis of error models, and the house's frame."""
    axis.set_xticks(range(len(ERRORS)), ERRORS)
    axis.grid(alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)


def _title(figure: "Figure", axis: "Axes", title: str) -> None:
    """A title, and the legend of one axis beside the figure."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, loc="outside lower center", ncols=len(labels), fontsize=9)
    figure.suptitle(f"{title}\nours filled, the paper's hollow; bars: quartiles", fontweight="bold", fontsize=11)


def _spreads(figures: Iterable[Quartiles]) -> tuple[list[float], list[float]]:
    """How far the quartiles lie below and above the median, as error bars take them."""
    below, above = [], []
    for figure in figures:
        if figure.p25 is None or figure.p75 is None or math.isinf(figure.median):
            below.append(0.0)
            above.append(0.0)
        else:
            below.append(figure.median - figure.p25)
            above.append(min(figure.p75, _LIMIT_S) - figure.median)
    return below, above


def _plot_ratios(cases: _Cases, target: Path) -> None:
    """How far our medians are from the paper's."""
    plt = pyplot()
    figure, axis = plt.subplots(figsize=(9, 5), layout="constrained")
    axis.axhspan(1 - NEAR, 1 + NEAR, color="0.92", zorder=0)
    axis.axhline(1, color="0.5", linewidth=0.8)
    for table, marker in ((2, "o"), (3, "^"), (4, "s")):
        for colour, (tcp, link) in zip(COLOURS, (*COLUMNS, ("enh+cbi", "slacp"), ("enh-daass", "slacp")), strict=True):
            points = [
                (result.cell.paper.median, result.ratio)
                for case, result in cases.items()
                if (case.table, case.tcp, case.link) == (table, tcp, link) and result.ratio is not None
            ]
            if points:
                label = f"{_WORDS[tcp]}, {'SLACP' if link == 'slacp' else 'bare'}, table {table}"
                axis.plot(*zip(*points, strict=True), marker, color=colour, alpha=0.75, markersize=5, label=label)
    axis.set_xscale("log")
    axis.set_yscale("log")
    for ticks, limits, put in (
        (_TICKS_S, axis.get_xlim(), axis.set_xticks),
        (_TICKS_RATIO, axis.get_ylim(), axis.set_yticks),
    ):
        inside = [tick for tick in ticks if limits[0] <= tick <= limits[1]]
        put(inside, [f"{tick:g}" for tick in inside])
    axis.minorticks_off()
    axis.set_xlabel("the paper's median (s)")
    axis.set_ylabel("our median / the paper's")
    axis.grid(alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, loc="outside right upper", fontsize=8)
    figure.suptitle("SLACP paper, all cells; grey: within 25 %", fontweight="bold", fontsize=11)
    figure.savefig(target, dpi=130)
    plt.close(figure)


def _plot_figure3(seen: Trace, target: Path) -> None:
    """Slow-start overshoot, as the paper draws it."""
    plt = pyplot()
    figure, axis = plt.subplots(figsize=(8, 5), layout="constrained")
    series = (
        ("sent", seen.first_sent, ".", 3),
        ("ack", seen.acked, "_", 4),
        ("retransmissions", seen.retransmitted, "x", 5),
    )
    for colour, (label, points, marker, size) in zip(COLOURS, series, strict=False):
        shown = [(time, octet / 1000) for time, octet in points if time <= _SHOWN_S]
        if shown:
            axis.plot(*zip(*shown, strict=True), marker, color=colour, markersize=size, label=label)
    axis.set_xlim(0, _SHOWN_S)
    axis.set_ylim(0, _SHOWN_BYTES / 1000)
    axis.set_xlabel("time (s)")
    axis.set_ylabel("sequence number (kbytes)")
    axis.grid(alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False)
    title = "SLACP paper, figure 3: slow-start overshoot (enhanced TCP, VBDC, no errors, SLACP)"
    figure.suptitle(title, fontweight="bold", fontsize=11)
    figure.savefig(target, dpi=130)
    plt.close(figure)


_TICKS_S = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
_TICKS_RATIO = (0.1, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 4, 10, 40)
