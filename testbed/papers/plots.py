"""Help for a paper's plots: the frame that all share, and ours beside the paper's."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.papers.results import Quartiles
from testbed.results.show import COLOURS, pyplot
from testbed.results.whole_files import write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "save", "spreads", "subplots", "title", "title_and_legend"]


def subplots(rows: int = 1, columns: int = 1, *, grid: str = "both", **options: Any) -> "tuple[Figure, Any]":
    """Return a figure and its axes (an array, if there are several), with a grid along x, y or both.

    There is no frame above and at the right.
    """
    figure, axes = pyplot().subplots(rows, columns, layout="constrained", **options)
    for axis in figure.axes:
        axis.grid(axis=grid, alpha=0.3)
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def save(figure: "Figure", target: Path) -> Path:
    """Write a figure that is complete, and return its file."""
    write_figure(figure, target)
    pyplot().close(figure)
    return target


def title(figure: "Figure", text: str) -> None:
    """Give a figure its title."""
    figure.suptitle(text, fontweight="bold", fontsize=11)


def title_and_legend(figure: "Figure", axis: "Axes", text: str) -> None:
    """Give a figure its title, and below its axes the legend of one of them."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, loc="outside lower center", ncols=len(labels), fontsize=9)
    title(figure, text)


def spreads(figures: Iterable[Quartiles], limit: float = math.inf) -> tuple[list[float], list[float]]:
    """Return the distances of the quartiles below and above the medians, as error bars take them.

    Zero where there are none; nothing above `limit` is shown.
    """
    known = [
        (0.0, 0.0)
        if figure.p25 is None or figure.p75 is None or math.isinf(figure.median)
        else (figure.median - figure.p25, min(figure.p75, limit) - figure.median)
        for figure in figures
    ]
    return [below for below, _ in known], [above for _, above in known]
