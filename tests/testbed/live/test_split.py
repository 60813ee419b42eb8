"""Whole runs in real time with a base station that splits connections."""

from pathlib import Path

import pytest

from hosts.kernel.network import AddressPlan
from testbed.live.capture import capture_path
from testbed.results.summary import Summary
from tests.harness.live_runs import folder_of, refused, run_schemes
from tests.harness.scenarios import scenario, written
from tests.harness.tshark import column, needs_tshark, rows
from tests.hosts.harness import needs_network

pytestmark = [*needs_network, pytest.mark.light]

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
        workloads=[{"kind": "bulk", "bytes": BYTES, "direction": "down"}],
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "split.yaml", scenario(link={"scheme": "split"}))
    monkeypatch.setattr("hosts.kernel.split_routes._PATH", "/nowhere")
    said = refused(capsys, "run", path, "--tier", "emulated", "--out", tmp_path / "runs")
    assert said == "fadelab: nft is missing: apt-get install nftables\n"
    assert not (tmp_path / "runs").exists()
