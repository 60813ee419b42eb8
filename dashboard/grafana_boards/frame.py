"""The common part of all boards: variables, annotations, links, refresh interval, and Grafana's schema."""

from collections.abc import Sequence
from typing import Any

from dashboard.grafana_boards.influxql import events, tag_values
from dashboard.grafana_boards.panels import SOURCE, Panel
from telemetry.records import ControlRecord, Record, TcpRecord

#: those of the oldest and the newest Grafana that docs/grafana.md names (9.4 and 12); a newer one reads older boards
OLDEST_SCHEMA, NEWEST_SCHEMA = 36, 41

#: Grafana draws nothing while the answers to a query before are under way: at a second, a busy machine's stay blank
REFRESH = "5s"

_TAG = "fadelab"
_COLUMNS = 24

#: a heading and the panels below it
Row = tuple[str, list[Panel]]


def board(
    uid: str, title: str, description: str, rows: Sequence[Row], variables: Sequence[str], *, schema: int
) -> dict[str, Any]:
    """Put a board together; `variables` are those that its panels use."""
    return {
        "uid": uid,
        "title": title,
        "description": description,
        "tags": [_TAG],
        "timezone": "browser",
        "editable": True,
        # one crosshair in all charts
        "graphTooltip": 1,
        "time": {"from": "now-5m", "to": "now"},
        "timepicker": {"refresh_intervals": ["5s", "10s", "30s", "1m"]},
        "refresh": REFRESH,
        "schemaVersion": schema,
        "links": [_others()],
        "templating": {"list": [_VARIABLES[name] for name in variables]},
        "annotations": {"list": [_CONTROLS, _TIMEOUTS] if "run" in variables else []},
        "panels": _placed(rows),
    }


def _placed(rows: Sequence[Row]) -> list[Panel]:
    """Put the rows below each other, and the panels of each from the left to the right."""
    found: list[Panel] = []
    y = 0
    for heading, panels in rows:
        place = {"x": 0, "y": y, "w": _COLUMNS, "h": 1}
        found.append({"type": "row", "title": heading, "collapsed": False, "gridPos": place, "panels": []})
        x, y, bottom = 0, y + 1, y + 1
        for panel in panels:
            size = panel["gridPos"]
            if x + size["w"] > _COLUMNS:
                x, y = 0, bottom
            found.append(panel | {"gridPos": {"x": x, "y": y, **size}})
            x += size["w"]
            bottom = max(bottom, y + size["h"])
        y = bottom
    return [{"id": number, **panel} for number, panel in enumerate(found, 1)]


def _others() -> dict[str, Any]:
    """The links to the other boards; they keep the chosen variables."""
    return {
        "type": "dashboards",
        "title": "fadelab",
        "tags": [_TAG],
        "asDropdown": False,
        "includeVars": True,
        "keepTime": True,
        "targetBlank": False,
        "icon": "external link",
        "tooltip": "",
        "url": "",
    }


def _variable(name: str, label: str, asked: str, *, several: bool = False) -> dict[str, Any]:
    """A variable and the query for its values. The ids must differ: Grafana 9 keeps only one variable per id."""
    return {
        "id": name,
        "name": name,
        "label": label,
        "type": "query",
        "datasource": SOURCE,
        "query": asked,
        "definition": asked,
        "regex": "",
        # with every change of the time range
        "refresh": 2,
        # by name: runs from the newest, since a run's name begins with its time
        "sort": 1 if several else 2,
        "multi": several,
        "includeAll": several,
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]} if several else {},
        "options": [],
        "hide": 0,
        "skipUrlSync": False,
    }


_VARIABLES = {
    "run": _variable("run", "Run", tag_values("link", "run", of_run=False)),
    "other": _variable("other", "Other run", tag_values("link", "run", of_run=False)),
    "flow": _variable("flow", "Flow", tag_values("flow", "flow"), several=True),
}


def _annotation(name: str, record: type[Record], whose: str, colour: str) -> dict[str, Any]:
    return {
        "name": name,
        "enable": True,
        "hide": False,
        "iconColor": colour,
        "datasource": SOURCE,
        "target": {
            "refId": "Anno",
            "datasource": SOURCE,
            "fromAnnotations": True,
            "queryType": "tags",
            "query": events(record, whose),
            "rawQuery": True,
            "textColumn": "text",
            "tagsColumn": whose,
        },
    }


_CONTROLS = _annotation("Controls", ControlRecord, "name", "blue")
_TIMEOUTS = _annotation("TCP timeouts", TcpRecord, "flow", "red")
