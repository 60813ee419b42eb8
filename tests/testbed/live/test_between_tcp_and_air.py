"""Real runs with what stands between TCP and the air: packet filters, split connections, LT-TCP.

Goodputs are not compared: docs/filters.md does that. Where times decide, the run must be on time.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from common.units import SECOND
from hosts.kernel.network import AddressPlan
from linklayer.filters.filter import Cause
from telemetry.parquet import read_records
from testbed.live.capture import capture_path
from testbed.results.ground_truth import CAUSES
from testbed.results.summary import Summary
from testbed.scenario.file import load
from tests.harness.captures import Evidence, evidence, lan_capture
from tests.harness.live_runs import ROOT, Capture, folder_of, refused, run_all, run_schemes
from tests.harness.scenarios import scenario, written
from tests.harness.steered import ENDLESS, Drive
from tests.harness.tshark import column, needs_tshark, rows
from tests.hosts.harness import needs_network

pytestmark = [*needs_network, pytest.mark.light]


def download(folder: Path, **changes: Any) -> Summary:
    """A bulk transfer to the mobile host, which arrives intact."""
    [summary] = run_all([scenario(**changes)], folder)
    assert summary.intact
    return summary


def guesses(summary: Summary, by: str) -> Mapping[Cause, Mapping[Cause, int]]:
    assert summary.confusion is not None
    return summary.confusion[by]


def bulk(**changes: Any) -> list[dict[str, Any]]:
    return [{"kind": "bulk", "direction": "down", **changes}]


def seen(folder: Path, scheme: str, tcp: str) -> Evidence:
    """What the captures of a run at one error per 16 KB show."""
    lan = folder / "lan.pcapng"
    with lan_capture(lan):
        summary = download(
            folder,
            mtu=1440,
            tcp=tcp,
            receive_buffer_bytes=32_768,
            capture=True,
            trace=False,
            link={"scheme": scheme},
            channel={"delay_ms": 5, "errors": {"model": "exponential", "mean_spacing_bytes": 16_384}},
            workloads=bulk(flow="down", duration_s=4.0, port=5001),
        )
    return evidence(capture_path(folder_of(summary), "down"), lan, 5001)


@needs_tshark
@pytest.mark.parametrize("tcp", ["reno", "reno-nosack"])
def test_no_dupack_of_a_wireless_loss_passes_snoop_while_it_is_repaired(tmp_path: Path, tcp: str) -> None:
    found = seen(tmp_path, "snoop", tcp)
    assert found.lost > 20
    assert found.dupacks_heard > 50
    assert found.passed_during_repair == 0


@needs_tshark
def test_without_help_they_all_pass(tmp_path: Path) -> None:
    found = seen(tmp_path, "none", "reno")
    assert found.passed_during_repair > 50
    assert 0 <= found.dupacks_heard - found.dupacks_passed <= 2
    # the receive buffer is Linux's to translate into a window
    assert 32_768 / 2 <= found.window <= 2 * 32_768


def congestion_losses(folder: Path, **link: Any) -> int:
    """Packets that the queue drops when two downloads cross a slow link behind it: 80 kbytes in 2 s."""
    summary = download(
        folder,
        tcp="reno",
        # of 256 octets of data
        mtu=296,
        link={"scheme": "queued", "queue": {"kind": "drop-tail", "limit_packets": 20}, **link},
        channel={"rate_bps": 384_000, "delay_ms": 5, "mac_buffer_bytes": 600},
        workloads=bulk(bytes=40_000, flows=2),
    )
    return summary.link["down"].congestion_losses


def test_kernels_connections_share_a_window_and_lose_nothing(tmp_path: Path) -> None:
    assert congestion_losses(tmp_path / "free") > 5
    assert congestion_losses(tmp_path / "shared", filters="window", window={"shared_bytes": 20 * 256}) == 0


ARQ: dict[str, Any] = {
    "channel": {"rate_bps": 3_000_000, "delay_ms": 8, "per": 0.05},
    "workloads": bulk(bytes=500_000),
}


def test_kernels_sender_is_spared_the_dupacks_of_late_segments(tmp_path: Path) -> None:
    bare, held = (
        download(tmp_path, tcp="cubic-nosack", link={"scheme": "arq", **filters}, **ARQ)
        for filters in ({}, {"filters": "dda"})
    )
    assert sum(direction.suppressed_dupacks for direction in bare.link.values()) == 0
    assert sum(direction.suppressed_dupacks for direction in held.link.values()) > 10
    assert guesses(held, "dda")["late"]["late"] > 3


def test_congestion_coherence_sees_the_kernels_ecn(tmp_path: Path) -> None:
    queue = {"kind": "red", "min_packets": 5, "max_packets": 5, "weight": 1, "mark_above": True}
    link = {"scheme": "arq", "filters": "cc", "queue": queue}
    longer = {**ARQ, "workloads": bulk(bytes=2_000_000)}
    truth = guesses(download(tmp_path, tcp="cubic-nosack-ecn", link=link, **longer), "cc")["late"]
    # a queue that is nearly always marking: most holes have a marked neighbour; of a few, none may have had one
    assert truth["congestion"] + truth["late"] > 12
    assert truth["congestion"] > 0


def test_the_marker_is_right_about_a_link_that_loses_in_two_ways(tmp_path: Path) -> None:
    scenarios = [
        scenario(
            tcp=tcp,
            link={"scheme": "none", "eln": "ends", "ip_queue_bytes": 9000},
            channel={"rate_bps": 2_000_000, "delay_ms": 20, "per": 0.01},
            workloads=bulk(duration_s=8),
        )
        for tcp in ("reno-nosack", "reno")
    ]
    for summary in run_all(scenarios, tmp_path):
        assert summary.on_time, summary.lateness
        rows, link = guesses(summary, "eln"), summary.link["down"]
        total = sum(rows[truth][guess] for truth in CAUSES for guess in CAUSES)
        right = sum(rows[cause][cause] for cause in CAUSES)
        # a segment that the queue drops and then the link loses, before anybody can know, is two losses and one truth
        assert rows["congestion"]["corruption"] + rows["late"]["corruption"] <= 1, rows
        # and one that is sent again within three segments looks like one out of order
        assert total - right <= 0.15 * total, rows
        assert rows["corruption"]["corruption"] > 0
        assert rows["congestion"]["congestion"] > 0
        assert sum(rows["corruption"].values()) <= link.residual_losses
        assert sum(rows["congestion"].values()) <= link.congestion_losses
        assert link.eln_marks >= rows["corruption"]["corruption"]
        assert summary.link["up"].eln_marks == 0
        marks = [row["eln_marks"] for row in read_records(folder_of(summary), "link") if row["link"] == "down"]
        assert marks == sorted(marks)
        assert marks[-1] == link.eln_marks


def test_eln_can_be_switched_while_a_run_goes_on(tmp_path: Path) -> None:
    channel = {"rate_bps": 4_000_000, "delay_ms": 10, "per": 0.05}
    with Drive(scenario(workloads=ENDLESS, link={"scheme": "none"}, channel=channel), tmp_path) as drive:
        sink, steer = drive.sink, drive.steering.set
        drive.until(lambda: sink.received() > 100_000)
        assert sink.links()[-1].eln_marks == 0

        steer("eln", True)
        drive.until(lambda: sink.links()[-1].eln_marks > 5)
        sent = sink.links()[-1].packets
        # the other schemes, too, while it is on
        steer("slacp", True)
        drive.until(lambda: sink.links()[-1].scheme == "slacp" and sink.links()[-1].established)
        drive.grows(sink.received, 50_000)
        sessions = sink.links()[-1].packets
        steer("eln", False)
        drive.until(lambda: len(sink.links()) > 1 and sink.links()[-1].packets > sessions)
        drive.grows(sink.received, 100_000)
        steer("slacp", False)
        drive.until(lambda: sink.links()[-1].scheme == "none")
        marks = sink.links()[-1].eln_marks
        drive.grows(sink.corrupted, 10)
        assert sink.links()[-1].eln_marks == marks
        assert sink.links()[-1].packets > sent

        summary = drive.end()
        assert summary.intact
        assert guesses(summary, "eln")["corruption"]["corruption"] > 0
        for side in ("up", "down"):
            counts = [link.eln_marks for link in sink.links(side)]
            assert counts == sorted(counts)


BYTES = 600_000
SCHEMES = ("split", "split-smart")
H1, H2 = str(AddressPlan().h1.ip), str(AddressPlan().h2.ip)
#: octets of the SMART option (RFC 6994) on an ACK: kind, length, ExID
SMART_OPTION = "tcp.options contains fd:0a:fa:df"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Summary]:
    """The same transfer to the mobile host with both schemes."""
    return run_schemes(
        SCHEMES,
        tmp_path_factory.mktemp("runs"),
        seed=5,
        tcp="reno-nosack",
        capture=True,
        trace=False,
        channel={"rate_bps": 4_000_000, "delay_ms": 10, "per": 0.03},
        workloads=bulk(bytes=BYTES),
    )


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_transfer_is_intact_and_its_acks_are_not_end_to_end(runs: dict[str, Summary], scheme: str) -> None:
    run = runs[scheme]
    # both ends' SHA-256 agree
    assert (run.finished, run.intact, run.flows[0].bytes) == (True, True, BYTES)
    assert not run.end_to_end_acks
    assert run.split is not None
    assert (run.split.connections, run.split.refusals) == (1, 0)
    assert 0 < run.split.peak_bytes <= 1.1 * 65_536
    assert run.link["down"].corruption_losses > 3
    # the base station repairs, and h2 notices nothing
    assert run.retransmissions == 0
    assert run.split.retransmissions >= 3


@needs_tshark
def test_smart_options_let_the_base_station_send_again_what_was_lost_and_no_more(runs: dict[str, Summary]) -> None:
    # the mobile host is a Reno without SACK; its station adds the options
    run = runs["split-smart"]
    up = capture_path(folder_of(run), "up")
    acks = rows(up, "frame.number", where=f"ip.src == {H1} && tcp.len == 0")
    options = rows(up, "frame.number", where=f"ip.src == {H1} && {SMART_OPTION}")
    assert len(options) > 0.9 * len(acks) > 100
    assert rows(capture_path(folder_of(runs["split"]), "up"), "frame.number", where=SMART_OPTION) == []
    down = capture_path(folder_of(run), "down")
    sent = column(down, "tcp.seq", where=f"ip.src == {H2} && tcp.len > 0 && frame.packet_flags_direction == 2")
    again = len(sent) - len(set(sent))
    lost = len(rows(down, "frame.number", where=f'ip.src == {H2} && tcp.len > 0 && frame.comment contains "channel"'))
    assert lost >= 3
    # a timeout without need may send one more
    assert lost <= again <= lost + 3


def test_without_nft_the_run_is_refused_before_there_is_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    path = written(tmp_path / "split.yaml", scenario(link={"scheme": "split"}))
    monkeypatch.setattr("hosts.kernel.split_routes._PATH", "/nowhere")
    said = refused(capsys, "run", path, "--tier", "emulated", "--out", tmp_path / "runs")
    assert said == "fadelab: nft is missing: apt-get install nftables\n"
    assert not (tmp_path / "runs").exists()


SCENARIO = ROOT / "scenarios" / "lt-tcp.yaml"


def test_two_megabytes_cross_a_link_that_loses_a_fifth(tmp_path: Path) -> None:
    # 200 s on this link is what SACK would take. A process that wakes late may cost a timeout, and so a second
    [summary] = run_all([load(SCENARIO, ("workloads.0.bytes=2000000",))], tmp_path)
    assert summary.on_time, summary.lateness
    assert summary.finished
    assert summary.intact
    # not at the connection's end: after a lost SYN the receiving host, which has no RTT sample, waits 3, 6, 12 s for
    # its FIN (RFC 6298, 5.7), which a fifth of the packets lost may ask for
    rows_of_flow = read_records(folder_of(summary), "flow")
    assert min(row["time_ns"] for row in rows_of_flow if row["bytes_received"] == 2_000_000) < 10 * SECOND


@pytest.mark.parametrize("linux", ["h1", "h2"])
def test_a_kernel_sees_a_plain_tcp(linux: str, tmp_path: Path) -> None:
    names = {"tcp": "reno", "tcp_h2": "user:lt-tcp"} if linux == "h1" else {"tcp": "user:lt-tcp", "tcp_h2": "reno"}
    settings = [f"{key}={value}" for key, value in names.items()]
    # 500 kB have 618 events, 1000 a second: one wake-up 14 ms late makes 7 of them late, more than a hundredth
    settings += ["workloads.0.bytes=2000000", "channel.errors.per=0.01"]
    [summary] = run_all([load(SCENARIO, settings)], tmp_path)
    assert summary.on_time, summary.lateness
    assert summary.finished
    assert summary.intact
