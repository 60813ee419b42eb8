"""Charts as figures for print: PNG, SVG and PDF. `draw_delays` draws delays under load, as `static/delays.js` does.

One run: a colour for each line. Two runs: a colour for each run and a line style for each line; charts of many lines
show the main direction only, and their title names it. The colours are Okabe and Ito's, which colour-blind readers can
distinguish; lines of the same colour differ in style.

Matplotlib is not thread-safe: one figure is drawn at a time.
"""

import io
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dashboard.charts import CHARTS, Chart
from dashboard.curves import Curve, Picture
from dashboard.thinning import thin

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = {"png": "image/png", "svg": "image/svg+xml", "pdf": "application/pdf"}

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_STROKES: tuple[Any, ...] = (
    "-",
    (0, (4, 1.5)),
    (0, (1, 1.2)),
    (0, (5, 1.2, 1, 1.2)),
    (0, (2, 2.5)),
    (0, (5, 1.2, 1, 1.2, 1, 1.2)),
)
_STYLE: Any = {
    "font.family": "sans-serif",
    "text.parse_math": False,
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.linewidth": 0.4,
    "grid.alpha": 0.35,
    "lines.linewidth": 1.1,
    "legend.frameon": False,
    "legend.fontsize": 7,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    # text stays text, and the same run gives the same file
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "fadelab",
}
#: number of lines of a chart from which two runs show their main direction only
_MANY = 4
_WIDTH_IN, _CHART_IN, _DELAYS_IN = 7.2, 1.4, 2.6
#: of delays: the percentiles, each with a dot, and their shares; the shares with a label, and the highest one drawn
PERCENTILES = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99}
_SHARES = (0.0, 0.5, 0.9, 0.95, 0.99)
_HIGHEST = 0.995
_drawing = threading.Lock()


@dataclass(frozen=True, slots=True)
class Drawn:
    """One run of a figure."""

    #: its name in the legend
    label: str
    picture: Picture


def draw(runs: Sequence[Drawn], charts: Sequence[str], title: str, form: str) -> bytes:
    """Return a figure with some charts (keys) of one run or two, in one of FORMATS."""
    with _drawing:
        from matplotlib import rc_context
        from matplotlib.figure import Figure

        chosen = [chart for chart in CHARTS if chart.name in charts]
        with rc_context(_STYLE):
            figure = Figure(figsize=(_WIDTH_IN, 0.6 + _CHART_IN * len(chosen)), layout="constrained")
            axes = figure.subplots(len(chosen), 1, squeeze=False, sharex=True)[:, 0]
            for axis, chart in zip(axes, chosen, strict=True):
                _draw_chart(axis, chart, runs)
            axes[-1].set(xlabel="time (s)", xlim=(0, None))
            figure.align_ylabels(axes)
            figure.suptitle(title, fontsize=9, x=0.01, ha="left")
            return _saved(figure, form)


def draw_delays(runs: Sequence[tuple[str, Sequence[Mapping[str, Any]]]], form: str) -> bytes:
    """Return a figure with the delays under load of one run or two: each with its name and its rows (`delays.py`)."""
    with _drawing:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
        from matplotlib.ticker import LogFormatter, NullFormatter

        keys = list(dict.fromkeys(row["key"] for _, rows in runs for row in rows))
        with rc_context(_STYLE):
            figure = Figure(figsize=(_WIDTH_IN, _DELAYS_IN), layout="constrained")
            axis = figure.subplots()
            for place, (name, rows) in enumerate(runs):
                for row in rows:
                    look = keys.index(row["key"])
                    dots = [(row[percentile], _tail(share)) for percentile, share in PERCENTILES.items()]
                    curve = [(delay, _tail(share)) for delay, share in row["curve"] if delay > 0 and share <= _HIGHEST]
                    colour = _COLOURS[(place if len(runs) > 1 else look) % len(_COLOURS)]
                    axis.plot(
                        *zip(*(curve or dots), strict=True),
                        color=colour,
                        linestyle=_STROKES[look % len(_STROKES)],
                        label=f"{name}: {row['label']}" if len(runs) > 1 else row["label"],
                    )
                    axis.plot(*zip(*dots, strict=True), "o", markersize=3, color=colour)
            axis.set(xscale="log", xlabel="delay (ms)", ylim=(0, _tail(_HIGHEST)), title="Delays under load")
            axis.set_yticks([_tail(share) for share in _SHARES], [f"{share:.0%}" for share in _SHARES])
            axis.set_ylabel("share of the packets")
            # a range of less than a factor of ten has labels between its powers
            axis.xaxis.set_major_formatter(LogFormatter(labelOnlyBase=False, minor_thresholds=(2, 0.5)))
            low, high = axis.get_xlim()
            wide = high > 100 * low
            axis.xaxis.set_minor_formatter(NullFormatter() if wide else LogFormatter(minor_thresholds=(4, 1)))
            axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.04), handlelength=2.4, borderaxespad=0.6)
            return _saved(figure, form)


def _tail(share: float) -> float:
    """Return how high up a share is drawn: one for each factor of ten of what is above it, since the tail is felt."""
    return -math.log10(1 - share)


def _saved(figure: "Figure", form: str) -> bytes:
    target = io.BytesIO()
    metadata = {"Date": None} if form == "svg" else {"CreationDate": None} if form == "pdf" else {}
    figure.savefig(target, format=form, dpi=200, metadata=metadata)
    return target.getvalue()


def _draw_chart(axis: "Axes", chart: Chart, runs: Sequence[Drawn]) -> None:
    found = [(run, curve) for run in runs for curve in run.picture.curves if curve.chart == chart.name]
    title, several = chart.title, len(runs) > 1
    if several and len({curve.label for _, curve in found}) >= _MANY:
        main, other = _directions(runs[0].picture)
        found = [(run, curve) for run, curve in found if curve.source != other]
        title += f" ({main})"
    bounds = [(run, curve) for run, curve in found if chart.lines[curve.line].band]
    found = [one for one in found if one not in bounds]
    labels = list(dict.fromkeys(curve.label for _, curve in found))
    unit, factor = _readable(chart.unit, [curve for _, curve in found])
    for run, curve in found:
        line = labels.index(curve.label)
        times, values = thin(curve.times, curve.values)
        colour = _COLOURS[(runs.index(run) if several else line) % len(_COLOURS)]
        axis.plot(
            times,
            [value / factor for value in values],
            color=colour,
            linestyle=_STROKES[(line if several else line // len(_COLOURS)) % len(_STROKES)],
            label=f"{run.label}: {curve.label}" if several else curve.label,
            zorder=3 - 0.1 * line,
        )
        band = [bound for owner, bound in bounds if owner is run and bound.source == curve.source and not curve.line]
        if len(band) == 2:
            lower, upper = ([value / factor for value in bound.values] for bound in band)
            axis.fill_between(band[0].times, lower, upper, color=colour, alpha=0.2, linewidth=0)
    axis.set_title(title)
    axis.set_ylabel(unit)
    if chart.scale == "zero":
        axis.set_ylim(bottom=0)
    if found:
        # beside the chart, so that it covers no line
        axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.04), handlelength=2.4, borderaxespad=0.6)
    else:
        axis.text(0.5, 0.5, "no values", transform=axis.transAxes, ha="center", color="0.5")


def _directions(picture: Picture) -> tuple[str, str]:
    """Return the direction with more traffic, and the other."""
    sums = {curve.source: sum(curve.values) for curve in picture.curves if curve.chart == "throughput"}
    return ("down", "up") if sums.get("down", 0.0) > sums.get("up", 0.0) else ("up", "down")


def _readable(unit: str, curves: Sequence[Curve]) -> tuple[str, float]:
    """Return a unit prefix for a chart's numbers, and its factor."""
    largest = max((abs(v) for curve in curves for v in curve.values if not math.isnan(v)), default=0.0)
    if unit == "bit/s":
        return next(
            ((f"{prefix}bit/s", size) for prefix, size in (("M", 1e6), ("k", 1e3)) if largest >= size), (unit, 1)
        )
    if unit == "bytes":
        return ("KiB", 1024) if largest >= 1024 else (unit, 1)
    return unit, 1
