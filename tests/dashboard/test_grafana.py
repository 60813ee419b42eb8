"""Grafana's boards without Grafana: the files are current and sound."""

import re
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from dashboard.charts import ALL
from dashboard.grafana_boards.boards import files, make
from dashboard.grafana_boards.frame import NEWEST_SCHEMA, OLDEST_SCHEMA
from dashboard.grafana_boards.influxql import DATASOURCE
from dashboard.grafana_boards.provisioning import BOARDS as BOARDS_FOLDER
from dashboard.grafana_boards.provisioning import DATABASE
from telemetry.influx import Influx
from telemetry.records import (
    RECORD_TYPES,
)
from tests.harness.grafana import BOARDS, FROM_ZERO, OF_RUN_BOARDS, asking, panel_of, targets
from tests.harness.grafana_defects import SCHEMAS, defects, unreadable

ROOT = Path(__file__).parents[2]

#: what InfluxQL of 1.6, 2 and 3 have in common of functions (InfluxData's references of InfluxQL)
FUNCTIONS = {
    "count",
    "cumulative_sum",
    "difference",
    "elapsed",
    "last",
    "max",
    "mean",
    "min",
    "non_negative_difference",
    "percentile",
    "sum",
}


# -- the files -----------------------------------------------------------------------------------------------


def test_the_data_source_is_the_one_the_boards_ask() -> None:
    [source] = yaml.safe_load(files()["provisioning/datasources/fadelab.yaml"])["datasources"]
    assert (source["uid"], source["type"], source["url"]) == (DATASOURCE, "influxdb", "$INFLUX_URL")
    assert source["jsonData"]["dbName"] == DATABASE == Influx("http://127.0.0.1:1").database
    for board in BOARDS.values():
        all_of_it = [*asking(board), *board["templating"]["list"], *targets(board)]
        assert {(asks["datasource"]["type"], asks["datasource"]["uid"]) for asks in all_of_it} == {
            ("influxdb", DATASOURCE)
        }


def test_every_variable_of_the_environment_is_documented() -> None:
    provisioning = "".join(text for name, text in files().items() if name.endswith(".yaml"))
    document = (ROOT / "docs" / "grafana.md").read_text()
    names = re.findall(r"\$([A-Z_]+)", provisioning)
    assert set(names) == {"INFLUX_URL", "INFLUX_AUTHORIZATION"}
    # a table is one where head, rule and rows follow each other, with as many cells
    table = re.search(r"((?:^ +\|.*\|\n)+)", document, re.MULTILINE)
    assert table is not None
    head, rule, *rows = (line.strip(" |\n").split("|") for line in table[1].splitlines())
    assert {cell.strip("- ") for cell in rule} == {""}
    assert {len(row) for row in (head, rule, *rows)} == {2}
    assert {row[0].strip() for row in rows} == {f"`{name}`" for name in names}


def test_the_compose_file_gives_grafana_what_the_files_ask_for() -> None:
    grafana = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["grafana"]
    assert grafana["environment"]["INFLUX_URL"].startswith("http://influxdb:")
    # unless it is told otherwise, Grafana looks every 5 s at the most
    assert "GF_DASHBOARDS_MIN_REFRESH_INTERVAL" not in grafana["environment"]
    mounts = dict(volume.split(":")[:2] for volume in grafana["volumes"])
    assert mounts["./dashboard/grafana/provisioning"] == "/etc/grafana/provisioning"
    assert mounts["./dashboard/grafana/boards"] == BOARDS_FOLDER
    [provider] = yaml.safe_load(files()["provisioning/dashboards/fadelab.yaml"])["providers"]
    assert provider["options"]["path"] == BOARDS_FOLDER


@pytest.mark.parametrize("name", BOARDS)
def test_a_board_has_headings_and_no_panels_over_each_other(name: str) -> None:
    board = BOARDS[name]
    assert board["uid"] == f"fadelab-{name}"
    link, *newest = board["links"]
    assert (link["tags"], link["includeVars"], link["keepTime"]) == (board["tags"], True, True)
    # without a run and with a time that goes on; Grafana takes the first of the variable's values, sorted from the last
    of_one = name not in ("runs", "several")
    assert [each["url"] for each in newest] == ([f"/d/fadelab-{name}?from=now-5m&to=now"] if of_one else [])
    for variable in board["templating"]["list"]:
        if variable["name"] in ("run", "runs", "campaign"):
            assert (variable["sort"], variable["current"]) == (2, {})
    places: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        assert panel["title"]
        assert panel["type"] == "row" or panel["description"]
        where = panel["gridPos"]
        cells = {(x + where["x"], y + where["y"]) for x in range(where["w"]) for y in range(where["h"])}
        assert not cells & places, "panels overlap"
        assert max(x for x, _ in cells) < 24
        places |= cells
    assert board["panels"][0]["type"] == "row"
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    assert len({panel["title"] for panel in asking(board)}) == len(asking(board))


@pytest.mark.parametrize("name", BOARDS)
def test_a_board_is_read_by_the_oldest_and_the_newest_grafana(name: str) -> None:
    assert unreadable(BOARDS[name]) == []
    # the newest brings it up to its own schema
    assert BOARDS[name]["schemaVersion"] == SCHEMAS["9.4"]


def test_boards_for_the_oldest_and_the_newest_grafana_differ_in_the_schemas_number_only() -> None:
    assert (SCHEMAS["9.4"], SCHEMAS["12.0"]) == (OLDEST_SCHEMA, NEWEST_SCHEMA)
    oldest, newest = make(OLDEST_SCHEMA), make(NEWEST_SCHEMA)
    assert {board.pop("schemaVersion") for board in oldest.values()} == {OLDEST_SCHEMA}
    assert {board.pop("schemaVersion") for board in newest.values()} == {NEWEST_SCHEMA}
    assert oldest == newest
    document = (ROOT / "docs" / "grafana.md").read_text()
    assert "9.4 to 12" in document


def test_the_boards_have_no_defect() -> None:
    assert defects(BOARDS) == set()


def test_the_colours_of_a_panels_lines_are_apart() -> None:
    """Grafana's hues by name: shades of one hue are hard to tell, in lines of a pixel's width."""
    for board in BOARDS.values():
        for panel in asking(board):
            if panel["type"] != "timeseries":
                continue
            hues: dict[str, set[str]] = {}
            for override in panel["fieldConfig"]["overrides"]:
                colours = [each["value"] for each in override["properties"] if each["id"] == "color"]
                for colour in colours:
                    name = override["matcher"]["options"].removesuffix(", overall")
                    hues.setdefault(colour["fixedColor"].split("-")[-1], set()).add(name)
            bounds = {"low", "high"}
            assert [names for names in hues.values() if len(names - bounds) > 1] == [], panel["title"]


def test_queries_keep_to_what_all_databases_have() -> None:
    for board in BOARDS.values():
        for target in targets(board):
            assert set(re.findall(r"(\w+)\(", target["query"])) - {"time", "fill", "AND", "FROM"} <= FUNCTIONS


def test_every_chart_is_on_a_board() -> None:
    titles = {panel["title"].split(", ")[0] for name in OF_RUN_BOARDS for panel in asking(BOARDS[name])}
    assert {chart.title.split(", ")[0] for chart in ALL.values()} <= titles


def test_every_figure_of_the_records_is_on_a_board() -> None:
    queries = "".join(target["query"] for board in BOARDS.values() for target in targets(board))
    missing = {
        f"{kind.measurement}.{field.name}"
        for kind in RECORD_TYPES
        for field in fields(kind)
        if field.name not in ("time_ns", *kind.tags) and f'"{field.name}"' not in queries
    }
    # an event says it in words; only QUIC tells the other one
    assert missing == {"control.value", "tcp.in_flight_bytes"}


def test_a_figure_keeps_its_name_and_a_past_range_its_time() -> None:
    stats = [panel for board in BOARDS.values() for panel in asking(board) if panel["type"] == "stat"]
    assert len(stats) == 6
    for panel in stats:
        assert panel["options"]["textMode"] == "value_and_name"
        assert "timeShift" not in panel
    headings = [panel["title"] for board in BOARDS.values() for panel in board["panels"]]
    assert [title for title in headings if re.search(r"\b[Nn]ow\b", title)] == []


def test_sent_packets_are_called_sent() -> None:
    panel = panel_of("link", "Packets sent, refused and marked, up")
    assert [target["alias"] for target in panel["targets"]] == ["sent", "congestion", "ELN marks"]


def test_a_panel_from_zero_names_its_columns_as_both_grafanas_look_for_them() -> None:
    for panel in FROM_ZERO:
        options, overrides = panel["options"], panel["fieldConfig"]["overrides"]
        # the newer one makes its own options of these, as there is no version of the panel's
        assert (options["seriesMapping"], "pluginVersion" in panel) == ("manual", False)
        for number, (letter, series) in enumerate(zip("AB", options["series"], strict=True)):
            target = panel["targets"][number]
            assert series["frame"] == number
            assert re.findall(r' AS "([^"]+ [^"]+)"', target["query"]) == [series["x"], series["y"]]
            assert (target["resultFormat"], target["alias"]) == ("table", "")
            asked = {"A": "${run:regex}", "B": "${other:regex}"}
            assert [name for name, run in asked.items() if run in target["query"]] == [letter]
            named = [each for each in overrides if each["matcher"]["options"] == series["y"]]
            [[colour]] = [each["properties"] for each in named]
            assert (
                colour["value"]["fixedColor"] == series["pointColor"]["fixed"] == {"A": "blue", "B": "orange"}[letter]
            )


def test_each_of_two_runs_has_one_colour_and_its_own_marks() -> None:
    board = BOARDS["compare"]
    for panel in asking(board):
        if panel["type"] not in ("bargauge", "timeseries"):
            continue
        colours = {
            override["matcher"]["options"]: setting["value"]["fixedColor"]
            for override in panel["fieldConfig"]["overrides"]
            for setting in override["properties"]
            if setting["id"] == "color"
        }
        for target in panel["targets"]:
            fitting = [colour for rule, colour in colours.items() if re.search(rule.strip("/"), target["alias"])]
            assert fitting == [{"A": "blue", "B": "orange"}[target["alias"][0]]], target["alias"]
            asked = {"A": "${run:regex}", "B": "${other:regex}"}
            assert [letter for letter, run in asked.items() if run in target["query"]] == [target["alias"][0]]
    marks = {mark["name"]: mark["target"]["query"] for mark in board["annotations"]["list"]}
    for name, query in marks.items():
        assert ("${run:regex}" in query, "${other:regex}" in query) == (not name.endswith("B"), name.endswith("B"))
    assert {name[-1] for name in marks} == {"A", "B"}
