"""Reads a board as Grafana would, and says what people would see go wrong.

What each Grafana knows is from its own packages (@grafana/schema and @grafana/data 9.4.7 and 12.0.0). The defects are
those that a Grafana 9.4 on a real database showed.
"""

import re
from collections.abc import Iterator
from typing import Any

Board = dict[str, Any]


#: defaults of `schemaVersion`; boards of older schemas each Grafana brings up to its own
SCHEMAS = {"9.4": 36, "12.0": 41}
#: known to both
_PANELS = {"row", "timeseries", "stat", "state-timeline", "bargauge", "barchart", "table", "xychart"}
_COLOUR_MODES = {"fixed", "thresholds", "palette-classic", "shades"}
_REDUCERS = {"lastNotNull", "mean", "max", "min"}
#: with the options by which both do the same
_TRANSFORMATIONS = {
    "sortBy": {"fields", "sort"},
    "organize": {"excludeByName"},
    "groupBy": {"fields"},
    "groupingToMatrix": {"rowField", "columnField", "valueField"},
}

#: decimal prefixes are put before these, or they say nothing of what is counted
_BAD_UNITS = {"decbytes", "bytes", "bps", "hertz", "rothz", "cps", "short", "none", "percentunit", "pps"}
#: what tells up from down, and so may not say whether something works
_DIRECTIONS = {"up", "down"}
_GREYS = ("#8e8e8e", "text", "gray", "grey")

#: a pixel count of Grafana's: a row of the grid, a panel's head, a line of a legend
_GRID, _HEAD, _LEGEND = 38, 40, 28


def unreadable(board: Board) -> list[str]:
    """What either Grafana would not understand, queries apart."""
    return [f"{panel['title']}: {what}" for panel in board["panels"] for what in _unreadable(panel)]


def _unreadable(panel: dict[str, Any]) -> Iterator[str]:
    if panel["type"] not in _PANELS:
        yield f"type {panel['type']}"
    # 38 and later have cellOptions, 36 has displayMode: without either a table's cells look alike in all
    if {"cellOptions", "displayMode"} & set(panel.get("fieldConfig", {}).get("defaults", {}).get("custom", {})):
        yield "cells look differently in old and new Grafanas"
    for settings in _settings(panel):
        mode = settings.get("color", {}).get("mode", "fixed")
        if mode not in _COLOUR_MODES:
            yield f"colour mode {mode}"
    options = panel.get("options", {})
    calcs = [*options.get("legend", {}).get("calcs", ()), *options.get("reduceOptions", {}).get("calcs", ())]
    if set(calcs) - _REDUCERS:
        yield f"reducers {calcs}"
    for each in panel.get("transformations", ()):
        if each["id"] not in _TRANSFORMATIONS or set(each["options"]) - _TRANSFORMATIONS[each["id"]]:
            yield f"transformation {each['id']}, which differs from one Grafana to another"


def defects(boards: dict[str, Board]) -> set[str]:
    """Which of the defects the boards have."""
    found = set()
    for board in boards.values():
        found |= set(_of_board(board))
        for panel in board["panels"]:
            if panel["type"] != "row":
                found |= set(_of_panel(panel))
    return found


def _of_board(board: Board) -> Iterator[str]:
    ids = [variable.get("id") for variable in board["templating"]["list"]]
    if len(set(ids)) < len(ids) or None in ids:
        yield "variables share an id"
    if _seconds(board["refresh"]) < 5:
        yield "asks more often than a busy machine answers"
    schemes = [panel for panel in board["panels"] if "scheme" in _asked(panel) and panel["type"] == "state-timeline"]
    for panel in schemes:
        mappings = panel["fieldConfig"]["defaults"]["mappings"]
        colours = [
            next(_colours(mappings, name), None) for name in ("none", "slacp", "arq", "snoop", "split", "x", "q-2")
        ]
        if None in colours or len(set(colours[:5])) < 5:
            yield "a scheme has no label or colour"


def _colours(mappings: list[dict[str, Any]], name: str) -> Iterator[str | None]:
    """The colours that a panel's rules give a name, the first of which holds; its own text is shown."""
    for mapping in mappings:
        if mapping["type"] == "regex" and re.search(mapping["options"]["pattern"].strip("/"), name):
            result = mapping["options"]["result"]
            yield result.get("color") if result.get("text") == "$1" else None


def _of_panel(panel: dict[str, Any]) -> Iterator[str]:
    kind, asked, defaults = panel["type"], _asked(panel), panel["fieldConfig"]["defaults"]
    if re.search(r"(derivative|difference)\((last|mean|max)\(", asked):
        yield "a rate sags at the right edge"
    if kind not in ("state-timeline", "table") and defaults.get("unit", "short") in _BAD_UNITS:
        yield "a unit is scaled or says nothing"
    if kind in ("stat", "bargauge") and defaults.get("decimals") is None:
        yield "a figure has as many decimals as it likes"
    if kind == "timeseries" and any("decimals" in settings for settings in _settings(panel)):
        yield "the steps of an axis look alike"
    if kind == "state-timeline":
        yield from _of_states(panel)
    texts = [
        result.get("text")
        for mapping in defaults.get("mappings", ())
        for result in (mapping["options"].values() if mapping["type"] == "value" else ())
    ]
    if _DIRECTIONS & set(texts):
        yield "a state is called like a direction"
    if kind == "state-timeline" and "fill(none)" in asked:
        yield "bars do not end with the run"
    if kind == "stat" and not _missing_is_grey(defaults):
        yield "a missing value looks like a bad one"
    if kind == "timeseries" and not (_legend_fits(panel) and _directions_are_apart(panel)):
        yield "legends hide rows or directions look alike"
    if kind == "stat" and not (_seconds(panel.get("timeFrom") or "0s") >= 1 and "GROUP BY time" not in asked):
        yield "a figure of the moment is not a mean of a second"
    for share in re.findall(r'"part" / "whole".*', asked):
        least = re.search(r'"whole" >=? (\d+)', share)
        if least is None or int(least[1]) < 10:
            yield "a share of few packets flattens the scale"


def _of_states(panel: dict[str, Any]) -> Iterator[str]:
    """Grafana 9.4 cuts off a text at the left edge; names are no errors; equal states have equal colours."""
    defaults = panel["fieldConfig"]["defaults"]
    if panel["options"]["alignValue"] != "center":
        yield "a state's text is cut off"
    if defaults["color"]["mode"] != "fixed":
        yield "equal states differ in their colour"
    results = [each["options"]["result"] for each in defaults["mappings"] if each["type"] == "regex"]
    if any("red" in result["color"] for result in results):
        yield "a name looks like an error"
    if len({result["color"] for result in results}) < len(results):
        yield "two kinds of names look alike"


def _missing_is_grey(defaults: dict[str, Any]) -> bool:
    special = [mapping for mapping in defaults.get("mappings", ()) if mapping["type"] == "special"]
    said = any(mapping["options"]["match"] == "null+nan" for mapping in special)
    if defaults.get("color", {}).get("mode") == "thresholds":
        return said and defaults["thresholds"]["steps"][0]["color"] in (*_GREYS, "green")
    return said


def _legend_fits(panel: dict[str, Any]) -> bool:
    legend = panel["options"]["legend"]
    room = panel["gridPos"]["h"] * _GRID - _HEAD
    if legend["placement"] != "right":
        # a third of the panel at the most
        room //= 3
    # a head, and up to two series of each query
    return (2 * len(panel["targets"]) + 1) * _LEGEND <= room


def _directions_are_apart(panel: dict[str, Any]) -> bool:
    if not any('"link"' in target["query"] and '"flow"' not in target["query"] for target in panel["targets"]):
        return True
    directions = set(re.findall(r"\"link\" = '(\w+)'", _asked(panel)))
    return len(directions) == 1 and panel["title"].endswith(f", {directions.pop()}")


def _settings(panel: dict[str, Any]) -> Iterator[dict[str, Any]]:
    config = panel.get("fieldConfig", {"defaults": {}, "overrides": []})
    yield config["defaults"]
    for override in config["overrides"]:
        yield {setting["id"]: setting["value"] for setting in override["properties"]}


def _asked(panel: dict[str, Any]) -> str:
    return "\n".join(target["query"] for target in panel.get("targets", ()))


def _seconds(text: str) -> float:
    number, unit = re.fullmatch(r"(\d+)(ms|s|m)", text).groups()  # type: ignore[union-attr]
    return int(number) * {"ms": 1e-3, "s": 1, "m": 60}[unit]
