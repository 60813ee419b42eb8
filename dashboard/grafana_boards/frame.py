"""What all boards share: variables, annotations, links to each other, and how often they look."""

from collections.abc import Sequence

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import dashboard

from dashboard.grafana_boards.influxql import DATASOURCE, Source, changes, rises, tag_values
from dashboard.grafana_boards.panels import SOURCE
from telemetry.records import TcpRecord

_TAG = "fadelab"
_ALL = dashboard.VariableOption(selected=True, text="All", value="$__all")
#: not every board lets one choose hosts and flows
_ALL_TCP = Source(TcpRecord, ())


def board(
    name: str, title: str, description: str, panels: Sequence[Builder[dashboard.Panel]], variables: Sequence[str]
) -> dashboard.Dashboard:
    """Put a board together; `variables` are those of host, flow and link that its panels use."""
    made = (
        build.Dashboard(title)
        .uid(f"fadelab-{name}")
        .description(description)
        .tags([_TAG])
        .timezone("browser")
        .tooltip(dashboard.DashboardCursorSync.CROSSHAIR)
        .time("now-5m", "now")
        .refresh("1s")
        .timepicker(build.TimePicker().refresh_intervals(["1s", "2s", "5s", "10s", "1m"]))
        .link(
            build.DashboardLink("fadelab")
            .type(dashboard.DashboardLinkType.DASHBOARDS)
            .tags([_TAG])
            .include_vars(True)
            .keep_time(True)
        )
    )
    made.with_variable(_run())
    for variable in variables:
        made.with_variable(_VARIABLES[variable])
    made.annotation(_annotation("Controls", changes(), colour="blue", text="value", tags="name"))
    made.annotation(_annotation("TCP timeouts", rises(_ALL_TCP, "timeouts"), colour="red", text="rise", tags="flow"))
    for panel in panels:
        made.with_panel(panel)
    finished = made.build()
    for number, placed in enumerate(finished.panels or (), 1):
        placed.id_val = number
    return finished


def _run() -> build.QueryVariable:
    """The run: the newest first, since a run's name begins with its time."""
    return (
        build.QueryVariable("run")
        .label("Run")
        .query(tag_values("link", "run", of_run=False))
        .datasource(SOURCE)
        .sort(dashboard.VariableSort.ALPHABETICAL_DESC)
        .refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED)
    )


def _of_run(name: str, label: str, measurement: str) -> build.QueryVariable:
    """What the chosen run has of something, all of it at first."""
    return (
        build.QueryVariable(name)
        .label(label)
        .query(tag_values(measurement, name))
        .datasource(SOURCE)
        .sort(dashboard.VariableSort.ALPHABETICAL_ASC)
        .refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .multi(True)
        .include_all(True)
        .current(_ALL)
    )


_VARIABLES = {
    "host": _of_run("host", "Sending host", "tcp"),
    "flow": _of_run("flow", "Flow", "flow"),
    "link": _of_run("link", "Direction", "link"),
}


class _AnnotationTarget(Builder[dashboard.AnnotationTarget], dashboard.AnnotationTarget):
    """An annotation's query and the columns it shows; the library knows Grafana's own annotations only."""

    def __init__(self, query: str, text: str, tags: str) -> None:
        super().__init__()
        self._query, self._text, self._tags = query, text, tags

    def build(self) -> dashboard.AnnotationTarget:
        return self

    def to_json(self) -> dict[str, object]:
        return {
            "refId": "Anno",
            "datasource": {"type": "influxdb", "uid": DATASOURCE},
            "fromAnnotations": True,
            "queryType": "tags",
            "query": self._query,
            "rawQuery": True,
            "textColumn": self._text,
            "tagsColumn": self._tags,
        }


def _annotation(name: str, query: str, *, colour: str, text: str, tags: str) -> build.AnnotationQuery:
    return (
        build.AnnotationQuery()
        .name(name)
        .datasource(SOURCE)
        .enable(True)
        .icon_color(colour)
        .target(_AnnotationTarget(query, text, tags))
    )
