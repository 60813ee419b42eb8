"""Charts as figures to print: PNG, SVG and PDF.

One run: a colour for each line. Two runs over each other: a colour for each run, a stroke for each line. Colours are
Okabe and Ito's, which the colour-blind tell apart, and strokes differ where colours do not.

Matplotlib is not made for threads: one figure is drawn at a time.
"""

import io
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dashboard.charts import CHARTS, Chart
from dashboard.curves import Curve, Picture
from dashboard.thinning import thin

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = {"png": "image/png", "svg": "image/svg+xml", "pdf": "application/pdf"}

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_STROKES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1.2, 1, 1.2)))
_STYLE: Any = {
    "font.family": "sans-serif",
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
_ONE_COLUMN = 3
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

        chosen = [chart for chart in CHARTS if chart.key in charts]
        columns = 1 if len(chosen) <= _ONE_COLUMN else 2
        rows = math.ceil(len(chosen) / columns)
        with rc_context(_STYLE):
            figure = Figure(figsize=(7.2, 0.5 + 1.9 * rows), layout="constrained")
            grid = figure.subplots(rows, columns, squeeze=False, sharex=True)
            for axis, chart in zip(grid.flat, chosen, strict=False):
                _draw_chart(axis, chart, runs)
            for axis in list(grid.flat)[len(chosen) :]:
                axis.remove()
            # the lowest of each column, also where the last row is not full
            for index in range(max(len(chosen) - columns, 0), len(chosen)):
                axis = grid.flat[index]
                axis.set_xlabel("time (s)")
                axis.tick_params(labelbottom=True)
            figure.suptitle(title, fontsize=9, x=0.01, ha="left")
            target = io.BytesIO()
            metadata = {"Date": None} if form == "svg" else {"CreationDate": None} if form == "pdf" else {}
            figure.savefig(target, format=form, dpi=200, metadata=metadata)
        return target.getvalue()


def _draw_chart(axis: "Axes", chart: Chart, runs: Sequence[Drawn]) -> None:
    found = [
        (run, index, curve)
        for run, drawn in enumerate(runs)
        for index, curve in enumerate(c for c in drawn.picture.curves if c.chart == chart.key)
    ]
    unit, factor = _readable(chart.unit, [curve for _, _, curve in found])
    for run, index, curve in found:
        several = len(runs) > 1
        times, values = thin(curve.times, curve.values)
        axis.plot(
            times,
            [value / factor for value in values],
            color=_COLOURS[(run if several else index) % len(_COLOURS)],
            linestyle=_STROKES[(index if several else index // len(_COLOURS)) % len(_STROKES)],
            label=f"{runs[run].label}: {curve.label}" if several else curve.label,
            zorder=3 - index * 0.1,
        )
    axis.set_title(chart.title)
    axis.set_ylabel(unit)
    axis.set_xlim(left=0)
    if chart.scale == "zero":
        axis.set_ylim(bottom=0)
    if found:
        axis.legend(loc="best", ncols=2 if len(found) > _ONE_COLUMN else 1, handlelength=2.6)
    else:
        axis.text(0.5, 0.5, "no values", transform=axis.transAxes, ha="center", color="0.5")


def _readable(unit: str, curves: Sequence[Curve]) -> tuple[str, float]:
    """Return a prefix that makes a chart's numbers short, and what to divide by."""
    largest = max((abs(v) for curve in curves for v in curve.values if not math.isnan(v)), default=0.0)
    if unit == "bit/s":
        return next(
            ((f"{prefix}bit/s", size) for prefix, size in (("M", 1e6), ("k", 1e3)) if largest >= size), (unit, 1)
        )
    if unit == "bytes":
        return ("KiB", 1024) if largest >= 1024 else (unit, 1)
    return unit, 1
