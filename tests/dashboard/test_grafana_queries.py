"""What the panels of Grafana's boards compute, in a real InfluxDB with hand-made runs."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from telemetry.influx import Influx
from telemetry.records import (
    DATABASE_TYPES,
    AccessRecord,
    BeliefRecord,
    ControlRecord,
    FlowRecord,
    LinkRecord,
    PhyRecord,
    Record,
    StationRecord,
    TcpRecord,
)
from tests.harness.grafana import (
    BOARDS,
    FROM_ZERO,
    OF_RUN_BOARDS,
    SECOND,
    Filled,
    asking,
    database,
    keep,
    keep_campaign,
    panel_of,
    targets,
)
from tests.harness.records import recorded

PANELS = [
    pytest.param(name, panel, id=f"{name}: {panel['title']} ({panel['id']})")
    for name, board in BOARDS.items()
    for panel in asking(board)
]
#: of the hand-made runs
EPOCH_NS = 1_790_000_000 * SECOND
RUN = "20260921-a.b-s1"


# -- a database with runs in it ------------------------------------------------------------------------------


#: of the link's counters: growth in a tick of 100 ms, and ticks between two counts
PER_TICK = {"packets": 18, "frames": 20, "retransmissions": 1, "fec_frames": 1, "corruption_losses": 1}
TICKS = {"fec_repairs": 2, "residual_losses": 9, "eln_marks": 9, "congestion_losses": 10}
#: figures that stay
TCP = {"ssthresh_bytes": 40_000, "srtt_ms": 52.5, "rto_ms": 260.0}
PHY = {"evm_db": -16.0, "cfo_hz": 120.0, "per": 0.05, "mode": "qpsk"}
PHY |= {"rssi_dbfs": -18.0, "rx_gain_db": 40.0, "overflows": 2}
ACCESS = {"bursts": 8, "deferrals": 7, "backoff_ms": 9.5, "airtime_ms": 60.5, "collisions_heard": 1, "collisions": 2}
BELIEFS = {"packets": 18, "rounds": 20, "frames": 24, "settled": 18, "delivered": 17, "in_time": 16, "missed": 1}
BOUNDS = {
    "loss": 0.05,
    "loss_low": 0.02,
    "loss_high": 0.09,
    "burst_correlation": 0.1,
    "rounds_planned": 3,
    "budget_ms": 180.5,
}
STATION = {"processor_percent": 41.5, "memory_bytes": 88_000_000, "late_events": 1}


def run_records(flow: str) -> Iterator[Record]:
    """Six seconds of a run in which everything happens."""
    for tick in range(1, 61):
        at, nbytes = tick * SECOND // 10, 20_000 * tick
        for host, far in (("h1", "h2"), ("h2", "h1")):
            grown = {"cwnd_bytes": 3000 * tick, "bytes_acked": nbytes, "retransmits": tick // 5, "timeouts": tick // 20}
            yield recorded(TcpRecord, time_ns=at, host=host, flow=flow, **TCP, **grown)
            yield recorded(FlowRecord, time_ns=at, host=far, flow=flow, bytes_received=nbytes, goodput_bps=1.6e6)
        for link in ("up", "down"):
            yield recorded(
                LinkRecord,
                time_ns=at,
                link=link,
                scheme="slacp" if tick < 40 else "none",
                established=tick > 3,
                throughput_bps=2e6,
                goodput_bps=1.7e6,
                queue_bytes=5000 + tick,
                **{name: growth * tick for name, growth in PER_TICK.items()},
                **{name: tick // ticks for name, ticks in TICKS.items()},
            )
            grown = {name: growth * tick for name, growth in BELIEFS.items()}
            yield recorded(BeliefRecord, time_ns=at, link=link, **BOUNDS, **grown)
            yield recorded(PhyRecord, time_ns=at, link=link, snr_db=17.5 + tick % 3, **PHY)
            accesses = {name: growth * tick for name, growth in ACCESS.items()}
            yield recorded(AccessRecord, time_ns=at, link=link, lag_ms=0.3, **accesses)
        for station in ("st", "bas"):
            yield recorded(StationRecord, time_ns=at, station=station, **STATION)
    yield recorded(ControlRecord, time_ns=2 * SECOND, name="snr_db", value="12.5")
    yield recorded(ControlRecord, time_ns=3 * SECOND, name="scheme", value='"none"')


@pytest.fixture(scope="module")
def influx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Influx]:
    with database(tmp_path_factory.mktemp("influxdb")) as influx:
        yield influx


@pytest.fixture(scope="module")
def filled(influx: Influx, tmp_path_factory: pytest.TempPathFactory) -> Filled:
    """A finished run, and others at the same time whose names are like its own."""
    spool = tmp_path_factory.mktemp("spool")
    made = keep(influx, RUN, EPOCH_NS, run_records("bulk"), spool)
    for run in ("20260921-a.b-s12", "20260921-aXb-s1"):
        keep(influx, run, EPOCH_NS, run_records("elsewhere"), spool)
    keep_campaign(influx, "campaign", EPOCH_NS, spool)
    return made


# -- the queries ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "panel"), PANELS)
def test_a_panel_has_data(name: str, panel: dict[str, Any], filled: Filled) -> None:
    board = BOARDS[name]
    names = []
    for target in panel["targets"]:
        asked = target["query"]
        found = filled.rows(asked, board, panel["interval"])
        assert found, asked
        names += [named(target["alias"], tags) for tags, _ in found]
        if panel["type"] == "state-timeline" or "$tag_link" in target["alias"]:
            assert sorted(tags["link"] for tags, _ in found) == ["down", "up"]
    assert not any("elsewhere" in series for series in names), "another run's figures are shown"
    if panel["type"] == "timeseries" and panel["title"].endswith((", up", ", down")):
        assert [colours(panel, series) for series in names] == [1 if name != "compare" else 0] * len(names)


def named(alias: str, tags: dict[str, str]) -> str:
    return re.sub(r"\$tag_(\w+)", lambda match: tags[match[1]], alias)


def colours(panel: dict[str, Any], series: str) -> int:
    """By how many of the panel's overrides a series gets its colour."""
    return sum(
        override["matcher"]["options"] == series
        for override in panel["fieldConfig"]["overrides"]
        if any(setting["id"] == "color" for setting in override["properties"])
    )


@pytest.mark.parametrize("name", [name for name, board in BOARDS.items() if board["annotations"]["list"]])
def test_annotations_say_what_happened(name: str, filled: Filled) -> None:
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
    for behind in (" of A", " of B") if name == "compare" else ("",):
        assert marks[f"Controls{behind}"] == [("snr_db: 12.5", "snr_db"), ("scheme: none", "scheme")]
        assert marks[f"TCP timeouts{behind}"] == [("timeout", "bulk")] * 6
        assert marks[f"Begin{behind}"] == [("slacp", RUN)]
        assert marks[f"Newest record{behind}"] == [("none", RUN)]


def test_every_name_in_a_query_is_in_the_database(filled: Filled) -> None:
    known = {
        "part",
        "whole",
        "one",
        "span",
        "most",
        "share",
        "goodput",
        "total",
        "rate",
        "at",
        "duration",
        "progress",
        "settings",
    }
    for record in DATABASE_TYPES:
        known |= {record.measurement, "run", "tier", "scenario", "campaign", *record.tags}
    for series in filled.influx.query("SHOW FIELD KEYS"):
        known |= {row[0] for row in series.values}
    for board in BOARDS.values():
        for target in targets(board):
            assert set(re.findall(r'"(\w+)"', target["query"])) <= known, target["query"]


def table_rows(
    run: Filled, panel: dict[str, Any], chosen: dict[str, list[str]], time_ms: tuple[int, int]
) -> list[dict[str, Any]]:
    """The rows of a table, by the names of its columns."""
    answer = run.influx.query(run.interpolate(panel["targets"][0]["query"], chosen, time_ms=time_ms))
    return [dict(zip(series.columns, row, strict=True)) for series in answer for row in series.values]


def query_of(board: str, title: str, number: int = 0) -> str:
    return str(panel_of(board, title)["targets"][number]["query"])


def known(found: list[tuple[dict[str, str], list[Any]]]) -> list[list[Any]]:
    return [[value for value in values if value is not None] for _, values in found]


def test_figures_are_those_of_the_records(filled: Filled) -> None:
    def values(board: str, title: str, number: int = 0) -> list[list[Any]]:
        return known(filled.rows(query_of(board, title, number), BOARDS[board]))

    # both flows of the run, of 1.6 Mbit/s each
    assert values("overview", "Goodput of all flows") == [[pytest.approx(3.2)]]
    [before] = values("overview", "Errors before and after repair, up", 0)
    assert before == pytest.approx([5] * len(before))
    assert len(before) >= 5
    [after] = values("overview", "Errors before and after repair, up", 1)
    assert 0 < sum(after) / len(after) < 1
    for cwnd in values("overview", "Congestion window"):
        assert cwnd == sorted(cwnd)
        assert cwnd[-1] <= 3 * 60
    for number, ratio in enumerate((24 / 17, 20 / 18, 3)):
        [found] = values("link", "Frames and rounds, up", number)
        assert found == pytest.approx([ratio] * len(found))
    [met] = values("link", "Budget met, down")
    assert met == pytest.approx([100 * 16 / 18] * len(met))
    assert [values("link", "Believed loss, up", number)[0][0] for number in range(3)] == pytest.approx([5, 2, 9])
    assert values("radio", "Memory") == [[88.0] * 7] * 2
    [modes] = {tuple(values) for values in values("radio", "Mode")}
    assert set(modes) == {"qpsk"}


@pytest.mark.parametrize("now_ms", range(3000, 5000, 130))
def test_a_rate_shown_live_is_that_of_the_records(now_ms: int, filled: Filled) -> None:
    live = filled.from_ms, filled.from_ms + now_ms
    for title, number, per_s in [
        ("Packets sent, refused and marked, up", 0, 180),
        ("Frames sent, down", 0, 200),
        ("Frames sent, down", 1, 10),
    ]:
        [values] = known(filled.rows(query_of("link", title, number), BOARDS["link"], "1s", live))
        assert values[-1] == pytest.approx(per_s, rel=0.05), (title, number)
    headline = panel_of("overview", "Goodput of all flows")
    # Grafana would shift a fixed time range, too, and leave out its last second
    assert (headline["timeFrom"], headline.get("timeShift")) == ("3s", None)
    [[goodput]] = known(
        filled.rows(headline["targets"][0]["query"], BOARDS["overview"], "1s", (live[1] - 3000, live[1]))
    )
    assert goodput == pytest.approx(3.2, rel=0.05)


def test_no_rate_is_more_than_the_link_can_carry(influx: Influx, tmp_path: Path) -> None:
    """The last record of a run comes 1.3 ms after the one before, with a packet in between: 9 Mbit/s."""

    def records() -> Iterator[Record]:
        for tick in range(1, 62):
            at, more = (tick * SECOND // 10, 0) if tick < 61 else (6 * SECOND + 1_300_000, 1448)
            ticks = min(tick, 60)
            counts = {"packets": 18 * ticks + (more > 0), "frames": 20 * ticks + (more > 0)}
            bps = 9e6 if more else 2e6
            for link in ("up", "down"):
                yield recorded(LinkRecord, time_ns=at, link=link, throughput_bps=bps, goodput_bps=0.8 * bps, **counts)
            acked = {"bytes_acked": 20_000 * ticks + more, "retransmits": ticks + (more > 0)}
            yield recorded(TcpRecord, time_ns=at, host="h1", flow="bulk", **acked)
            yield recorded(FlowRecord, time_ns=at, host="h2", flow="bulk", bytes_received=acked["bytes_acked"])

    last = keep(influx, "last", 1_790_004_000 * SECOND, records(), tmp_path)
    chosen = {"run": ["last"], "flow": ["bulk"]}
    rates = {
        ("tcp", "Goodput", 0): 1.6,
        ("tcp", "Acknowledged", 0): 1.6,
        ("tcp", "Retransmitted by TCP", 0): 10,
        ("link", "Throughput, up", 0): 2,
        ("link", "Goodput of the link, down", 0): 1.6,
        ("link", "Frames sent, up", 0): 200,
        ("link", "Packets sent, refused and marked, down", 0): 180,
    }
    for (board, title, number), rate in rates.items():
        query = query_of(board, title, number)
        for interval in ("1s", "2s"):
            [found] = known(
                [
                    ({}, [row[1] for row in each.values])
                    for each in influx.query(last.interpolate(query, chosen, interval))
                ]
            )
            assert found == pytest.approx([rate] * len(found)), (title, interval)
            assert len(found) >= 3


def test_a_ratio_weighs_each_record_by_its_counts(influx: Influx, tmp_path: Path) -> None:
    # in each second a record of 40 packets with 80 frames, and one of 10 with 10
    def records() -> Iterator[Record]:
        for tick in range(1, 13):
            packets, frames = 25 * tick - 15 * (tick % 2), 45 * tick - 35 * (tick % 2)
            counts = {"packets": packets, "delivered": packets, "frames": frames}
            yield recorded(BeliefRecord, time_ns=tick * SECOND // 2, link="up", **counts)

    uneven = keep(influx, "uneven", 1_790_003_000 * SECOND, records(), tmp_path)
    [series] = influx.query(uneven.interpolate(query_of("link", "Frames and rounds, up"), {"run": ["uneven"]}))
    found = [row[1] for row in series.values]
    # the first record is no rise, and the last second has one record
    assert found == [None, *[90 / 50] * 5, 80 / 40]


def test_the_line_of_all_flows_stands_beside_two_or_more(influx: Influx, filled: Filled, tmp_path: Path) -> None:
    def records() -> Iterator[Record]:
        for tick in range(1, 31):
            at = tick * SECOND // 10
            yield recorded(FlowRecord, time_ns=at, host="h2", flow="bulk", bytes_received=20_000 * tick)

    one = keep(influx, "one-flow", 1_790_005_000 * SECOND, records(), tmp_path)
    query, chosen = query_of("tcp", "Goodput", 1), {"run": ["one-flow"], "flow": ["bulk"]}
    assert influx.query(one.interpolate(query, chosen)) == []
    # both hosts get a flow of that name
    [both] = known(filled.rows(query, BOARDS["tcp"]))
    assert both == pytest.approx([3.2] * len(both))
    assert len(both) >= 5
    headline = query_of("overview", "Goodput of all flows")
    [[row]] = [each.values for each in influx.query(one.interpolate(headline, chosen))]
    assert row[1] == pytest.approx(1.6)


@pytest.mark.parametrize("name", OF_RUN_BOARDS)
def test_a_board_leads_to_the_time_of_its_run(name: str, filled: Filled) -> None:
    first = asking(BOARDS[name])[0]
    assert first["title"].startswith("Run: a click")
    # in a range long after the run, as the last five minutes are
    later = filled.to_ms + 9_000_000, filled.to_ms + 9_300_000
    [row] = table_rows(filled, first, {"run": [filled.run]}, later)
    assert (row["run"], int(row["begins"]), int(row["ends"])) == (filled.run, filled.from_ms, filled.to_ms)
    [links] = [
        setting["value"]
        for override in first["fieldConfig"]["overrides"]
        for setting in override["properties"]
        if setting["id"] == "links"
    ]
    assert (
        f"/d/fadelab-{name}?var-run=${{__data.fields.run}}&from=${{__data.fields.begins}}"
        in links[OF_RUN_BOARDS.index(name)]["url"]
    )


def test_bars_end_with_the_run(filled: Filled) -> None:
    later = filled.from_ms, filled.to_ms + 10_000
    for title in ("Session", "Scheme"):
        for _, values in filled.rows(query_of("link", title), BOARDS["link"], "1s", later):
            assert values[-9:] == [None] * 9
            assert None not in values[:6]


def test_the_table_leads_each_run_to_its_own_time(filled: Filled) -> None:
    answer = filled.influx.query(query_of("runs", "Runs"))
    rows = [dict(zip(series.columns, row, strict=True)) for series in answer for row in series.values]
    [row] = [row for row in rows if row["run"] == RUN]
    assert (row["scheme"], row["tier"], row["scenario"], row["seed"]) == ("slacp", "vusrp", "sample", 1)
    assert row["goodput"] == pytest.approx(1.6)
    assert (row["tcp"], row["duration"]) == ("cubic", 6)
    assert (int(row["begins"]), int(row["ends"])) == (filled.from_ms, filled.to_ms)
    [panel] = asking(BOARDS["runs"])
    [links] = [
        setting["value"]
        for override in panel["fieldConfig"]["overrides"]
        for setting in override["properties"]
        if setting["id"] == "links"
    ]
    for link in links:
        assert re.findall(r"__data\.fields\.(\w+)", link["url"]) == ["run", "begins", "ends"]
        assert {"from=", "to="} <= set(re.findall(r"\b\w+=", link["url"]))
    uids = [re.match(r"/d/([\w-]+)\?", link["url"]) for link in links]
    assert [uid and uid[1] for uid in uids] == [BOARDS[name]["uid"] for name in OF_RUN_BOARDS]


def test_two_runs_are_compared_whenever_they_were(influx: Influx, tmp_path: Path) -> None:
    first = keep(influx, "first", 1_790_002_000 * SECOND, run_records("bulk"), tmp_path)
    keep(influx, "second", 1_790_009_000 * SECOND, run_records("bulk"), tmp_path)
    chosen = {"run": ["first"], "other": ["second"], "flow": ["bulk"]}
    shown = {"A": "first", "B": "second"}
    for letter, run in shown.items():
        # a range in which neither was
        [row] = table_rows(first, panel_of("compare", f"Run {letter}"), chosen, (0, 1))
        assert (row["run"], row["scheme"], row["seed"]) == (run, "slacp", 1)
    bars = [panel for panel in asking(BOARDS["compare"]) if panel["type"] == "bargauge"]
    assert len(bars) == 6
    for panel in bars:
        found: dict[str, dict[str, float]] = {letter: {} for letter in shown}
        for target in panel["targets"]:
            for series in influx.query(first.interpolate(target["query"], chosen, time_ms=(0, 1))):
                # short enough for a bar's label, and no run's name, which begins like every other
                name = named(target["alias"], series.tags)
                assert len(name) <= len("A p95 bulk")
                found[name[0]][name[1:]] = series.values[0][1]
        assert found["A"]
        assert found["A"] == pytest.approx(found["B"])
        whole = {"Loss before repair": {" up": 5, " down": 5}, "Link retransmissions": {" up": 5, " down": 5}}
        assert found["A"] == pytest.approx(whole.get(panel["title"], found["A"]))


def test_two_runs_begin_at_zero(influx: Influx, tmp_path: Path) -> None:
    # half a second later within its second, and of other lengths
    first = keep(influx, "early", 1_790_020_000 * SECOND, run_records("bulk"), tmp_path)
    short = (record for record in run_records("bulk") if record.time_ns <= 4 * SECOND)
    keep(influx, "late", 1_790_029_000 * SECOND + SECOND // 2, short, tmp_path)
    chosen = {"run": ["early"], "other": ["late"], "flow": ["bulk"]}
    # of both flows together, whose counters grow evenly; the window grows with the run
    constant = {"Goodput of all flows from zero": 3.2, "Loss before repair from zero, up": 5.0}
    assert len(FROM_ZERO) == 4
    for panel in FROM_ZERO:
        ends = {}
        for letter, target in zip("AB", panel["targets"], strict=True):
            # in a range in which neither was
            [series] = influx.query(first.interpolate(target["query"], chosen, time_ms=(0, 1)))
            assert series.columns == ("time", f"seconds of {letter}", f"run {letter}")
            at = [row[1] for row in series.values]
            assert at == sorted(at)
            assert 0 < at[0] < 1
            ends[letter] = at[-1]
            for _, seconds, value in series.values:
                expected = constant.get(panel["title"].replace("down", "up"), 2 * 30.0 * seconds)
                assert value == pytest.approx(expected)
        assert 5 < ends["A"] <= 6
        assert 3 < ends["B"] <= 4


def test_the_other_run_is_another_one(influx: Influx, filled: Filled) -> None:
    [_, other, _] = BOARDS["compare"]["templating"]["list"]
    asked = filled.interpolate(other["query"], {"run": [filled.run]})
    offered = {row[1] for series in influx.query(asked) for row in series.values}
    assert filled.run not in offered
    # also those whose names are like its own
    assert {"20260921-a.b-s12", "20260921-aXb-s1"} <= offered


def test_a_share_has_no_value_while_little_is_sent(influx: Influx, tmp_path: Path) -> None:
    idle = (
        recorded(LinkRecord, time_ns=tick * SECOND, link="up", frames=tick, corruption_losses=tick)
        for tick in range(1, 6)
    )
    quiet = keep(influx, "idle", 1_790_001_000 * SECOND, idle, tmp_path)
    query = quiet.interpolate(query_of("overview", "Lost before repair"), {"run": ["idle"]})
    assert influx.query(query) == []
