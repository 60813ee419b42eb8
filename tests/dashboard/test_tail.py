"""Runs of other programs, through a real InfluxDB into the hub."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from dashboard.control import Controls
from dashboard.hub import Feed, Hub
from dashboard.tail import Tail
from telemetry.influx import Influx, InfluxServer, InfluxSink, InfluxTail
from telemetry.records import LinkRecord, Record, TcpRecord
from tests.harness.dashboard_runs import LINK, TCP, RecordingControls, info
from tests.harness.waiting import wait_for

pytestmark = pytest.mark.slow

MS = 1_000_000


def found(hub: Hub) -> Feed:
    return wait_for(lambda: hub.find("elsewhere"))


class Elsewhere:
    """A run of another program."""

    def __init__(self, influx: Influx, spool: Path, name: str = "elsewhere") -> None:
        tags = {"run": name, "tier": "vusrp", "scenario": "fading-link"}
        self.sink = InfluxSink(influx, tags, spool / name, flush_s=30)
        self.epoch_ns = time.time_ns()
        self.sink.begin(self.epoch_ns)

    def write(self, *records: Record) -> None:
        for record in records:
            self.sink.write(record)

    def end_after_a_record(self) -> None:
        self.write(replace(TCP, time_ns=MS))
        self.sink.close()


def test_a_run_elsewhere_is_seen_here(influx: Influx, tmp_path: Path) -> None:
    hub, recording = Hub(), RecordingControls()
    asked: list[dict[str, str]] = []

    def controls_of(tags: dict[str, str]) -> Controls:
        asked.append(tags)
        return recording

    with Tail(hub, InfluxTail(influx), controls_of) as tail:
        run = Elsewhere(influx, tmp_path)
        links = [replace(LINK, time_ns=n * 100 * MS, frames=n) for n in range(1, 6)]
        run.write(*links, *(replace(TCP, time_ns=n * 100 * MS) for n in range(1, 6)))
        run.sink.close()
        feed = found(hub)
        wait_for(lambda: len(feed.records(TcpRecord)) == 5)
        about = feed.describe()
        assert tail.problem == ""
        assert (about["scenario"], about["tier"], about["scheme"]) == ("fading-link", "vusrp", "slacp")
        assert about["title"] == "fading-link, slacp"
        assert about["live"] is True
        assert about["controlled"] is True
        assert asked == [{"run": "elsewhere", "tier": "vusrp", "scenario": "fading-link"}]
        # its first record is taken for its beginning
        assert about["epoch_ns"] == run.epoch_ns + 100 * MS
        assert feed.records(LinkRecord) == [replace(link, time_ns=link.time_ns - 100 * MS) for link in links]
    assert feed.describe()["live"] is False


def test_a_run_of_this_program_is_left_alone(influx: Influx, tmp_path: Path) -> None:
    hub = Hub()
    own, over = hub.open(info("own")), hub.open(info("over"))
    over.close()
    with Tail(hub, InfluxTail(influx)):
        for name in ("own", "over", "elsewhere"):
            Elsewhere(influx, tmp_path, name).end_after_a_record()
        found(hub)
    assert hub.find("own") is own
    assert hub.find("over") is over
    assert own.records(TcpRecord) == over.records(TcpRecord) == []


def test_a_run_that_falls_silent_is_over_and_may_come_again(influx: Influx, tmp_path: Path) -> None:
    hub = Hub()
    with Tail(hub, InfluxTail(influx), quiet_s=0.5):
        run = Elsewhere(influx, tmp_path)
        run.write(replace(TCP, time_ns=MS))
        first = found(hub)
        wait_for(lambda: not first.live)
        run.write(replace(TCP, time_ns=time.time_ns() - run.epoch_ns))
        wait_for(lambda: hub.find("elsewhere") is not first)
        assert len(found(hub).records(TcpRecord)) <= 1
        run.sink.close()


@pytest.mark.parametrize("name", ["../etc", "a run", "<script>"])
def test_names_that_are_none_are_left_out(influx: Influx, tmp_path: Path, name: str) -> None:
    hub = Hub()
    with Tail(hub, InfluxTail(influx)):
        for run in (Elsewhere(influx, tmp_path, name), Elsewhere(influx, tmp_path)):
            run.end_after_a_record()
        found(hub)
    assert [run["name"] for run in hub.runs()] == ["elsewhere"]


def test_a_database_that_is_away_is_said_and_asked_again(tmp_path: Path) -> None:
    hub = Hub()
    with InfluxServer(tmp_path / "influxdb", port=0) as server:
        influx = Influx(server.url)
        influx.create_database(retention_days=30)
        with Tail(hub, InfluxTail(influx)) as tail:
            assert tail.problem == ""
            server.close()
            wait_for(lambda: bool(tail.problem))
            assert "\n" not in tail.problem
            server.start()
            wait_for(lambda: not tail.problem)
            Elsewhere(influx, tmp_path).end_after_a_record()
            found(hub)
