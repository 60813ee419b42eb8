"""The counters of the link that no other chart has, so that a new one is seen at once."""

from dataclasses import fields

from dashboard.charts import Chart, Line, Rate, link
from telemetry.records import LinkRecord

_SHOWN = {
    name
    for chart in link.CHART
    for line in chart.lines
    for name in (getattr(line.figure, key, None) for key in ("field", "counter", "of"))
}
_LINES = tuple(
    Line(LinkRecord, "link", field.name.replace("_", " "), Rate(field.name))
    for field in fields(LinkRecord)
    if field.type in (int, "int", int | None) and field.name not in _SHOWN | {"time_ns"}
)
CHART = (
    (Chart("others", "Other counters", "1/s", "Counters that have no chart of their own yet", _LINES, page=100),)
    if _LINES
    else ()
)
