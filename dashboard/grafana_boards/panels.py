"""The panels' look: charts over time, figures of the moment, states over time, bars and the table of runs.

Rules
- A panel has one direction of the link or none; up and down stand side by side, their main lines in different colours.
- Units are written out and never scaled: Grafana would make 750 mB of three quarters of a byte. Decimals of
  figures are set; those of an axis follow its steps.
- Legends are tables on the right, where all rows have room. Means in them are of figures of which each second counts
  alike; shares and ratios have a row of their own, which weighs by their counts.
- A figure of the moment is the mean of `HEADLINE`, by the times of its records, since the newest may be under way; of a
  time range that is over, it is that of the range. It is not shifted: Grafana would shift that range, too.
- A value that is missing is grey and says so.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from string import ascii_lowercase, ascii_uppercase
from types import MappingProxyType
from typing import Any

from common.sides import SIDES, Side
from dashboard.charts import ALL, Chart, Line, Ratio, Share
from dashboard.grafana_boards.influxql import ALIGNED, ALIGNED_S, DATASOURCE, RUN, Scope, query

Panel = dict[str, Any]

SOURCE = {"type": "influxdb", "uid": DATASOURCE}

#: how long a panel's intervals are at the least: a mean of a second, as on the page
INTERVAL = "1s"
HEADLINE = "3s"

#: a chart's unit on a panel, where it differs: Grafana's name for it, its size, decimals
_UNITS: Mapping[str, tuple[str, float, int]] = {
    "bit/s": ("suffix:Mbit/s", 1e-6, 2),
    "bytes": ("suffix:kB", 1e-3, 1),
    "Hz": ("suffix:Hz", 1.0, 0),
    "%": ("suffix:%", 1.0, 2),
    "1/s": ("suffix:/s", 1.0, 1),
    "per packet": ("suffix:per packet", 1.0, 2),
    "timeouts": ("suffix:timeouts", 1.0, 0),
}

#: likewise by the chart
_UNITS_OF: Mapping[str, tuple[str, float, int]] = {"memory": ("suffix:MB", 1e-6, 0)}

#: the names of a panel's queries in Grafana
_REFS = ascii_uppercase

#: colours of the main lines, by direction, and of others by the rest of their names
_MAIN: Mapping[Side, str] = {"up": "blue", "down": "purple"}
_COLOURS = {
    "retransmissions": "orange",
    "FEC frames": "yellow",
    "FEC repairs": "green",
    "ELN marks": "text",
    "recovered": "green",
    "lost": "red",
    "congestion": "red",
    "before": "orange",
    "after": "green",
    "EVM": "orange",
    "at the receiver": "orange",
    "with the model's": "red",
    "rounds": "orange",
    "planned": "green",
    "missed": "red",
    "gain": "orange",
    "backoff": "orange",
    "deferrals": "orange",
    "collisions": "red",
    "collisions heard": "yellow",
}
#: of two runs side by side, as on the page
_RUNS = {"A": "blue", "B": "orange"}
#: of states that are names; red is for what is wrong
_STATE_COLOURS = (
    "blue",
    "orange",
    "green",
    "purple",
    "yellow",
    "dark-purple",
    "super-light-blue",
    "dark-green",
    "light-orange",
)
_MISSING = "#8e8e8e"

#: thresholds: the first colour, then from which value on another
Steps = tuple[str, *tuple[tuple[float, str], ...]]
LOSS: Steps = ("green", (1, "yellow"), (10, "red"))
#: Grafana takes a missing value for a number below -200
SNR: Steps = (_MISSING, (-200, "red"), (8, "yellow"), (15, "green"))


def charts(*keys: str, runs: Mapping[str, Scope] = MappingProxyType({"": RUN}), height: int = 8) -> Iterator[Panel]:
    """Yield the panels of some charts: one for each direction of the link, or one for other records.

    `runs` are those that a panel shows, by the letters that stand for them; a run alone needs none.
    """
    for key in keys:
        chart = ALL[key]
        of_link = [line for line in chart.lines if line.by == "link"]
        others = [line for line in chart.lines if line.by != "link"]
        for direction in SIDES if of_link else ():
            # a link's tag in all measurements
            only = {letter: scope.only("link", direction) for letter, scope in runs.items()}
            yield _chart(f"{chart.title}, {direction}", chart, of_link, only, height, direction)
        if others:
            # where the lines of links have panels of their own, these are TCP's
            title = f"{chart.title}, TCP" if of_link else chart.title
            chosen = dict(runs)
            if all("flow" in line.record.tags for line in others):
                chosen = {letter: scope.chosen("flow") for letter, scope in runs.items()}
            yield _chart(title, chart, others, chosen, height)


def _chart(
    title: str,
    chart: Chart,
    lines: Sequence[Line],
    runs: Mapping[str, Scope],
    height: int,
    direction: Side | None = None,
) -> Panel:
    unit, factor, _ = _UNITS_OF.get(chart.name) or _unit(chart.unit)
    asked: list[tuple[str, str]] = []
    overrides = [_coloured_run(letter) for letter in runs if letter]
    counted = [line for line in lines if isinstance(line.figure, Ratio | Share)]
    for number, line in enumerate(lines):
        name = line.suffix or line.short or chart.title.lower()
        asked += [(query(line, scope, factor), _alias(line, name, letter)) for letter, scope in runs.items()]
        if direction is not None and "" in runs:
            bounds = _band(lines, number) if line.band else {}
            overrides.append(override("byName", name, color=_fixed(_colour(line, direction)), **bounds))
        elif number and (line.suffix or "" not in runs):
            end = line.suffix or "all flows"
            overrides.append(override("byRegexp", f"/ {end}$/", **{"custom.lineStyle": _DASHES}))
    for line in counted if "" in runs else ():
        # a legend's own mean gives a second with ten packets the weight of one with a thousand
        name = f"{line.suffix or line.short or chart.title.lower()}{_OVERALL}"
        asked.append((query(line, runs[""].over("range"), factor), _alias(replace(line, suffix=name), name, "")))
        if direction is not None:
            overrides.append(override("byName", name, color=_fixed(_colour(line, direction)), **_UNSEEN))
        else:
            overrides.append(override("byRegexp", f"/{_OVERALL}$/", **_UNSEEN))
    targets = [target(ref, text, alias) for ref, (text, alias) in zip(_REFS, asked, strict=False)]
    # rows of a legend for two series of each query, and its head
    height = max(height, -(-((2 * len(targets) + 1) * _LEGEND_ROW_PX + _HEAD_PX) // _GRID_PX))
    custom = {
        "drawStyle": "line",
        "lineInterpolation": "linear",
        "lineWidth": 1,
        "fillOpacity": 0,
        "showPoints": "auto",
        "pointSize": 4,
        "spanNulls": False,
    }
    defaults: dict[str, Any] = {
        "unit": unit,
        "color": {"mode": "palette-classic"},
        "custom": custom,
    }
    if chart.scale == "zero":
        defaults["min"] = 0
    panel = new_panel(
        "timeseries", title, f"{chart.description}.", targets, defaults, overrides, width=12, height=height
    )
    panel["options"] = {
        "legend": {
            "showLegend": True,
            "displayMode": "table",
            "placement": "right",
            "calcs": ["lastNotNull"] if counted else ["lastNotNull", "mean"],
        },
        "tooltip": {"mode": "multi", "sort": "none"},
    }
    return panel


def _band(lines: Sequence[Line], number: int) -> dict[str, Any]:
    """Return the properties of a bound; the upper one fills the band."""
    thin = {"custom.lineWidth": 0, "custom.showPoints": "never"}
    lower = lines[number - 1]
    return thin | ({"custom.fillBelowTo": lower.suffix, "custom.fillOpacity": 20} if lower.band else {})


#: behind the name of the share or ratio of all that the time range has, which stands in the legend alone
_OVERALL = ", overall"
_UNSEEN = {"custom.lineWidth": 0, "custom.showPoints": "never"}
#: pixels of a row of Grafana's grid, a panel's head and a row of a legend
_GRID_PX, _HEAD_PX, _LEGEND_ROW_PX = 38, 40, 28
_DASHES = {"fill": "dash", "dash": [8, 6]}


def _unit(unit: str) -> tuple[str, float, int]:
    return _UNITS.get(unit, (f"suffix:{unit}", 1.0, 1))


def _colour(line: Line, direction: Side) -> str:
    return _COLOURS.get(line.suffix, _MAIN[direction])


def _fixed(colour: str) -> dict[str, str]:
    return {"mode": "fixed", "fixedColor": colour}


def _coloured_run(letter: str) -> dict[str, Any]:
    """The colour of all series of one of two runs, whose names begin with its letter."""
    return override("byRegexp", f"/^{letter}( |$)/", color=_fixed(_RUNS[letter]))


def _alias(line: Line, name: str, letter: str) -> str:
    """The name of a line's series in Grafana; `$tag_flow` in it is the series' tag."""
    whose = {"flow": "$tag_flow ", "station": "$tag_station ", "all": "all flows ", "link": ""}[line.by]
    return f"{letter} {whose}{line.suffix if whose else name}".strip()


def headline(title: str, description: str, chart: str, number: int = 0, *, colour: str | Steps) -> Panel:
    """The present figure: a line of a chart, for link records by direction."""
    unit, factor, decimals = _unit(ALL[chart].unit)
    line = ALL[chart].lines[number]
    scope = RUN.over("range")
    if line.by != "link":
        scope = scope.chosen("flow")
    alias = {"link": "$tag_link", "flow": "$tag_flow"}.get(line.by, "all chosen flows")
    asked = target("A", query(line, scope, factor), alias)
    defaults = _moment(unit, min(decimals, 2), colour)
    panel = new_panel("stat", title, description, [asked], defaults, [], width=4, height=4)
    panel |= {"timeFrom": HEADLINE, "hideTimeOverride": True}
    panel["options"] = {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "colorMode": "value",
        "graphMode": "none",
        "justifyMode": "center",
        "orientation": "vertical",
        # by itself, Grafana shows no name where there is one series alone
        "textMode": "value_and_name",
    }
    return panel


def _moment(unit: str, decimals: int, colour: str | Steps) -> dict[str, Any]:
    found: dict[str, Any] = {"unit": unit, "decimals": decimals, "noValue": "no value"}
    found["mappings"] = [
        {
            "type": "special",
            "options": {"match": "null+nan", "result": {"text": "no value", "color": _MISSING, "index": 0}},
        }
    ]
    if isinstance(colour, str):
        found["color"] = {"mode": "fixed", "fixedColor": colour}
    else:
        first, *others = colour
        steps = [{"value": None, "color": first}, *({"value": value, "color": name} for value, name in others)]
        found |= {"color": {"mode": "thresholds"}, "thresholds": {"mode": "absolute", "steps": steps}}
    return found


def states(title: str, description: str, asked: str, meanings: Mapping[str, tuple[str, str]] | None = None) -> Panel:
    """States over time, by direction; `meanings` gives a value's words and colour. Without, values are names."""
    if meanings is None:
        mappings = list(_names())
    else:
        results = [{"text": text, "color": colour, "index": at} for at, (text, colour) in enumerate(meanings.values())]
        mappings = [{"type": "value", "options": dict(zip(meanings, results, strict=True))}]
    defaults = {
        # a state has its colour by its mapping alone: a palette's would be that of its direction
        "color": {"mode": "fixed", "fixedColor": "text"},
        "custom": {"fillOpacity": 70, "lineWidth": 0, "spanNulls": False},
        "mappings": mappings,
    }
    panel = new_panel(
        "state-timeline", title, description, [target("A", asked, "$tag_link")], defaults, [], width=24, height=4
    )
    panel["options"] = {
        "mergeValues": True,
        "showValue": "auto",
        # at the left, Grafana 9.4 cuts the text off where a state began before the time shown
        "alignValue": "center",
        "rowHeight": 0.8,
        "legend": {"showLegend": False, "displayMode": "list", "placement": "bottom"},
        "tooltip": {"mode": "single", "sort": "none"},
    }
    return panel


def _names() -> Iterator[dict[str, Any]]:
    """Yield mappings from any name to itself, coloured by its third letter, since names may be added."""
    patterns = [f"..[{ascii_lowercase[at :: len(_STATE_COLOURS)]}].*" for at in range(len(_STATE_COLOURS))]
    for at, (pattern, colour) in enumerate(zip((*patterns, ".+"), (*_STATE_COLOURS, "text"), strict=True)):
        result = {"text": "$1", "color": colour, "index": at}
        yield {"type": "regex", "options": {"pattern": f"/^({pattern})$/", "result": result}}


def bars_of_two(title: str, description: str, unit: str, *asked: tuple[str, str]) -> Panel:
    """Figures of two whole runs as bars; `asked` are pairs of a query and an alias that begins with a run's letter."""
    return bars(title, description, unit, *asked, overrides=[_coloured_run(letter) for letter in _RUNS])


def bars(
    title: str,
    description: str,
    unit: str,
    *asked: tuple[str, str],
    overrides: Sequence[Mapping[str, Any]] = (),
    width: int = 8,
    height: int = 6,
    long_names: bool = False,
) -> Panel:
    """Figures of whole runs as bars; `asked` are pairs of a query and an alias."""
    name, _, decimals = _unit(unit)
    targets = [target(ref, text, alias) for ref, (text, alias) in zip(_REFS, asked, strict=False)]
    defaults = _moment(name, decimals, "blue") | {"min": 0}
    panel = new_panel("bargauge", title, description, targets, defaults, overrides, width=width, height=height)
    panel["options"] = {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "orientation": "horizontal",
        "displayMode": "basic",
        "showUnfilled": True,
    }
    if long_names:
        # Grafana 9.4 knows the size alone, and finds the place itself
        panel["options"] |= {"text": {"titleSize": 12}, "namePlacement": "top"}
    return panel


def from_zero(title: str, description: str, unit: str, asked: Mapping[str, str]) -> Panel:
    """A figure of one or two whole runs over the time of each; `asked`: the tables by the runs' letters.

    Grafana 9.2 and later have the panel, whose options are those of before 11.1: later ones read them, too, as the
    board names no version.
    """
    name, _, _ = _unit(unit)
    targets = [
        target(ref, text, "") | {"resultFormat": "table"} for ref, text in zip(_REFS, asked.values(), strict=False)
    ]
    line = {"show": "lines", "lineWidth": 1, "lineStyle": {"fill": "solid"}, "pointSize": {"fixed": 3}}
    # else Grafana makes one of what the columns' names have in common
    line["axisLabel"] = title.partition(" from zero")[0]
    overrides = [
        *(override("byName", ALIGNED.format(letter), color=_fixed(_run_colour(letter))) for letter in asked),
        *(
            override("byName", ALIGNED_S.format(letter), unit="suffix:s", **{"custom.axisLabel": _FROM_ZERO})
            for letter in asked
        ),
    ]
    defaults = {"unit": name, "custom": line, "color": {"mode": "palette-classic"}, "min": 0}
    panel = new_panel("xychart", title, description, targets, defaults, overrides, width=12, height=8)
    panel["options"] = {
        "seriesMapping": "manual",
        "dims": {"frame": 0},
        "series": [
            {"x": ALIGNED_S.format(letter), "y": ALIGNED.format(letter), "frame": number, "pointColor": _point(letter)}
            for number, letter in enumerate(asked)
        ],
        "legend": {"showLegend": len(asked) > 1, "displayMode": "list", "placement": "bottom", "calcs": []},
        "tooltip": {"mode": "single", "sort": "none"},
    }
    return panel


_FROM_ZERO = "seconds since the begin of the run"


def _point(letter: str) -> dict[str, str]:
    return {"fixed": _run_colour(letter)}


def _run_colour(letter: str) -> str:
    return _RUNS.get(letter, "blue")


def table_of_runs(title: str, description: str, asked: str, boards: Mapping[str, str], *, height: int) -> Panel:
    """Runs; each one's name leads to its boards (titles by uid) at its own time."""
    links = [
        {
            "title": title,
            "url": f"/d/{uid}?var-run=${{__data.fields.run}}&from=${{__data.fields.begins}}&to=${{__data.fields.ends}}",
        }
        for uid, title in boards.items()
    ]
    overrides = [
        override("byRegexp", "/^[Tt]ime$/", displayName="began", **{"custom.width": 190}),
        override("byName", "run", links=links, **{"custom.width": 430}),
        override("byName", "goodput", unit=_unit("bit/s")[0], decimals=2),
        override("byName", "duration", unit="suffix:s", decimals=1, **{"custom.width": 110}),
        override("byName", "seed", decimals=0, **{"custom.width": 80}),
        override("byRegexp", "/^(begins|ends)$/", **{"custom.hidden": True}),
    ]
    defaults = {
        "color": {"mode": "fixed", "fixedColor": "text"},
        "custom": {"align": "left"},
        "noValue": "not over yet",
    }
    asking = target("A", asked, "") | {"resultFormat": "table"}
    panel = new_panel("table", title, description, [asking], defaults, overrides, width=24, height=height)
    panel["options"] = {"showHeader": True, "sortBy": [{"displayName": "began", "desc": True}]}
    return panel


def target(ref: str, asked: str, alias: str) -> dict[str, Any]:
    """Return a query in the form of Grafana's InfluxDB plugin, with the names of its series."""
    return {
        "refId": ref,
        "datasource": SOURCE,
        "query": asked,
        "rawQuery": True,
        "alias": alias,
        "resultFormat": "time_series",
    }


def new_panel(
    kind: str,
    title: str,
    description: str,
    targets: Sequence[Mapping[str, Any]],
    defaults: Mapping[str, Any],
    overrides: Sequence[Mapping[str, Any]],
    *,
    width: int,
    height: int,
) -> Panel:
    """Return a panel of Grafana's type `kind`; its size is in cells of the grid."""
    return {
        "type": kind,
        "title": title,
        "description": description,
        "datasource": SOURCE,
        "interval": INTERVAL,
        # where it stands, `frame.py` says
        "gridPos": {"w": width, "h": height},
        "targets": list(targets),
        "fieldConfig": {"defaults": dict(defaults), "overrides": list(overrides)},
    }


def override(matcher: str, options: str, **properties: Any) -> dict[str, Any]:
    """Return properties of the fields that Grafana's matcher finds."""
    return {
        "matcher": {"id": matcher, "options": options},
        "properties": [{"id": name, "value": value} for name, value in properties.items()],
    }
