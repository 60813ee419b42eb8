"""The common part of all boards: variables, annotations, links, refresh interval, and Grafana's schema."""

from collections.abc import Iterator, Sequence
from typing import Any

from dashboard.grafana_boards.influxql import COMPARED, RUN, begin, events, newest, tag_values
from dashboard.grafana_boards.panels import SOURCE, Panel
from telemetry.records import ControlRecord, TcpRecord

#: those of the oldest and the newest Grafana that docs/grafana.md names (9.4 and 12); a newer one reads older boards
OLDEST_SCHEMA, NEWEST_SCHEMA = 36, 41

#: Grafana draws nothing while the answers to a query before are under way: at a second, a busy machine's stay blank
REFRESH = "5s"

_TAG = "fadelab"
_COLUMNS = 24

#: a heading and the panels below it; a row with a variable for heading is there for each of its values
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
        "links": [_others(), *(_newest(uid, each) for each in ("run", "campaign") if each in variables)],
        "templating": {"list": [_VARIABLES[name] for name in variables]},
        "annotations": {"list": [*_annotations(variables)]},
        "panels": _placed(rows),
    }


def _placed(rows: Sequence[Row]) -> list[Panel]:
    """Put the rows below each other, and the panels of each from the left to the right."""
    found: list[Panel] = []
    y = 0
    for heading, panels in rows:
        place = {"x": 0, "y": y, "w": _COLUMNS, "h": 1}
        repeated = {"repeat": heading[1:]} if heading.startswith("$") else {}
        found.append({"type": "row", "title": heading, "collapsed": False, "gridPos": place, "panels": []} | repeated)
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


def _newest(uid: str, of: str) -> dict[str, Any]:
    """The link to the same board of the newest: without a choice, Grafana takes the first value of a variable."""
    return {
        "type": "link",
        "title": f"newest {of}",
        "tags": [],
        "asDropdown": False,
        "includeVars": False,
        "keepTime": False,
        "targetBlank": False,
        "icon": "bolt",
        "tooltip": f"Follow the {of} that has begun last",
        "url": f"/d/{uid}?from=now-5m&to=now",
    }


def _variable(
    name: str, label: str, asked: str, *, several: bool = False, every: bool = False, newest: bool = True
) -> dict[str, Any]:
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
        # by name: runs and campaigns from the newest, since their names begin with their times
        "sort": 2 if newest else 1,
        "multi": several,
        "includeAll": every,
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]} if every else {},
        "options": [],
        "hide": 0,
        "skipUrlSync": False,
    }


_VARIABLES = {
    "run": _variable("run", "Run", tag_values("link", "run", of="all")),
    "runs": _variable("runs", "Runs", tag_values("link", "run", of="all"), several=True),
    "other": _variable("other", "Other run (B)", tag_values("link", "run", of="others")),
    "flow": _variable("flow", "Flow", tag_values("flow", "flow"), several=True, every=True, newest=False),
    "campaign": _variable("campaign", "Campaign", tag_values("campaigns", "campaign", of="all")),
    "metric": _variable("metric", "Metric", tag_values("campaign_points", "metric", of="campaign"), newest=False),
}


def _annotation(name: str, asked: str, tag: str, colour: str) -> dict[str, Any]:
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
            "query": asked,
            "rawQuery": True,
            "textColumn": "text",
            "tagsColumn": tag,
        },
    }


def _annotations(variables: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The marks of a board's runs: of two, those of each by themselves."""
    if "run" not in variables:
        return
    several = "other" in variables
    for letter, scope in (COMPARED if several else {"": RUN}).items():
        behind = f" of {letter}" if letter else ""
        change, timeout, end = _MARKS[letter]
        yield _annotation(f"Controls{behind}", events(ControlRecord, "name", scope), "name", change)
        yield _annotation(f"TCP timeouts{behind}", events(TcpRecord, "flow", scope), "flow", timeout)
        yield _annotation(f"Begin{behind}", begin(scope), "run", end)
        yield _annotation(f"Newest record{behind}", newest(scope), "run", end)


#: colours of marks: changes by a person, timeouts, begin and newest record
_MARKS = {"": ("blue", "red", "green"), "A": ("blue", "red", "green"), "B": ("orange", "dark-red", "dark-green")}
