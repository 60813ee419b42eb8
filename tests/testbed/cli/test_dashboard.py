"""`dashboard` as a process: what it prints and serves, how it ends, and what it refuses in one line."""

import json
import signal
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path

import pytest

from telemetry.influx import Influx
from telemetry.parquet import read_records
from testbed.cli.dashboard.serve import PORT
from tests.harness.dashboards import FREE, Dashboard, running
from tests.harness.live_runs import Capture, complaint, fadelab, finish, refused, start
from tests.harness.waiting import wait_for
from tests.hosts.harness import needs_network

pytestmark = pytest.mark.patient


def test_it_opens_without_a_run_and_ends_with_sigterm(tmp_path: Path) -> None:
    with running(*FREE, "--out", tmp_path) as dashboard:
        state = dashboard.ask("/api/state")
        assert (state["live"], state["authorised"], state["database"]["state"]) == ([], True, "up")
        influx = Influx(state["database"]["url"])
        assert influx.query("SHOW DATABASES")[0].values == [["fadelab"]]
        dashboard.process.send_signal(signal.SIGTERM)
        status, out, err = finish(dashboard.process)
    assert (status, out) == (0, "")
    assert "Ctrl-C ends it" in err
    with pytest.raises(RuntimeError, match="Connection refused"):
        influx.check()


def test_a_second_dashboard_on_one_port_or_run_store_is_one_line(tmp_path: Path) -> None:
    influx = ("--influx-port", "0")
    with running(*influx, "--out", tmp_path / "a") as first, running(*influx, "--out", tmp_path / "b") as second:
        # without --port the second one takes another port, and says so
        assert first.port != second.port
        assert second.ask("/api/state")["live"] == []
        second.process.send_signal(signal.SIGTERM)
        _, _, err = finish(second.process)
        assert f"port {PORT} is taken: the page is on port {second.port}\n" in err
        line = complaint(fadelab("dashboard", *FREE, "--port", str(first.port), "--out", tmp_path / "b"))
        assert f"port {first.port} of 127.0.0.1: another dashboard listens there" in line
        assert str(tmp_path / "a") in complaint(fadelab("dashboard", *FREE, "--out", tmp_path / "a"))
        state = first.ask("/api/state")
        assert (state["live"], state["database"]["state"]) == ([], "up")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--influx", "http://127.0.0.1:1"), "InfluxDB at http://127.0.0.1:1: Connection refused"),
        (("--influx", "nonsense"), "must look like http://127.0.0.1:8086"),
        (("--page-token-file", "/nowhere/token"), "token file /nowhere/token: No such file"),
        (("--page-token-file", "/etc/debian_version"), "can be guessed: make one of 16 or more"),
        (("--token-file", "/etc/hostname"), "--token-file is for a database that --influx names"),
        (("--bind", "192.0.2.1"), "192.0.2.1: not an address of this machine"),
        (("--air", "nobodys"), "air 'nobodys'"),
        (("--scenario", "nowhere.yaml"), "--scenario is for --air"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, args: tuple[str, ...], words: str, capsys: Capture) -> None:
    assert words in refused(capsys, "dashboard", *FREE, "--out", tmp_path, *args)


@pytest.mark.parametrize("option", [("--bind", "0.0.0.0"), ("--name", "lab.example"), ("--proxies", "1")])
def test_where_others_may_come_from_looking_demands_the_token(tmp_path: Path, option: tuple[str, str]) -> None:
    with running(*FREE, *option, "--out", tmp_path) as dashboard:
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{dashboard.url}/api/runs", timeout=60)
        assert dashboard.ask("/api/runs")["runs"] == []
        named = urllib.request.Request(f"{dashboard.url}/api/state", headers={"Host": "lab.example"})
        if "--name" in option:
            assert urllib.request.urlopen(named, timeout=60).status == 200
        else:
            with pytest.raises(urllib.error.HTTPError, match="400"):
                urllib.request.urlopen(named, timeout=60)


@pytest.mark.net
@needs_network[1]
def test_a_run_is_started_steered_stopped_and_found_again(tmp_path: Path) -> None:
    with running(*FREE, "--out", tmp_path) as dashboard:
        order = {"scenario": "lossy-link", "tier": "emulated", "schemes": ["slacp"], "seconds": 600, "seed": 5}
        dashboard.ask("/api/start", order)
        run = wait_for(dashboard.live)["name"]
        dashboard.ask(f"/api/runs/{run}/controls", {"name": "per", "value": 12})
        wait_for(lambda: b"per" in _stream_until_note(dashboard, run))
        with pytest.raises(urllib.error.HTTPError, match="409"):
            dashboard.ask(f"/api/runs/{run}/controls", {"name": "per", "value": 99})
        dashboard.ask(f"/api/runs/{run}/stop", {})
        wait_for(lambda: dashboard.live() is None)
        [row] = dashboard.ask("/api/runs")["runs"]
        assert (row["name"], row["scenario"], row["seed"], row["controlled"]) == (run, "lossy-link", 5, True)
        influx = Influx(dashboard.ask("/api/state")["database"]["url"])
        fields = {"tcp": "cwnd_bytes", "flow": "bytes_received", "link": "frames", "station": "memory_bytes"}
        for measurement, field in fields.items():
            rows = len(read_records(tmp_path / run, measurement))
            counted = partial(_count, influx, f"SELECT COUNT({field}) FROM {measurement}")
            wait_for(partial(lambda counted, rows: counted() == rows, counted, rows))
        wait_for(lambda: _count(influx, "SELECT COUNT(goodput_bps) FROM runs") == 1)
        [listed] = influx.query("SELECT run, scheme, seed, goodput_bps, begins, ends FROM runs")
        [changed] = influx.query("SELECT text FROM control")
    summary = json.loads((tmp_path / run / "summary.json").read_text())
    assert summary["changes"] == 1
    [[_, name, scheme, seed, goodput_bps, begins, ends]] = listed.values
    assert (name, scheme, seed, goodput_bps) == (run, "slacp", 5, pytest.approx(summary["goodput_bps"]))
    assert 0 < int(ends) - int(begins) < 100_000
    assert [text for _, text in changed.values] == ["per: 12"]


@pytest.mark.net
@needs_network[1]
def test_live_run_of_another_program_is_shown(tmp_path: Path) -> None:
    with running(*FREE, "--out", tmp_path / "here") as dashboard:
        url = dashboard.ask("/api/state")["database"]["url"]
        scenario = Path(__file__).parents[3] / "scenarios" / "lossy-link.yaml"
        other = start("run", scenario, "--out", tmp_path / "there", "--influx", url, "--allow-late")
        try:
            run = wait_for(dashboard.live)["name"]
            assert "lossy-link" in run
            assert b'"throughput"' in _stream_until_note(dashboard, run, b'"throughput"')
        finally:
            other.terminate()
            finish(other)


@pytest.mark.net
@needs_network[1]
def test_ending_the_dashboard_ends_its_runs_and_keeps_them(tmp_path: Path) -> None:
    with running(*FREE, "--out", tmp_path) as dashboard:
        order = {"scenario": "lossy-link", "tier": "emulated", "schemes": ["slacp"], "seconds": 600, "seed": 5}
        dashboard.ask("/api/start", order)
        run = wait_for(dashboard.live)["name"]
        dashboard.process.send_signal(signal.SIGINT)
        status, _, err = finish(dashboard.process)
    assert status == 0, err
    assert json.loads((tmp_path / run / "summary.json").read_text())["intact"] is True


def _count(influx: Influx, query: str) -> int:
    return sum(series.values[0][1] for series in influx.query(query))


def _stream_until_note(dashboard: Dashboard, run: str, what: bytes = b'"notes"') -> bytes:
    """The event of a run's stream that first has something in it."""
    with urllib.request.urlopen(f"{dashboard.url}/api/stream?run={run}", timeout=60) as stream:
        for line in stream:
            if what in line:
                return bytes(line)
    return b""
