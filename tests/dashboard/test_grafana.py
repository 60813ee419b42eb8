"""Grafana's boards without Grafana: the files are current and sound, and every query finds data in a real InfluxDB."""

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboard.grafana_boards.__main__ import FOLDER, files, write
from dashboard.grafana_boards.influxql import DATASOURCE
from dashboard.grafana_boards.provisioning import BOARDS as BOARDS_FOLDER
from dashboard.grafana_boards.provisioning import DATABASE
from telemetry.influx import Influx
from telemetry.records import RECORD_TYPES, ControlRecord, FlowRecord, LinkRecord, PhyRecord, Record, TcpRecord
from tests.dashboard.grafana import BOARDS, SECOND, Filled, database, keep, targets

ROOT = Path(__file__).parents[2]

PANELS = [
    pytest.param(name, panel, id=f"{name}: {panel['title']} ({panel['id']})")
    for name, board in BOARDS.items()
    for panel in board["panels"]
]
#: of the hand-made runs
EPOCH_NS = 1_790_000_000 * SECOND


# -- the files -----------------------------------------------------------------------------------------------


def test_the_files_are_what_the_program_writes(tmp_path: Path) -> None:
    write(tmp_path)
    written = {path.relative_to(tmp_path): path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    committed = {path.relative_to(FOLDER): path.read_text() for path in FOLDER.rglob("*") if path.is_file()}
    assert written == committed, "run python -m dashboard.grafana_boards"


def test_the_data_source_is_the_one_the_boards_ask() -> None:
    [source] = yaml.safe_load(files()["provisioning/datasources/fadelab.yaml"])["datasources"]
    assert (source["uid"], source["type"], source["url"]) == (DATASOURCE, "influxdb", "$INFLUX_URL")
    assert source["jsonData"]["dbName"] == DATABASE == Influx("http://127.0.0.1:1").database
    for board in BOARDS.values():
        asking = [*board["panels"], *board["templating"]["list"], *targets(board)]
        assert {(asks["datasource"]["type"], asks["datasource"]["uid"]) for asks in asking} == {
            ("influxdb", DATASOURCE)
        }


def test_every_variable_of_the_environment_is_documented() -> None:
    provisioning = "".join(text for name, text in files().items() if name.endswith(".yaml"))
    document = (ROOT / "docs" / "grafana.md").read_text()
    names = re.findall(r"\$([A-Z_]+)", provisioning)
    assert set(names) == {"INFLUX_URL", "INFLUX_AUTHORIZATION"}
    for name in names:
        assert f"`{name}`" in document


def test_the_compose_file_gives_grafana_what_the_files_ask_for() -> None:
    grafana = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["grafana"]
    assert grafana["environment"]["INFLUX_URL"].startswith("http://influxdb:")
    # Grafana looks every 5 s at the most unless it is told
    assert grafana["environment"]["GF_DASHBOARDS_MIN_REFRESH_INTERVAL"] == "1s"
    mounts = dict(volume.split(":")[:2] for volume in grafana["volumes"])
    assert mounts["./dashboard/grafana/provisioning"] == "/etc/grafana/provisioning"
    assert mounts["./dashboard/grafana/boards"] == BOARDS_FOLDER
    [provider] = yaml.safe_load(files()["provisioning/dashboards/fadelab.yaml"])["providers"]
    assert provider["options"]["path"] == BOARDS_FOLDER


@pytest.mark.parametrize("name", BOARDS)
def test_a_board_is_full_and_live(name: str) -> None:
    board = BOARDS[name]
    assert board["uid"] == f"fadelab-{name}"
    assert (board["refresh"], board["time"]) == ("1s", {"from": "now-5m", "to": "now"})
    [link] = board["links"]
    assert (link["tags"], link["includeVars"], link["keepTime"]) == (board["tags"], True, True)
    places = set()
    for panel in board["panels"]:
        assert panel["description"]
        where = panel["gridPos"]
        cells = {(x + where["x"], y + where["y"]) for x in range(where["w"]) for y in range(where["h"])}
        assert not cells & places, "panels overlap"
        places |= cells
    height = max(y for _, y in places) + 1
    assert places == {(x, y) for x in range(24) for y in range(height)}, "there are gaps between panels"
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def test_every_figure_of_the_records_is_on_a_board() -> None:
    queries = "".join(target["query"] for board in BOARDS.values() for target in targets(board))
    missing = {
        f"{kind.measurement}.{field.name}"
        for kind in RECORD_TYPES
        for field in fields(kind)
        if field.name not in ("time_ns", *kind.tags) and f'"{field.name}"' not in queries
    }
    # goodput is its rate
    assert missing == {"flow.bytes_received"}


# -- a database with runs in it ------------------------------------------------------------------------------


def run_records(flow: str) -> Iterator[Record]:
    """Six seconds of a run in which everything happens."""
    for tick in range(1, 61):
        at = tick * SECOND // 10
        for host, far in (("h1", "h2"), ("h2", "h1")):
            yield TcpRecord(at, host, flow, 3000 * tick, 40_000, 52.5, 260.0, 20_000 * tick, tick // 5, tick // 20)
            yield FlowRecord(at, far, flow, 20_000 * tick, 1.6e6)
        for link in ("up", "down"):
            yield LinkRecord(
                time_ns=at,
                link=link,
                scheme="slacp" if tick < 40 else "none",
                established=tick > 3,
                throughput_bps=2e6,
                goodput_bps=1.7e6,
                packets=18 * tick,
                frames=20 * tick,
                retransmissions=tick,
                fec_frames=tick,
                fec_repairs=tick // 2,
                residual_losses=tick // 9,
                eln_marks=tick // 9,
                queue_bytes=5000 + tick,
                congestion_losses=tick // 10,
                corruption_losses=tick,
            )
            yield PhyRecord(at, link, 17.5 + tick % 3, -16.0, 120.0, 0.05)
    yield ControlRecord(2 * SECOND, "snr_db", "12.5")


@pytest.fixture(scope="module")
def influx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Influx]:
    with database(tmp_path_factory.mktemp("influxdb")) as influx:
        yield influx


@pytest.fixture(scope="module")
def filled(influx: Influx, tmp_path_factory: pytest.TempPathFactory) -> Filled:
    """A finished run, and others at the same time whose names are like its own."""
    spool = tmp_path_factory.mktemp("spool")
    made = keep(influx, "20260921-a.b-s1", EPOCH_NS, run_records("bulk"), spool)
    for run in ("20260921-a.b-s12", "20260921-aXb-s1"):
        keep(influx, run, EPOCH_NS, run_records("elsewhere"), spool)
    return made


# -- the queries ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "panel"), PANELS)
def test_a_panel_has_data(name: str, panel: dict[str, Any], filled: Filled) -> None:
    names = []
    for target in panel["targets"]:
        found = filled.rows(target["query"], BOARDS[name], panel["interval"])
        for tags, values in found:
            assert values
            assert None not in values
            names.append(named(target["alias"], tags))
        # two hosts send, and both directions are used; a sum has no tags
        assert len(found) == (2 if "$tag_" in target["alias"] else 1), target["query"]
    assert not any("elsewhere" in series for series in names), "another run's figures are shown"
    if panel["type"] == "timeseries":
        assert [colours(panel, series) for series in names] == [1] * len(names)


def named(alias: str, tags: dict[str, str]) -> str:
    """What Grafana calls a series."""
    return re.sub(r"\$tag_(\w+)", lambda match: tags[match[1]], alias)


def colours(panel: dict[str, Any], series: str) -> int:
    """By how many of the panel's overrides a series gets its colour."""
    return sum(
        re.search(override["matcher"]["options"].strip("/"), series) is not None
        for override in panel["fieldConfig"]["overrides"]
        if any(setting["id"] == "color" for setting in override["properties"])
    )


@pytest.mark.parametrize("name", BOARDS)
def test_annotations_have_data_in_the_columns_they_show(name: str, filled: Filled) -> None:
    board = BOARDS[name]
    marks = {}
    for annotation in board["annotations"]["list"]:
        target = annotation["target"]
        answer = filled.influx.query(filled.interpolate(target["query"], filled.variables(board)))
        marks[annotation["name"]] = [
            (row[series.columns.index(target["textColumn"])], row[series.columns.index(target["tagsColumn"])])
            for series in answer
            for row in series.values
        ]
    assert marks["Controls"] == [("12.5", "snr_db")]
    # two senders, each with three
    assert marks["TCP timeouts"] == [(1, "bulk")] * 6


def test_every_name_in_a_query_is_in_the_database(filled: Filled) -> None:
    known = {"part", "whole", "one", "rise"}
    for record in RECORD_TYPES:
        known |= {record.measurement, "run", *record.tags}
    for series in filled.influx.query("SHOW FIELD KEYS"):
        known |= {row[0] for row in series.values}
    for board in BOARDS.values():
        for target in targets(board):
            assert set(re.findall(r'"(\w+)"', target["query"])) <= known, target["query"]


def test_figures_are_those_of_the_records(filled: Filled) -> None:
    board = BOARDS["overview"]
    by_title = {panel["title"]: panel["targets"] for panel in board["panels"]}

    def values(title: str, number: int = 0) -> list[Any]:
        return [value for _, found in filled.rows(by_title[title][number]["query"], board) for value in found]

    # both flows of the run, of 1.6 Mbit/s each
    assert set(values("Goodput")) == {3.2e6}
    assert values("Losses before and after the link layer") == pytest.approx([1 / 20] * 12)
    assert 0 < sum(values("Losses before and after the link layer", 1)) / 12 < 0.01
    [cwnd, _] = [found for _, found in filled.rows(by_title["Congestion window"][0]["query"], board)]
    assert cwnd == sorted(cwnd)
    assert cwnd[-1] == 3000 * 60
    [sent] = [panel for panel in BOARDS["link"]["panels"] if panel["title"] == "What is sent"]
    for _, packets in filled.rows(sent["targets"][0]["query"], BOARDS["link"]):
        # 18 in each tenth of a second; the last interval is not a whole one
        assert packets[:-1] == pytest.approx([180] * len(packets[:-1]))


def test_a_share_has_no_value_while_nothing_is_sent(influx: Influx, tmp_path: Path) -> None:
    idle = (
        LinkRecord(tick * SECOND, "up", "slacp", True, 0.0, 0.0, 5, 5, 0, 0, 0, 0, 0, 0, 0, 1) for tick in range(1, 6)
    )
    quiet = keep(influx, "idle", 1_790_001_000 * SECOND, idle, tmp_path)
    [panel] = [panel for panel in BOARDS["overview"]["panels"] if panel["title"] == "Lost before the link layer"]
    query = quiet.interpolate(panel["targets"][0]["query"], {"run": ["idle"], "link": ["up"]})
    assert influx.query(query) == []
