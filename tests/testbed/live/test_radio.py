"""Real runs on virtual radios: what the radio lost, and what a run keeps of it.

A loaded machine may be late, so `on_time` is not asked for here; what is decoded does not depend on it.
"""

import itertools
import json
import socket
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest
from scipy.special import stdtrit

from channel.replay import Outcome
from channel.trace import read_trace
from flowgraphs.air import Air
from flowgraphs.recording import Recording
from telemetry.parquet import read_records
from testbed.live.children import Child, ChildError
from testbed.paths import root
from testbed.results.summary import Summary
from testbed.running import run_once
from testbed.scenario.file import load
from tests.harness.live_runs import folder_of, run_all
from tests.harness.radios import air_name, needs_vusrp, needs_wifi
from tests.harness.scenarios import scenario
from tests.harness.steered import ENDLESS
from tests.harness.unplugging import unplug_in_mid_run
from tests.hosts.harness import needs_network

pytestmark = [*needs_network, needs_vusrp, pytest.mark.light]

#: where QPSK loses about a tenth of its longest frames
SNR_DB = 11.5
CFO_HZ = {"up": 300.0, "down": -200.0}
DURATION_S = 4.0


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    """A transfer with SLACP, on an air of its own."""
    sides = {side: {"cfo_hz": cfo_hz} for side, cfo_hz in CFO_HZ.items()}
    told = scenario(
        tier="vusrp",
        seed=3,
        link={"eln": "ends"},
        channel={"rate_bps": 2_000_000, "delay_ms": 15, "snr_db": SNR_DB, **sides},
        workloads=[{"kind": "bulk", "duration_s": DURATION_S}],
    )
    [summary] = run_all([told], tmp_path_factory.mktemp("runs"))
    return summary


def mean_bound(values: Sequence[float]) -> float:
    """How far the mean may lie off, as the values themselves scatter: exceeded with 2e-7, four times in a run.

    Student's t, for so few values.
    """
    return -float(stdtrit(len(values) - 1, 1e-7)) * stdev(values) / len(values) ** 0.5


@pytest.mark.parametrize("side", ["up", "down"])
def test_the_receiver_measures_what_was_set(run: Summary, side: str) -> None:
    rows = [row for row in read_records(folder_of(run), "phy") if row["link"] == side]
    times = [row["time_ns"] for row in rows]
    assert times == sorted(times)
    snrs_db = [row["snr_db"] for row in rows if row["snr_db"] is not None]
    cfos_hz = [row["cfo_hz"] for row in rows if row["cfo_hz"] is not None]
    assert len(snrs_db) == len(cfos_hz) > 10
    assert fmean(snrs_db) == pytest.approx(SNR_DB, abs=1.5)
    assert fmean(cfos_hz) == pytest.approx(CFO_HZ[side], abs=mean_bound(cfos_hz))
    assert all(row["per"] is None or 0 <= row["per"] <= 1 for row in rows)
    assert all(-60 < row["rssi_dbfs"] < 0 for row in rows if row["rssi_dbfs"] is not None)
    assert all(0 <= row["rx_gain_db"] <= 60 and row["overflows"] >= 0 for row in rows)


def test_manifest_tells_what_the_radios_are(run: Summary) -> None:
    radios = json.loads((folder_of(run) / "manifest.json").read_text())["radios"]
    assert sorted(radios) == ["bas", "st"]
    for station, half in itertools.product(("st", "bas"), ("tx", "rx")):
        about = radios[station][half]
        assert (about["mboard_id"], about["mboard_serial"]) == ("vusrp", station.upper())
        assert (about["master_clock_hz"], about["rate_sps"]) == (200e6, 2.5e6)
        assert about["carrier_hz"] == (2.46e9 if (station, half) in (("st", "tx"), ("bas", "rx")) else 2.41e9)
        assert about["antenna"] in ("TX/RX", "RX2")
        assert 0 <= about["gain_db"] <= 60
    assert not list(folder_of(run).glob("station-*.log"))


@pytest.mark.parametrize("side", ["up", "down"])
def test_trace_has_every_received_and_missed_frame(run: Summary, side: str) -> None:
    trace, link = read_trace(folder_of(run) / f"trace-{side}.parquet"), run.link[side]
    # why a frame was lost on the air is not known
    assert run.confusion is None
    lost = [outcome for outcome in trace.outcome if outcome is not Outcome.OK]
    assert len(lost) == link.corruption_losses
    # frames before the first and after the last that was heard are not known of: what was on its way at the end
    assert link.frames - 20 <= len(trace) <= link.frames
    assert list(trace.time_ns) == sorted(trace.time_ns)
    assert trace.time_ns[-1] < (DURATION_S + 10) * 1e9
    for outcome, snr_db, cfo_hz in zip(trace.outcome, trace.snr_db, trace.cfo_hz, strict=True):
        assert (snr_db is None) == (cfo_hz is None) == (outcome is Outcome.MISSED)
    assert (trace.link, trace.producer) == (side, "fadelab vusrp")
    # in white noise the robust header outlives the payload
    assert side == "down" or trace.outcome.count(Outcome.PAYLOAD) > trace.outcome.count(Outcome.MISSED)


@pytest.mark.parametrize(("profile", "name"), [("b210", "B210"), ("n210-sbx", "N210r4")])
def test_device_of_a_family_carries_a_run_on_the_real_path(profile: str, name: str, tmp_path: Path) -> None:
    with Air.create(air_name(), seed=1) as air:
        # attenuators between the radios, as the hardware guide wants
        air.set_link("*", "*", gain_db=-30.0)
        devices = [f"type=vusrp,profile={profile},air={air.name},serial={serial}" for serial in ("ST", "BAS")]
        told = scenario(
            tier="usrp",
            channel={"rate_bps": 2_000_000, "delay_ms": 15},
            radio={"devices": devices},
            workloads=[{"kind": "bulk", "bytes": 200_000}],
            limit_s=60,
        )
        [summary] = run_all([told], tmp_path)
    assert (summary.finished, summary.intact) == (True, True)
    radios = json.loads((folder_of(summary) / "manifest.json").read_text())["radios"]
    assert {radios[station][half]["mboard_id"] for station in radios for half in ("tx", "rx")} == {name}


@pytest.mark.parametrize(
    ("how", "fault"),
    [
        ("silent", "no samples for 1 s: check its cable, its power and this machine's load"),
        ("thrown", r"its thread thrower\d+ has failed: check its cable and power"),
    ],
)
def test_lost_radio_ends_the_run_in_one_line_with_complete_records(
    how: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def child(name: str, module: str, **options: Any) -> Child:
        return Child(name, "tests.harness.unplugged_station" if name == "station st" else module, **options)

    monkeypatch.setenv("UNPLUGGED", how)
    monkeypatch.setattr("testbed.live.link_stations.Child", child)
    endless = scenario(
        tier="vusrp", channel={"rate_bps": 2_000_000, "delay_ms": 15}, radio={"record": True}, workloads=ENDLESS
    )
    line = rf"station st: USRP 'type=vusrp,.*': {fault}"
    with pytest.raises(ChildError, match=f"^{line}$"):
        run_once(endless, tmp_path, lambda progress: None)
    [folder] = tmp_path.iterdir()
    heard = sum(outcome is Outcome.OK for outcome in read_trace(folder / "trace-down.parquet").outcome)
    # of the hundred after which it is lost (unplugged_station.py), but for those before the run's time 0
    assert heard > 50
    assert Recording.read(folder / "iq-down.sigmf-meta").duration_s > 1
    for side, measurement in itertools.product(("up", "down"), ("phy", "link")):
        assert [row for row in read_records(folder, measurement) if row["link"] == side]


@pytest.mark.parametrize(("profile", "serial"), [("b210", "ST"), ("n310", "BAS")])
def test_device_unplugged_in_mid_run_leaves_records_and_nothing_else(profile: str, serial: str, tmp_path: Path) -> None:
    """One of USB and one of a network; `benchmarks.unplugging` takes all families ten times."""
    assert unplug_in_mid_run(profile, serial, tmp_path).faults == ()


@needs_wifi
def test_the_wifi_scenario_runs(tmp_path: Path) -> None:
    [run] = run_all([load(root() / "scenarios" / "wifi-link.yaml", ("workloads.0.duration_s=4",))], tmp_path)
    assert (run.finished, run.intact, run.capacity_bps) == (True, True, 1_000_000)
    assert 100_000 < run.goodput_bps < 1_000_000


def test_stations_reach_ethernet_devices_in_the_hosts_network(tmp_path: Path) -> None:
    # where UHD looks for an N210 (USRP2_UDP_CTRL_PORT)
    address = "127.77.88.99"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as device:
        device.bind((address, 49152))
        device.setblocking(False)
        devices = [f"addr={address}", "addr=127.77.88.100"]
        told = scenario(tier="usrp", radio={"devices": devices, "cabled": True})
        with pytest.raises(ChildError, match="no USRP answers to 'addr="):
            run_once(told, tmp_path, lambda progress: None)
        assert len(device.recv(2048)) > 0
