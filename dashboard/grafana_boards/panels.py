"""The panels' common look: charts over time, the figure of the moment, states over time.

Rules: a figure has one colour on all boards; where there are both directions, down is dashed. A panel that shows
figures as they are recorded asks for intervals of 200 ms at least, one that shows rates for a second: a shorter one
would show single packets.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from grafana_foundation_sdk.builders import common as look
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders import stat, statetimeline, timeseries
from grafana_foundation_sdk.models import common, dashboard

from dashboard.grafana_boards.influxql import DATASOURCE, FLOW, LINK, PHY, TCP, Source, Target, last

#: how long a panel's intervals are at the least
Interval = Literal["200ms", "1s"]
AS_RECORDED: Interval = "200ms"
RATE: Interval = "1s"

SOURCE = dashboard.DataSourceRef(type_val="influxdb", uid=DATASOURCE)

_COLOURS = {
    "throughput": "blue",
    "goodput": "green",
    "received": "green",
    "acknowledged": "blue",
    "cwnd": "blue",
    "ssthresh": "orange",
    "srtt": "blue",
    "rto": "orange",
    "retransmitted": "orange",
    "timeouts": "red",
    "before": "orange",
    "after": "green",
    "per": "orange",
    "queue": "purple",
    "packets": "blue",
    "retransmissions": "orange",
    "fec": "purple",
    "repairs": "green",
    "notifications": "yellow",
    "corruption": "orange",
    "congestion": "purple",
    "residual": "red",
    "snr": "blue",
    "evm": "purple",
    "cfo": "yellow",
}
#: whose a series is, in front of its name
_WHOSE = {TCP: "$tag_flow", FLOW: "$tag_flow", LINK: "$tag_link", PHY: "$tag_link"}

#: what Grafana calls a panel's queries
_REFS = "ABCD"

#: thresholds: the first colour, then from which value on another
Steps = tuple[str, *tuple[tuple[float, str], ...]]
LOSS: Steps = ("green", (0.01, "yellow"), (0.1, "red"))
SNR: Steps = ("red", (8, "yellow"), (15, "green"))


@dataclass(frozen=True, slots=True)
class Line:
    """The series of one figure: its query, where that comes from, and its name, which has a colour above."""

    name: str
    source: Source
    query: str

    def target(self, ref: str) -> Target:
        """Return the query with the series' names."""
        return Target(ref, self.query, f"{_WHOSE[self.source]} {self.name}")


def chart(
    title: str,
    description: str,
    unit: str,
    lines: Sequence[Line],
    *,
    span: int,
    every: Interval = AS_RECORDED,
    stacked: bool = False,
    steps: bool = False,
    from_zero: bool = True,
    thresholds: Steps | None = None,
    height: int = 8,
) -> timeseries.Panel:
    """Figures over time. `stacked` fills what is under them; `steps` is for what keeps its value between records."""
    panel = timeseries.Panel().title(title).description(description).span(span).height(height)
    panel.unit(unit).interval(every).datasource(SOURCE)
    panel.legend(
        look.VizLegendOptions()
        .display_mode(common.LegendDisplayMode.TABLE)
        .placement(common.LegendPlacement.BOTTOM)
        .show_legend(True)
        .calcs(["lastNotNull", "mean"])
    )
    panel.tooltip(look.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI).sort(common.SortOrder.NONE))
    panel.line_width(1.5).show_points(common.VisibilityMode.NEVER).fill_opacity(25 if stacked else 0)
    if steps:
        panel.line_interpolation(common.LineInterpolation.STEP_AFTER)
    if stacked:
        panel.stacking(look.StackingConfig().mode(common.StackingMode.NORMAL).group("up"))
    if from_zero:
        panel.min(0)
    if thresholds is not None:
        panel.thresholds(_thresholds(thresholds))
        panel.thresholds_style(look.GraphThresholdsStyleConfig().mode(common.GraphTresholdsStyleMode.DASHED))
    for ref, line in zip(_REFS, lines, strict=False):
        panel.with_target(line.target(ref))
        # several flows of one figure: shades of its colour
        colour = {"mode": "shades", "fixedColor": _COLOURS[line.name]}
        panel.override_by_regexp(f"/ {line.name}$/", [dashboard.DynamicConfigValue("color", colour)])
    down = [dashboard.DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [8, 6]})]
    if stacked:
        # a pile per direction
        down.append(dashboard.DynamicConfigValue("custom.stacking", {"mode": "normal", "group": "down"}))
    panel.override_by_regexp("/^down /", down)
    return panel


def figure(
    title: str,
    description: str,
    unit: str,
    target: Target,
    *,
    span: int,
    every: Interval = AS_RECORDED,
    colour: str | Steps,
    decimals: int | None = None,
) -> stat.Panel:
    """The figure of the moment, with its recent course behind it; in one colour, or in those of thresholds."""
    panel = stat.Panel().title(title).description(description).span(span).height(4)
    panel.unit(unit).interval(every).datasource(SOURCE).no_value("none")
    if decimals is not None:
        panel.decimals(decimals)
    panel.graph_mode(common.BigValueGraphMode.AREA).color_mode(common.BigValueColorMode.VALUE)
    panel.reduce_options(look.ReduceDataOptions().calcs(["lastNotNull"]))
    if isinstance(colour, str):
        panel.color_scheme(build.FieldColor().mode(dashboard.FieldColorModeId.FIXED).fixed_color(colour))
    else:
        panel.color_scheme(build.FieldColor().mode(dashboard.FieldColorModeId.THRESHOLDS))
        panel.thresholds(_thresholds(colour))
    return panel.with_target(target)


def states(
    title: str, description: str, lines: Sequence[Line], meanings: dict[str, tuple[str, str]], *, span: int, height: int
) -> statetimeline.Panel:
    """States over time; `meanings` gives a value's words and colour."""
    panel = statetimeline.Panel().title(title).description(description).span(span).height(height)
    panel.interval(RATE).datasource(SOURCE).merge_values(True).show_value(common.VisibilityMode.AUTO)
    panel.legend(look.VizLegendOptions().show_legend(False).display_mode(common.LegendDisplayMode.LIST))
    options = {value: dashboard.ValueMappingResult(text, colour) for value, (text, colour) in meanings.items()}
    panel.mappings([dashboard.ValueMap(options)])
    for ref, line in zip(_REFS, lines, strict=False):
        panel.with_target(line.target(ref))
    return panel


def link_states(*, span: int, height: int = 6) -> statetimeline.Panel:
    """Which scheme a link runs, and whether packets can cross."""
    return states(
        "Link state",
        "Whether packets can cross, by direction, and the scheme the stations run.",
        [Line("established", LINK, last(LINK, "established")), Line("scheme", LINK, last(LINK, "scheme"))],
        {
            "true": ("up", "green"),
            "false": ("down", "red"),
            "slacp": ("SLACP", "blue"),
            "none": ("no scheme", "orange"),
        },
        span=span,
        height=height,
    )


def _thresholds(steps: Steps) -> build.ThresholdsConfig:
    first, *others = steps
    found = [dashboard.Threshold(None, first), *(dashboard.Threshold(value, colour) for value, colour in others)]
    return build.ThresholdsConfig().mode(dashboard.ThresholdsMode.ABSOLUTE).steps(found)
