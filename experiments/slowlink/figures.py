"""The plots of `papers slowlink --out`: both tables, fairness, and single transfers as the paper draws them."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from experiments.slowlink.cells import Case, Cases
from experiments.slowlink.parameters import DELAYS, QUEUES, VARIANTS
from experiments.slowlink.traces import trace
from testbed.papers.plots import COLOURS, spreads, subplots, title, title_and_legend
from testbed.papers.results import CellResult, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DELAYS = {"steady": "no excessive delays", "delays": "excessive delays (1 %, 4 s)"}
#: one colour per variant in all plots: windows in one hue, those beside the paper in grey
_COLOURS = {
    "newreno": "0.35",
    "sack": COLOURS[0],
    "lt": COLOURS[2],
    "sack-lt": COLOURS[4 % len(COLOURS)],
    "iw4": COLOURS[3 % len(COLOURS)],
    "window": COLOURS[1],
    "window-misset": COLOURS[1],
    "fack": "0.6",
    "fack-lt": "0.75",
}
#: the transfers that are drawn segment by segment
_TRACED = ("newreno", "sack", "window")
_TRACED_QUEUE = "20"
_TRACED_S = 60.0
_KB = 1000.0
_WHOLE_FROM_S = 90.0


def draw(results: Results) -> "Iterator[tuple[str, Figure]]":
    """Yield the plots that these results permit, each with the name of its file."""
    cases: Cases = results.by_case()
    if any(case.place == "one" for case in cases):
        yield "one.png", _one(cases)
    if any(case.place == "four" for case in cases):
        yield "four.png", _four(cases)
    traced = [Case("one", _TRACED_QUEUE, "steady", variant, "whole") for variant in _TRACED]
    if all(case in cases for case in traced):
        yield "overshoot.png", _overshoot(traced, cases[traced[0]].first_seed, results.settings)
    shared = [Case("four", _TRACED_QUEUE, "steady", variant, "slowest") for variant in ("newreno", "iw4", "window")]
    if all(case in cases for case in shared):
        yield "fairness.png", _fairness(shared, cases[shared[0]].first_seed, results.settings)


def _panels(cases: Cases, place: str) -> list[tuple[str, str]]:
    shown = {(case.delays, case.queue) for case in cases if case.place == place}
    return [(delays, queue) for delays in DELAYS for queue in QUEUES if (delays, queue) in shown]


def _one(cases: Cases) -> "Figure":
    """Table 1: all of a transfer above, its first part below."""
    panels = _panels(cases, "one")
    figure, grid = subplots(
        2, len(panels), grid="y", figsize=(1.5 + 3.1 * len(panels), 6.6), sharex=True, sharey="row", squeeze=False
    )
    for column, (delays, queue) in enumerate(panels):
        for row, metric in enumerate(("whole", "first")):
            axis = grid[row][column]
            _bars(axis, [(v, cases.get(Case("one", queue, delays, v, metric))) for v in VARIANTS])
            if not column:
                axis.set_ylabel(("all 100 KB (s)", "first 20 KB (s)")[row])
        grid[0][column].set_title(f"{_DELAYS[delays]}\nqueue of {queue} packets", fontsize=9, loc="left")
    # differences of a few seconds matter where all need 100
    highest = max(result.ours.median for case, result in cases.items() if case.place == "one")
    grid[0][0].set_ylim(_WHOLE_FROM_S, 1.12 * max(highest, _WHOLE_FROM_S) if math.isfinite(highest) else None)
    title(figure, "SLOWLINK, table 1: one flow over 9600 bit/s (medians and quartiles; the upper axis begins at 90 s)")
    return figure


def _bars(axis: "Axes", shown: Sequence[tuple[str, CellResult | None]]) -> None:
    for place, (variant, result) in enumerate(shown):
        if result is not None:
            ours = result.ours
            hatch = "///" if variant == "window-misset" else None
            axis.bar(
                place, ours.median, 0.72, color=_COLOURS[variant], hatch=hatch, edgecolor="white", linewidth=0,
                yerr=spreads([ours]), error_kw={"elinewidth": 1, "ecolor": "0.1"},
            )  # fmt: skip
            axis.annotate(f"{ours.median:.0f}", (place, ours.p75 or ours.median), (0, 2), textcoords="offset points",
                          ha="center", fontsize=7)  # fmt: skip
    axis.set_xticks(
        range(len(shown)), [VARIANTS[variant].label for variant, _ in shown], rotation=55, ha="right", fontsize=8
    )


def _four(cases: Cases) -> "Figure":
    """Table 2: from the fastest to the slowest of four flows."""
    panels = _panels(cases, "four")
    figure, grid = subplots(
        1, len(panels), grid="x", figsize=(2.2 + 2.9 * len(panels), 4.6), sharey=True, sharex=True, squeeze=False
    )
    for axis, (delays, queue) in zip(grid[0], panels, strict=True):
        for place, variant in enumerate(VARIANTS):
            ends = [cases.get(Case("four", queue, delays, variant, metric)) for metric in ("fastest", "slowest")]
            if ends[0] is None or ends[1] is None:
                continue
            fastest, slowest = (end.ours for end in ends if end is not None)
            colour = _COLOURS[variant]
            axis.plot([fastest.median, slowest.median], [place, place], color=colour, linewidth=5, alpha=0.35,
                      solid_capstyle="butt")  # fmt: skip
            for each, marker in ((fastest, "o"), (slowest, "D")):
                axis.errorbar(each.median, place, xerr=spreads([each]), fmt=marker, color=colour, markersize=5,
                              elinewidth=1)  # fmt: skip
        axis.set_title(f"{_DELAYS[delays]}\nqueue of {queue} packets", fontsize=9, loc="left")
        axis.set_xlabel("time of a flow (s)")
    grid[0][0].set_yticks(range(len(VARIANTS)), [variant.label for variant in VARIANTS.values()])
    grid[0][0].invert_yaxis()
    title(figure, "SLOWLINK, table 2: four flows of 50 KB, fastest (circle) to slowest (diamond); medians, quartiles")
    return figure


def _overshoot(traced: Sequence[Case], seed: int, settings: tuple[str, ...]) -> "Figure":
    """The paper's figure 2: slow-start overshoot, and without it."""
    figure, axes = subplots(1, len(traced), figsize=(13, 4.4), sharex=True, sharey=True)
    for axis, case in zip(axes, traced, strict=True):
        [flow] = trace(case, seed, settings).flows.values()
        for points, marker, colour, size, words in (
            (flow.acked, "_", "0.55", 9, "acknowledged"),
            (flow.fresh, ".", COLOURS[0], 8, "sent"),
            (flow.again, "^", COLOURS[1], 12, "sent again"),
            (flow.drops, "x", "black", 18, "dropped by the router"),
        ):
            shown = [(at, number / _KB) for at, number in points if at <= _TRACED_S]
            axis.scatter([at for at, _ in shown], [n for _, n in shown], marker=marker, color=colour, s=size,
                         linewidths=0.9, label=words)  # fmt: skip
        axis.set_title(f"{VARIANTS[case.variant].label}: {len(flow.drops)} packets dropped", fontsize=10, loc="left")
        axis.set(xlabel="time (s)", xlim=(0, _TRACED_S), ylim=(0, 60))
    axes[0].set_ylabel("sequence number (KB)")
    title_and_legend(
        figure, axes[0], f"SLOWLINK: slow-start overshoot, one flow, queue of {_TRACED_QUEUE} packets (seed {seed})"
    )
    return figure


def _fairness(shared: Sequence[Case], seed: int, settings: tuple[str, ...]) -> "Figure":
    """Four flows over time: octets acknowledged."""
    figure, axes = subplots(1, len(shared), figsize=(13, 4.0), sharex=True, sharey=True)
    for axis, case in zip(axes, shared, strict=True):
        flows = trace(case, seed, settings).flows.values()
        for number, flow in enumerate(flows):
            axis.step([at for at, _ in flow.acked], [octets / _KB for _, octets in flow.acked], where="post",
                      linewidth=1.4, color=COLOURS[number % len(COLOURS)], label=f"flow {number + 1}")  # fmt: skip
        drops = sum(len(flow.drops) for flow in flows)
        axis.set_title(f"{VARIANTS[case.variant].label}: {drops} packets dropped", fontsize=10, loc="left")
        axis.set_xlabel("time (s)")
    axes[0].set_ylabel("acknowledged (KB)")
    title_and_legend(figure, axes[0], f"SLOWLINK: four flows, queue of {_TRACED_QUEUE} packets (seed {seed})")
    return figure
