"""The plots: table 2, figure 4 and all ratios, ours beside the paper's, and figure 3.

Figure 3 is one transfer from its sender's point of view, segment by segment. The paper's example is slow-start
overshoot: enhanced TCP over an error-free link with VBDC. The text around it is about SLACP, so ours has SLACP, too.

Rules kept
- A figure that could not be measured stands at three hours, with a mark of its own.
- In figure 3 sequence numbers count payload octets from 0 on. A segment is a retransmission when octets of it were sent
  before.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from experiments.slacp import parameters
from experiments.slacp.cells import COLUMNS, DAMA, ERRORS, LINKS, WORKLOADS, Case
from experiments.slacp.jobs import NS, scenario
from testbed.model.watch import Segment
from testbed.papers.plots import COLOURS, spreads, subplots, title, title_and_legend
from testbed.papers.results import NEAR, CellResult, Results
from testbed.papers.runs import seeded
from testbed.papers.watching import SinceSyn, octet
from testbed.simulation import simulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: the transfer that figure 3 shows, and how much of it
FIGURE3 = Case(2, "vbdc", "none", "enh", "1x1MB", "slacp")
_SHOWN_S, _SHOWN_BYTES = 60.0, 400_000
#: transfers that did not finish are drawn here
_LIMIT_S = 10_800.0
_WORDS = {"ref": "reference", "enh": "enhanced", "enh+cbi": "with CBI", "enh-daass": "without DAASS"}
_KEY = "\nours filled, the paper's hollow; bars: quartiles"
_TICKS_S = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
_TICKS_RATIO = (0.1, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 4, 10, 40)

#: the results by their cells' cases
_Cases = Mapping[Case, CellResult]


def draw(results: Results) -> "Iterator[tuple[str, Figure]]":
    """Yield the plots that these results permit, each with the name of its file."""
    cases = results.by_case()
    if any(case.table == 2 for case in cases):
        yield "table2.png", _table2(cases)
    if any(case.table == 4 for case in cases):
        yield "figure4.png", _figure4(cases)
    if cases:
        yield "ratios.png", _ratios(cases)
    if FIGURE3 in cases:
        seen = Trace()
        simulate(seeded(scenario(FIGURE3, results.settings), cases[FIGURE3].first_seed), seen)
        yield "figure3.png", _figure3(seen)


class Trace(SinceSyn):
    """The segments that a sender sent and heard: time (s) since the SYN, octet."""

    def __init__(self) -> None:
        super().__init__()
        self.first_sent: list[tuple[float, int]] = []
        self.retransmitted: list[tuple[float, int]] = []
        self.acked: list[tuple[float, int]] = []
        #: octets sent at least once
        self._sent_bytes = 0

    def sent(self, flow: str, segment: Segment, now: int) -> None:
        super().sent(flow, segment, now)
        if segment.length:
            first = octet(segment.seq, self.iss)
            points = self.retransmitted if first < self._sent_bytes else self.first_sent
            points.append(((now - self.started_at) * NS, first))
            self._sent_bytes = max(self._sent_bytes, first + segment.length)

    def received(self, flow: str, segment: Segment, now: int) -> None:
        self.acked.append(((now - self.started_at) * NS, octet(segment.ack, self.iss)))


def _table2(cases: _Cases) -> "Figure":
    """Medians and quartiles over the error models: ours filled, the paper's hollow."""
    figure, grid = subplots(len(WORKLOADS), len(DAMA), figsize=(13, 7.5), sharex=True, sharey="row")
    for axes, workload in zip(grid, WORKLOADS, strict=True):
        for axis, dama in zip(axes, DAMA, strict=True):
            for index, (colour, (tcp, link)) in enumerate(zip(COLOURS, COLUMNS, strict=False)):
                row = [cases.get(Case(2, dama, errors, tcp, workload, link)) for errors in ERRORS]
                _draw_row(axis, row, colour, f"{_WORDS[tcp]}, {LINKS[link]}", (index - 1.5) * 0.11)
            axis.set_title(f"{dama.upper()}, {workload}", loc="left", fontsize=10)
            axis.set_xticks(range(len(ERRORS)), ERRORS)
            axis.set_yscale("log")
            axis.set_yticks((*_TICKS_S[2:], _LIMIT_S), (*(f"{tick:g}" for tick in _TICKS_S[2:]), "3 h"))
            axis.minorticks_off()
        axes[0].set_ylabel("transfer time (s)")
    for axis in grid[-1]:
        axis.set_xlabel("error model")
    title_and_legend(figure, grid.flat[0], f"SLACP paper, table 2{_KEY}")
    return figure


def _figure4(cases: _Cases) -> "Figure":
    figure, axis = subplots(figsize=(8, 5))
    for index, (colour, tcp) in enumerate(zip(COLOURS, parameters.TCP, strict=False)):
        row = [cases.get(Case(4, "vbdc", errors, tcp, "1x1MB", "slacp")) for errors in ERRORS]
        _draw_row(axis, row, colour, _WORDS[tcp], (index - 1.5) * 0.08)
    axis.set_xticks(range(len(ERRORS)), ERRORS)
    axis.set(xlabel="error model", ylabel="transfer time (s)")
    title_and_legend(figure, axis, f"SLACP paper, table 4 and figure 4: 1 MB, SLACP, VBDC{_KEY}")
    return figure


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
            yerr=spreads(sides, _LIMIT_S),
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


def _ratios(cases: _Cases) -> "Figure":
    figure, axis = subplots(figsize=(9, 5))
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
                label = f"{_WORDS[tcp]}, {LINKS[link]}, table {table}"
                axis.plot(*zip(*points, strict=True), marker, color=colour, alpha=0.75, markersize=5, label=label)
    axis.set(xscale="log", yscale="log")
    for ticks, limits, put in (
        (_TICKS_S, axis.get_xlim(), axis.set_xticks),
        (_TICKS_RATIO, axis.get_ylim(), axis.set_yticks),
    ):
        inside = [tick for tick in ticks if limits[0] <= tick <= limits[1]]
        put(inside, [f"{tick:g}" for tick in inside])
    axis.minorticks_off()
    axis.set(xlabel="the paper's median (s)", ylabel="our median / the paper's")
    figure.legend(frameon=False, loc="outside right upper", fontsize=8)
    title(figure, "SLACP paper, all cells; grey: within 25 %")
    return figure


def _figure3(seen: Trace) -> "Figure":
    figure, axis = subplots(figsize=(8, 5))
    series = (
        ("sent", seen.first_sent, ".", 3),
        ("ack", seen.acked, "_", 4),
        ("retransmissions", seen.retransmitted, "x", 5),
    )
    for colour, (label, points, marker, size) in zip(COLOURS, series, strict=False):
        shown = [(time, octet / 1000) for time, octet in points if time <= _SHOWN_S]
        if shown:
            axis.plot(*zip(*shown, strict=True), marker, color=colour, markersize=size, label=label)
    axis.set(xlim=(0, _SHOWN_S), ylim=(0, _SHOWN_BYTES / 1000), xlabel="time (s)", ylabel="sequence number (kbytes)")
    axis.legend(frameon=False)
    title(figure, "SLACP paper, figure 3: slow-start overshoot (enhanced TCP, VBDC, no errors, SLACP)")
    return figure
