"""The times of short transfers, as a cumulative distribution."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.results.show import COLOURS, pyplot
from testbed.results.summary import Summary
from testbed.results.whole_files import write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_cdf(axis: "Axes", values: Sequence[float], style: dict[str, Any]) -> None:
    """Draw the share of values that are not above each value; nothing without values."""
    if values:
        ordered = sorted(values)
        shares = [index / len(ordered) for index in range(len(ordered) + 1)]
        axis.step([ordered[0], *ordered], shares, where="post", **style)


def plot_transfers(summary: Summary, target: Path) -> None:
    """Draw the times of each flow's transfers into a PNG; no file without a flow of two transfers."""
    flows = [flow for flow in summary.flows if len(flow.transfer_s) > 1]
    if not flows:
        return
    plt = pyplot()
    figure, axis = plt.subplots(figsize=(6, 3.6), layout="constrained")
    for index, flow in enumerate(flows):
        cut = "" if flow.finished else ", cut off"
        label = f"{flow.flow}: {len(flow.transfer_s)} transfers{cut}"
        draw_cdf(axis, flow.transfer_s, {"color": COLOURS[index % len(COLOURS)], "label": label})
    axis.set(xlabel="time of a transfer (s)", ylabel="share of transfers", xlim=(0, None), ylim=(0, 1))
    axis.grid(alpha=0.3)
    axis.legend(frameon=False)
    write_figure(figure, target)
    plt.close(figure)
