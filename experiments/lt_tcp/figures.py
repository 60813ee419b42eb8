"""The plots of `papers lt_tcp --out`: ours beside the paper's, and single runs as the paper draws them."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from experiments.lt_tcp.cells import PERS_PCT, Case, Cases
from experiments.lt_tcp.parameters import ADDS_TO, COMPONENTS_PER_PCT, PAPERS
from experiments.lt_tcp.traces import Trace, trace
from testbed.papers.plots import COLOURS, spreads, subplots, title, title_and_legend
from testbed.papers.results import CellResult, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WORDS = {"sack": "SACK", "lt-tcp-2005": "LT-TCP", "ll-fec": "link FEC", "ll-hybrid": "link FEC/ARQ", "lt-tcp": "ours"}
_PARTS = {
    "sack": "SACK",
    "lt-ecn-2005": "+ ECN only",
    "lt-mss-2005": "+ adaptive MSS",
    "lt-proactive-2005": "+ proactive FEC",
    "lt-reactive-2005": "MSS + reactive FEC",
    "lt-tcp-2005": "LT-TCP",
}
#: figures 3, 6 and 7: the part of a run that is shown (s)
_SHOWN_S, _CLOSE_UP_S = 100.0, 40.0
#: figure 8: bursts on top of a PER, and on an error-free link: from these times (s) these PERs hold
_BURSTS: Sequence[tuple[str, Sequence[tuple[float, float]]]] = (
    ("(a) 10 %, and a burst of 2 s", ((0, 0.1), (20, 0.4), (22, 0.1))),
    ("(b) no losses but for a burst of 2 s", ((0, 0.0), (20, 0.3), (22, 0.0))),
)
_BURSTS_S = 40.0


def draw(results: Results) -> "Iterator[tuple[str, Figure]]":
    """Yield the plots that these results permit, each with the name of its file."""
    cases: Cases = results.by_case()
    schemes = [scheme for scheme in _WORDS if any(case[:2] == ("goodput", scheme) for case in cases)]
    if schemes:
        yield "figure5.png", _sweep(cases, schemes)
    if any(case.metric == "timeouts" for case in cases):
        yield "figure9.png", _costs(cases, [each for each in _WORDS if any(case.scheme == each for case in cases)])
    parts = [part for part in ADDS_TO if part not in PAPERS.values()]
    if all(Case("goodput", part, COMPONENTS_PER_PCT) in cases for part in parts):
        yield "figure4.png", _components(cases)
    if Case("goodput", "lt-tcp-2005", 20) in cases:
        seed = cases[Case("goodput", "lt-tcp-2005", 20)].first_seed
        yield "figure3.png", _windows(seed, results.settings)
        yield "figure6.png", _sizes(seed, results.settings)
        yield "figure8.png", _estimates(seed, results.settings)


def _line(axis: "Axes", cases: Cases, metric: str, scheme: str, colour: str) -> None:
    """Ours filled with quartiles, the paper's hollow and dotted."""
    known = [(per, cases[case]) for per in PERS_PCT if (case := Case(metric, scheme, per)) in cases]
    ours = [result.ours for _, result in known]
    axis.errorbar([per for per, _ in known], [each.median for each in ours], yerr=spreads(ours), color=colour,
                  marker="o", markersize=5, linewidth=1.4, elinewidth=1, label=_WORDS[scheme])  # fmt: skip
    theirs = [(per, result.cell.paper.median) for per, result in known if result.cell.paper.known]
    axis.plot([per for per, _ in theirs], [value for _, value in theirs], color=colour, marker="s", markersize=5,
              markerfacecolor="white", linewidth=1, linestyle=":", alpha=0.8)  # fmt: skip


def _sweep(cases: Cases, schemes: Sequence[str]) -> "Figure":
    figure, axis = subplots(grid="y", figsize=(8, 5))
    for colour, scheme in zip(COLOURS, schemes, strict=False):
        _line(axis, cases, "goodput", scheme, colour)
    ideal = [9.17 * (1 - per / 100) for per in PERS_PCT]
    axis.plot(PERS_PCT, ideal, color="0.6", linewidth=0.8, linestyle=(0, (4, 4)), zorder=0)
    axis.annotate("all that arrives is useful", (45, ideal[-1] + 0.46), (4, 4), textcoords="offset points", ha="left",
                  fontsize=7, color="0.4")  # fmt: skip
    axis.set(xlabel="PER (%)", ylabel="goodput of ten flows (Mbps)", ylim=(0, 10))
    figure.legend(frameon=False, loc="outside lower center", ncols=4, fontsize=9)
    title(figure, "LT-TCP, figure 5: goodput\nours filled, with quartiles; the paper's hollow")
    return figure


def _costs(cases: Cases, schemes: Sequence[str]) -> "Figure":
    """Figure 9, and the FEC overhead beside it."""
    figure, (left, middle, right) = subplots(1, 3, grid="y", figsize=(13, 4.6))
    for colour, scheme in zip(COLOURS, schemes, strict=False):
        _line(left, cases, "timeouts", scheme, colour)
        _line(middle, cases, "throughput", scheme, colour)
    for colour, metric in zip(COLOURS[2:], ("proactive", "reactive"), strict=False):
        known = [(per, cases[case]) for per in PERS_PCT if (case := Case(metric, "lt-tcp-2005", per)) in cases]
        right.plot([per for per, _ in known], [result.ours.median for _, result in known], color=colour, marker="o",
                   markersize=5, label=f"LT-TCP's {metric} FEC")  # fmt: skip
        theirs = [(per, result.cell.paper.median) for per, result in known if result.cell.paper.known]
        right.plot([per for per, _ in theirs], [value for _, value in theirs], color=colour, marker="s", markersize=5,
                   markerfacecolor="white", linewidth=1, linestyle=":", alpha=0.8)  # fmt: skip
    left.set_yscale("symlog", linthresh=10)
    for axis, words in ((left, "timeouts of a flow"), (middle, "throughput (Mbps)"), (right, "FEC segments (%)")):
        axis.set_title(words, loc="left", fontsize=10)
        axis.set(xlabel="PER (%)", ylim=(0, None))
    handles, labels = (
        [*one, *other]
        for one, other in zip(left.get_legend_handles_labels(), right.get_legend_handles_labels(), strict=True)
    )
    figure.legend(handles, labels, frameon=False, loc="outside lower center", ncols=6, fontsize=9)
    title(figure, "LT-TCP, figure 9 and table III: timeouts, throughput, overhead\nours filled; the paper's hollow")
    return figure


def _components(cases: Cases) -> "Figure":
    figure, axes = subplots(1, 2, grid="x", figsize=(11, 4), sharey=True)
    columns = (("goodput", "goodput (Mbps)"), ("timeouts", "timeouts of a flow"))
    for axis, (metric, words) in zip(axes, columns, strict=True):
        for place, scheme in enumerate(_PARTS):
            result = cases.get(Case(metric, scheme, COMPONENTS_PER_PCT))
            if result is None:
                continue
            colour = COLOURS[0] if scheme != "sack" else "0.6"
            axis.barh(place, result.ours.median, 0.6, color=colour)
            axis.annotate(f"{result.ours.median:.3g}" if result.ours.median < 100 else f"{result.ours.median:.0f}",
                          (_label_at(result), place), (6, 0), textcoords="offset points", va="center",
                          fontsize=8)  # fmt: skip
            if result.cell.paper.known:
                axis.plot(result.cell.paper.median, place, "D", color="black", markersize=5)
        axis.set(xlabel=words, xlim=(0, 1.15 * axis.get_xlim()[1]))
    axes[0].set_yticks(range(len(_PARTS)), list(_PARTS.values()))
    axes[0].invert_yaxis()
    title(figure, f"LT-TCP, figure 4: component study, PER {COMPONENTS_PER_PCT} %\nbars: ours; diamonds: the paper's")
    return figure


def _label_at(result: CellResult) -> float:
    """The right end of a bar, or of a diamond beyond it."""
    ours, theirs = result.ours.median, result.cell.paper.median
    return max(ours, theirs) if result.cell.paper.known else ours


def _windows(seed: int, settings: Sequence[str]) -> "Figure":
    """Figure 3: congestion windows above, the bottleneck's queue below."""
    figure, grid = subplots(2, 2, figsize=(12, 6), sharex=True, sharey="row")
    for (above, below), per in zip(grid.T, (10, 20), strict=True):
        for colour, scheme in zip(COLOURS, ("sack", "lt-tcp-2005"), strict=False):
            seen = trace(Case("goodput", scheme, per), seed, settings, _SHOWN_S)
            above.plot(seen.times, [cwnd / 1000 for cwnd in seen.cwnd], color=colour, linewidth=0.8,
                       label=_WORDS[scheme])  # fmt: skip
            below.plot(seen.times, seen.queue, color=colour, linewidth=0.6)
        above.set_title(f"PER {per} %", loc="left", fontsize=10)
        below.set_xlabel("time (s)")
    grid[0, 0].set(ylabel="cwnd of a flow (kB)", ylim=(0, 30))
    grid[1, 0].set_ylabel("queue (packets)")
    title_and_legend(figure, grid[0, 0], f"LT-TCP, figure 3: congestion window and bottleneck queue (seed {seed})")
    return figure


def _sizes(seed: int, settings: Sequence[str]) -> "Figure":
    """Figures 6 and 7: segments get smaller with the window."""
    seen = trace(Case("goodput", "lt-tcp-2005", 50), seed, settings, _CLOSE_UP_S)
    figure, (above, below) = subplots(2, 1, figsize=(11, 6), sharex=True)
    above.plot(seen.times, [cwnd / 1000 for cwnd in seen.cwnd], color=COLOURS[0], linewidth=0.9, label="cwnd (kB)")
    above.plot(seen.times, [smss / 100 for smss in seen.smss], color=COLOURS[1], linewidth=0.9,
               label="segment size (100 octets)")  # fmt: skip
    segments = [cwnd / smss for cwnd, smss in zip(seen.cwnd, seen.smss, strict=True)]
    below.plot(seen.times, segments, color=COLOURS[2], linewidth=0.9, label="cwnd (segments)")
    below.axhline(10, color="0.5", linewidth=0.8, linestyle=(0, (4, 4)), zorder=0)
    below.annotate("G = 10", (0.995, 10), (0, 3), xycoords=("axes fraction", "data"), textcoords="offset points",
                   ha="right", fontsize=8, color="0.4")  # fmt: skip
    for axis in (above, below):
        for at in seen.timeouts:
            axis.axvline(at, color=COLOURS[3], linewidth=1, linestyle=":", zorder=0)
        axis.set_ylim(0, 1.25 * axis.get_ylim()[1])
        axis.legend(frameon=False, fontsize=9, loc="upper right")
    below.set_xlabel("time (s)")
    title(figure, f"LT-TCP, figures 6 and 7: adaptive MSS (a flow at PER 50 %, seed {seed}; dotted: its timeouts)")
    return figure


def _estimates(seed: int, settings: Sequence[str]) -> "Figure":
    """Figure 8: the estimator behind changes of the PER."""
    figure, axes = subplots(1, 2, figsize=(12, 4.4), sharey=True)
    for axis, (words, pers) in zip(axes, _BURSTS, strict=True):
        seen: Trace = trace(Case("goodput", "lt-tcp-2005", 10), seed, settings, _BURSTS_S, pers)
        axis.plot(seen.times, [100 * rate for rate in seen.estimate], color=COLOURS[0], linewidth=0.9, label="estimate")
        axis.plot(seen.times, [100 * per for per in seen.per], color="black", linewidth=1.2, label="PER")
        axis.set_title(words, loc="left", fontsize=10)
        axis.set_xlabel("time (s)")
    axes[0].set(ylabel="%", ylim=(0, 80))
    axes[0].legend(frameon=False, fontsize=9)
    title(figure, f"LT-TCP, figure 8: the estimator of the erasure rate (one flow, seed {seed})")
    return figure
