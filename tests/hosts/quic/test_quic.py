"""QUIC by aioquic as a transport of the hosts, on tier `model`."""

import filecmp
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from aioquic import tls
from aioquic.quic import connection, packet

from hosts.engine.packets import UDP_HEADERS
from hosts.engine.results import EndReport, TcpReceived, TcpSent
from hosts.errors import HostError
from hosts.quic.content import QuicContents
from hosts.quic.entropy import Entropy
from hosts.quic.transport import destination_of, is_first
from hosts.workloads.quic import LEAST_PAYLOAD_BYTES, Quic
from telemetry.parquet import read_records
from testbed.model.link_network import LinkNetwork
from testbed.model.traffic import Traffic
from testbed.results.summary import Summary
from testbed.running import run_once
from testbed.scenario.schema import Scenario
from testbed.scenario.settings import ScenarioError
from testbed.simulation import simulate
from tests.harness.live_runs import ROOT, Capture, folder_of, refused
from tests.harness.scenarios import scenario

RATE_BPS = 2_000_000
DELAY_NS = 20_000_000
MTU = 1500
SIZE = 300_000
#: of a 1-RTT packet with one STREAM frame, at least: flags, connection ID, packet number, type, ID, length, tag of AEAD
#: (RFC 9000 sections 17.3.1, 19.8; RFC 9001 section 5.3)
LEAST_HEADERS = 1 + 8 + 1 + 1 + 1 + 2 + 16


def quic(per: float = 0.0, *, seed: int = 1, mtu: int = MTU, **options: Any) -> Scenario:
    return scenario(
        tier="model",
        tcp="sack",
        seed=seed,
        mtu=mtu,
        link={"scheme": "none"},
        channel={"rate_bps": RATE_BPS, "delay_ms": DELAY_NS / 1e6, "per": per},
        workloads=[{"kind": "quic", **({"bytes": SIZE} | options)}],
    )


def both_ends(made: Scenario) -> tuple[Summary, TcpSent, TcpReceived]:
    reports: Sequence[EndReport] = ()

    def begun(network: LinkNetwork, traffic: Traffic) -> None:
        nonlocal reports
        reports = traffic.reports

    summary = simulate(made, begun=begun)
    ends = {report.role: report.result for report in reports}
    sender, receiver = ends["sender"], ends["receiver"]
    assert isinstance(sender, TcpSent)
    assert isinstance(receiver, TcpReceived)
    return summary, sender, receiver


def events(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a JSON text sequence (RFC 7464): each begins with RS and ends with LF."""
    for record in path.read_text().split("\x1e")[1:]:
        assert record.endswith("\n")
        yield json.loads(record)


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_transfer_is_complete_and_intact_over_a_lossy_link(direction: str) -> None:
    summary, sender, receiver = both_ends(quic(0.05, direction=direction, streams=3))
    assert sender.bytes == sender.bytes_acked == receiver.bytes == SIZE
    assert sender.sha256 == receiver.sha256
    assert summary.intact
    assert summary.finished
    # what was lost has been sent again
    assert sender.retransmits > 0
    assert sender.bytes_sent > SIZE


def test_without_losses_nothing_is_sent_twice() -> None:
    _, sender, _ = both_ends(quic(bytes=50_000))
    assert (sender.retransmits, sender.timeouts, sender.bytes_sent) == (0, 0, 50_000)


def test_goodput_of_a_clean_link_stays_below_its_rate_less_headers() -> None:
    # 3 MB take 12 s, so that the slow start has little weight
    summary, _, _ = both_ends(quic(bytes=3_000_000))
    most = RATE_BPS * (MTU - UDP_HEADERS - LEAST_HEADERS) / MTU
    assert 0.85 * most < summary.goodput_bps < most


def test_the_handshake_takes_a_round_trip() -> None:
    """RFC 9001 section 4.1: after the server's first flight the client has 1-RTT keys."""
    _, sender, _ = both_ends(quic())
    assert sender.connected_ns is not None
    took_ns = sender.connected_ns - sender.started_ns
    # the client pads its first datagram to the largest (RFC 9000 section 14.1), the server at least to 1200 octets
    sending_ns = 8 * (LEAST_PAYLOAD_BYTES + UDP_HEADERS) * 1_000_000_000 // RATE_BPS
    assert 2 * (DELAY_NS + sending_ns) <= took_ns < 4 * DELAY_NS


def test_octets_are_divided_among_the_streams() -> None:
    work = Quic(bytes=100, streams=7)
    shares = [work.stream_bytes(100, stream) for stream in range(7)]
    assert sum(shares) == 100
    assert max(shares) - min(shares) == 1


def test_a_changed_octet_is_seen() -> None:
    contents = QuicContents(1, {"quic": Quic(bytes=100, streams=2)})
    sent = contents.outgoing("quic/0")
    first, second = sent.take(0, 50), sent.take(1, 50)
    assert first != second
    for changed in (False, True):
        read = contents.incoming("quic/0")
        read.streams[0].add(first)
        read.streams[1].add(second[:-1] + bytes([second[-1] ^ changed]))
        assert read.intact() is not changed
        assert (read.sha256() == sent.sha256()) is not changed


@pytest.mark.parametrize("control", ["reno", "cubic"])
def test_records_join_those_of_tcp(tmp_path: Path, control: str) -> None:
    summary = run_once(quic(0.02, congestion_control=control), tmp_path, lambda progress: None)
    rows = read_records(folder_of(summary), "tcp")
    assert {(row["host"], row["flow"]) for row in rows} == {("h1", "quic")}
    [flow] = summary.flows
    last = rows[-1]
    assert (last["bytes_acked"], last["retransmits"], last["timeouts"]) == (SIZE, flow.retransmits, flow.timeouts)
    assert flow.retransmits == summary.retransmissions > 0
    assert last["ssthresh_bytes"] is not None
    # RFC 9002 section 7.2: two datagrams at least
    assert all(row["cwnd_bytes"] >= 2 * (MTU - UDP_HEADERS) for row in rows)
    assert all(row["in_flight_bytes"] >= 0 for row in rows)
    assert max(row["in_flight_bytes"] for row in rows) > 10_000
    assert min(row["srtt_ms"] for row in rows if row["srtt_ms"] is not None) >= 2 * DELAY_NS / 1e6
    for counter in ("bytes_acked", "retransmits", "timeouts"):
        counts = [row[counter] for row in rows]
        assert counts == sorted(counts)
    received = read_records(folder_of(summary), "flow")
    assert received[-1]["bytes_received"] == SIZE
    assert summary.quality.round_trip is not None
    assert summary.quality.one_way is not None
    assert summary.quality.one_way.p50_ms >= DELAY_NS / 1e6


def test_reno_halves_its_window_at_a_loss(tmp_path: Path) -> None:
    """RFC 9002 section 7.3.2: ssthresh is set to half of the congestion window, and the window to ssthresh."""
    summary = run_once(quic(0.02, congestion_control="reno", qlog=True), tmp_path, lambda progress: None)
    before, falls = 0, []
    for record in events(folder_of(summary) / "qlog-quic-h1.sqlog"):
        if record.get("name") == "recovery:metrics_updated":
            cwnd = record["data"]["cwnd"]
            if cwnd < before:
                falls.append((before, cwnd, record["data"]["ssthresh"]))
            before = cwnd
    assert falls
    assert all(after == ssthresh == max(cwnd // 2, 2 * (MTU - UDP_HEADERS)) for cwnd, after, ssthresh in falls)


def test_qlog_has_the_events_of_both_ends_at_times_of_the_run(tmp_path: Path) -> None:
    summary = run_once(quic(0.02, qlog=True, start_s=1), tmp_path, lambda progress: None)
    [flow] = summary.flows
    for host, role in (("h1", "client"), ("h2", "server")):
        header, *rest = events(folder_of(summary) / f"qlog-quic-{host}.sqlog")
        assert header["qlog_format"] == "JSON-SEQ"
        assert header["trace"]["vantage_point"]["type"] == role
        times = [record["time"] for record in rest]
        assert times == sorted(times)
        assert times[0] >= 1000
        # both ends close up to three PTOs after the end of the transfer (RFC 9000 section 10.2)
        assert times[-1] < 1e3 * flow.end_s + 1000
        names = [record["name"] for record in rest]
        assert {"transport:packet_sent", "transport:packet_received", "transport:datagrams_sent"} <= set(names)
        if host == "h1":
            lost = [record for record in rest if record["name"] == "recovery:packet_lost"]
            assert sum(record["data"]["type"] == "1RTT" for record in lost) == flow.retransmits > 0


def test_without_a_request_there_are_no_logs(tmp_path: Path) -> None:
    summary = run_once(quic(bytes=10_000), tmp_path, lambda progress: None)
    assert not [path.name for path in folder_of(summary).iterdir() if "log" in path.name]


_RUN = """
import sys
from pathlib import Path
from testbed.scenario.file import load
from testbed.running import run_once
made = load(Path("scenarios/quic.yaml"), ["tier=model", "channel.per=0.05", "seed=" + sys.argv[2],
    "workloads.0.duration_s=2", "workloads.0.streams=2", "workloads.0.qlog=true"])
print(run_once(made, Path(sys.argv[1]), lambda progress: None).folder)
"""


@pytest.mark.slow
def test_the_files_of_five_processes_are_equal_to_the_byte(tmp_path: Path) -> None:
    def folder(number: int, seed: int) -> Path:
        command = [sys.executable, "-c", _RUN, str(tmp_path / str(number)), str(seed)]
        # hashes of strings differ between processes
        env = {**os.environ, "PYTHONHASHSEED": str(number)}
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
        return Path(done.stdout.strip())

    first, *others = (folder(number, 7) for number in range(5))
    names = sorted(path.name for path in first.iterdir() if path.name != "manifest.json")
    assert {"summary.json", "tcp.parquet", "flow.parquet", "qlog-quic-h1.sqlog", "qlog-quic-h2.sqlog"} <= set(names)
    for other in others:
        assert sorted(path.name for path in other.iterdir() if path.name != "manifest.json") == names
        _, *differing = filecmp.cmpfiles(first, other, names, shallow=False)
        assert differing == [[], []]
    assert not filecmp.cmp(first / "tcp.parquet", folder(5, 8) / "tcp.parquet", shallow=False)


def test_no_generator_of_the_process_is_touched() -> None:
    state, system = random.getstate(), os.urandom
    both_ends(quic(0.05, bytes=20_000))
    assert random.getstate() == state
    assert os.urandom is system
    assert vars(connection)["os"] is vars(tls)["os"] is vars(packet)["os"] is os


def test_aioquic_draws_from_the_entropy_only_within_its_block() -> None:
    def fail_within(entropy: Entropy) -> None:
        with entropy:
            assert vars(connection)["os"].urandom(8) == random.Random(3).randbytes(8)
            assert vars(tls)["os"] is vars(packet)["os"] is entropy
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_within(Entropy(random.Random(3)))
    assert vars(connection)["os"] is vars(tls)["os"] is vars(packet)["os"] is os


def test_a_small_mtu_is_one_line() -> None:
    least = LEAST_PAYLOAD_BYTES + UDP_HEADERS
    simulate(quic(mtu=least, bytes=10_000))
    with pytest.raises(ScenarioError, match=f"workloads.0: quic needs an mtu of {least} at least, not {least - 1}$"):
        quic(mtu=least - 1)


def test_a_key_log_in_virtual_time_is_one_line(capsys: Capture) -> None:
    line = refused(capsys, "run", "scenarios/quic.yaml", "--tier", "model", "--set", "workloads.0.keylog=true")
    assert "workloads.0.keylog is not for tier model: leave it out, or run --tier emulated, usrp, vusrp" in line


@pytest.mark.parametrize("wrong", [{"congestion_control": "bbr"}, {"streams": 0}, {"streams": 101}, {"bytes": None}])
def test_wrong_options_are_one_line(wrong: dict[str, Any]) -> None:
    with pytest.raises(ScenarioError, match=r"^sample: workloads\.0") as error:
        quic(**wrong)
    assert "\n" not in str(error.value)


@pytest.mark.interpreted
def test_a_missing_package_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("aioquic", "hosts.quic"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "aioquic", None)
    with pytest.raises(HostError, match=r"^workload quic needs the Python package aioquic.*, which is not installed"):
        simulate(quic())


def test_a_paused_transfer_goes_on() -> None:
    made = quic(bytes=None, duration_s=4)
    whole = simulate(made).flows[0].bytes

    def begun(network: LinkNetwork, traffic: Traffic) -> None:
        epoch = network.clock.now
        network.clock.at(epoch + 1_000_000_000, traffic.pause, True)
        network.clock.at(epoch + 2_000_000_000, traffic.pause, False)

    [flow] = simulate(made, begun=begun).flows
    assert flow.intact
    assert 0.6 * whole < flow.bytes < 0.9 * whole


def test_a_first_packet_of_version_1_is_told_from_others() -> None:
    """RFC 8999 section 5.1, RFC 9000 sections 14.1 and 17.2.2."""
    first = bytes([0xC3, 0, 0, 0, 1, 8]) + b"identity" + bytes(LEAST_PAYLOAD_BYTES)
    assert destination_of(first) == b"identity"
    assert is_first(first)
    assert destination_of(b"\x40identity" + b"payload") == b"identity"
    # a Handshake packet, version 2, too short, a short header, nothing
    for other in (b"\xe3" + first[1:], first[:4] + b"\x02" + first[5:], first[:1199], b"\x43" + first[1:]):
        assert not is_first(other)
    assert (destination_of(b""), destination_of(b"\xc3\0\0")) == (b"", b"")
