"""Figures of a campaign as SVG: metrics as bars, and cwnd, sequence, throughput and delay of example runs.

Rules kept
- The same results give the same file.
- Colours are the values of the first swept key, panels the values of the others.
- A figure over time is of one run per point, the first that is done; its caption says so.
"""

import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hosts.workloads import WORKLOADS
from telemetry.parquet import read_records
from testbed.campaigns.folder import RUNS
from testbed.campaigns.plan import Point
from testbed.campaigns.rows import Row
from testbed.reports.document import Picture
from testbed.reports.footnotes import marks
from testbed.reports.numbers import Campaigned, read_summary
from testbed.results.metrics import as_summary
from testbed.results.show import COLOURS, pyplot
from testbed.results.statistics import Interval, least_n
from testbed.results.transfers import draw_cdf

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: panels of a figure over time; more are left out
_PANELS = 6
_COLUMNS = 3


def figures(campaign: Campaigned) -> Iterator[Picture]:
    """Yield all figures that the results permit."""
    for metric in campaign.plan.campaign.metrics:
        if any(campaign.sample(point, metric).n for point in campaign.plan.points):
            yield _bars(campaign, metric)
    for name, title, axis, unit, draw in _OVER_TIME:
        if (picture := _panels(campaign, name, title, axis, unit, draw)) is not None:
            yield picture
    if (picture := _panels(campaign, *_TRANSFERS, runs=None)) is not None:
        yield picture


# -- bars ----------------------------------------------------------------------------------------------------


def _bars(campaign: Campaigned, metric: str) -> Picture:
    groups, series = _grouped(campaign.plan.points)
    width = max(6.0, min(11.0, 2.5 + max(1.0 * len(groups), 0.35 * len(campaign.plan.points))))
    words, scale = _in_words(metric)
    figure, axis = pyplot().subplots(figsize=(width, 3.4), layout="constrained")
    share = 0.8 / len(series)
    references = [each for each in campaign.plan.campaign.reference if each.metric == metric]
    for index, label in enumerate(series):
        places, heights, below, above = [], [], [], []
        for group, members in enumerate(groups.values()):
            if label not in members:
                continue
            sample = campaign.sample(members[label], metric)
            place = group + (index - (len(series) - 1) / 2) * share
            mark = marks(campaign.rows_of(members[label]))
            if sample.median is None or math.isinf(sample.median):
                if mark:
                    # a word in the place of the bar, which alone would not widen the axis
                    word = "never" if sample.median else "none"
                    axis.annotate(f"{word}{mark}", (place, 0), ha="center", va="bottom", fontsize=8, rotation=90)
                    axis.set_xlim(-0.5, len(groups) - 0.5)
                continue
            if mark:
                axis.annotate(mark, (place, sample.median / scale), (3, 1), textcoords="offset points", fontsize=8)
            places.append(place)
            heights.append(sample.median / scale)
            reach = 0.0, 0.0
            if isinstance(interval := sample.median_interval, Interval) and math.isfinite(interval.high):
                reach = sample.median - interval.low, interval.high - sample.median
            below.append(reach[0] / scale)
            above.append(reach[1] / scale)
            for reference in references:
                if members[label] in campaign.plan.having(reference.at):
                    axis.plot([place], [reference.value / scale], "D", color="black", markersize=5, zorder=5)
        style = {"color": COLOURS[index % len(COLOURS)], "label": label, "width": 0.92 * share}
        axis.bar(places, heights, yerr=(below, above), capsize=2, error_kw={"linewidth": 0.9}, **style)
    if references:
        axis.plot([], [], "D", color="black", linestyle="none", label=references[0].source)
    axis.set_xticks(range(len(groups)), [name or campaign.plan.campaign.name for name in groups])
    if sum(map(len, groups)) > 80:
        axis.tick_params(axis="x", rotation=60)
    axis.set_ylabel(words)
    if len(series) > 1 or references:
        axis.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    _tidy(axis, "y")
    diamonds = "; diamonds: the published figures" if references else ""
    touched = "; marks: see the notes below the table" if marks(campaign.rows) else ""
    return Picture(
        f"bars-{metric}",
        f"{words}: medians, with 95 % intervals by order statistics, from {least_n('median')} runs{diamonds}{touched}",
        _svg(figure),
    )


def _grouped(points: Sequence[Point]) -> tuple[dict[str, dict[str, Point]], list[str]]:
    """Return the points by the settings after the first, and by the first; and all values of the first."""
    groups: dict[str, dict[str, Point]] = {}
    series: list[str] = []
    for point in points:
        words = point.label.split(" ")
        # without a sweep there is one point, whose label is the scenario's name
        first, rest = words[0], "\n".join(words[1:])
        if first not in series:
            series.append(first)
        groups.setdefault(rest, {})[first] = point
    return groups, series


def _in_words(metric: str) -> tuple[str, float]:
    """Return a metric with the unit of its axis, as in `goodput (Mbit/s)`, and the size of that unit."""
    units = {"_bps": ("Mbit/s", 1e6), "_bytes": ("MB", 1e6), "_s": ("s", 1.0), "_ms": ("ms", 1.0)}
    for suffix, (unit, scale) in units.items():
        if metric.endswith(suffix):
            return f"{metric.removesuffix(suffix)} ({unit})", scale
    return metric, 1.0


# -- over time -----------------------------------------------------------------------------------------------


def _of_first_flow(folder: Path, column: str, size: float) -> list[tuple[float, float]]:
    rows = read_records(folder, "tcp", ("flow", column))
    return [(row["time_ns"] / 1e9, row[column] / size) for row in rows if row["flow"] == rows[0]["flow"]]


def _cwnd(axis: "Axes", folders: Sequence[Path], style: dict[str, Any]) -> None:
    if points := _of_first_flow(folders[0], "cwnd_bytes", 1024):
        axis.step(*zip(*points, strict=True), where="post", **style)


def _sequence(axis: "Axes", folders: Sequence[Path], style: dict[str, Any]) -> None:
    if points := _of_first_flow(folders[0], "bytes_acked", 1e6):
        axis.plot(*zip(*points, strict=True), **style)


def _throughput(axis: "Axes", folders: Sequence[Path], style: dict[str, Any]) -> None:
    rows = [row for row in read_records(folders[0], "link", ("throughput_bps",)) if row["link"] == "up"]
    axis.step([row["time_ns"] / 1e9 for row in rows], [row["throughput_bps"] / 1e6 for row in rows], **style)


def _delay(axis: "Axes", folders: Sequence[Path], style: dict[str, Any]) -> None:
    delays = sorted(row["srtt_ms"] for row in read_records(folders[0], "tcp", ("srtt_ms",)) if row["srtt_ms"])
    if delays:
        shares = [(index + 1) / len(delays) for index in range(len(delays))]
        axis.step(delays, shares, where="post", **style)


#: name, title, label of the x axis, label of the y axis, drawing of one run
_OVER_TIME = (
    ("cwnd", "Congestion window", "time (s)", "cwnd (KiB)", _cwnd),
    ("sequence", "Acknowledged data", "time (s)", "acknowledged (MB)", _sequence),
    ("throughput", "Throughput of link up, all frames", "time (s)", "throughput (Mbit/s)", _throughput),
    ("delay", "Smoothed round-trip time, cumulative", "smoothed RTT (ms)", "share of records", _delay),
)


def _transfers(axis: "Axes", folders: Sequence[Path], style: dict[str, Any]) -> None:
    kinds = [kind for kind, plugin in WORKLOADS.items() if not plugin.options.beside]
    with as_summary("flows"):
        flows = [flow for folder in folders for flow in read_summary(folder).get("flows", ())]
        times = [float(seconds) for flow in flows if flow["kind"] in kinds for seconds in flow["transfer_s"]]
    draw_cdf(axis, times, style)


_TRANSFERS = ("transfers", "Times of short transfers, cumulative", "time (s)", "share of transfers", _transfers)


def _panels(
    campaign: Campaigned, name: str, title: str, x: str, y: str, draw: Any, runs: int | None = 1
) -> Picture | None:
    """Return a figure over time of the first `runs` that count of each point; None: of all."""
    groups, series = _grouped(campaign.plan.points)
    drawn = {
        rest: {label: found for label, point in members.items() if (found := _first(campaign, point, runs))}
        for rest, members in groups.items()
    }
    shown = [(rest, members) for rest, members in drawn.items() if members][:_PANELS]
    if not shown:
        return None
    columns = min(_COLUMNS, len(shown))
    lines = -(-len(shown) // columns)
    size = (3.6 * columns + 0.4, 2.6 * lines + 0.6)
    figure, axes = pyplot().subplots(lines, columns, figsize=size, layout="constrained", squeeze=False)
    for axis in list(axes.flat)[len(shown) :]:
        axis.remove()
    labelled: dict[str, Any] = {}
    for axis, (rest, members) in zip(axes.flat, shown, strict=False):
        for label, rows in members.items():
            colour = COLOURS[series.index(label) % len(COLOURS)]
            folders = [campaign.path / RUNS / row.run for row in rows]
            draw(axis, folders, {"color": colour, "linewidth": 1.1, "label": label})
        words = [*rest.split("\n"), marks([row for rows in members.values() for row in rows])]
        axis.set_title(" ".join(filter(None, words)), fontsize=9, loc="left")
        axis.set_xlabel(x, fontsize=9)
        axis.set_ylabel(y, fontsize=9)
        axis.tick_params(labelsize=8)
        if axis.lines:
            axis.set(ylim=(0, None), xlim=(0, None))
        _tidy(axis, "both")
        labelled |= dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    if not labelled:
        pyplot().close(figure)
        return None
    if len(labelled) > 1:
        figure.legend(
            labelled.values(), labelled.keys(), frameon=False, loc="outside lower center", ncols=6, fontsize=9
        )
    left_out = len([members for members in drawn.values() if members]) - len(shown)
    more = f"; {left_out} more combinations are left out" if left_out else ""
    which = "all runs that count, of each point" if runs is None else "the first run of each point that is done"
    return Picture(name, f"{title}: {which}{more}", _svg(figure))


def _first(campaign: Campaigned, point: Point, runs: int | None) -> list[Row]:
    """Return a point's first runs that count."""
    return [row for row in campaign.rows_of(point) if row.counts][:runs]


def _tidy(axis: "Axes", grid: Any) -> None:
    axis.grid(axis=grid, alpha=0.3)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)


def _svg(figure: "Figure") -> str:
    """Return a figure as SVG, without anything of when or where."""
    plt = pyplot()
    text = io.StringIO()
    with plt.rc_context({"svg.hashsalt": "fadelab"}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": "fadelab"})
    plt.close(figure)
    return text.getvalue()
