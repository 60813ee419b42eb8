"""Snoop with the kernel's TCP in real time: what two captures show of the dupacks of wireless losses."""

from pathlib import Path

import pytest

from testbed.live.capture import capture_path
from testbed.running import run_once
from tests.harness.captures import Evidence, evidence, lan_capture
from tests.harness.scenarios import scenario
from tests.harness.tshark import needs_tshark

pytestmark = [pytest.mark.net, needs_tshark, pytest.mark.light]

PORT = 5001


def seen(folder: Path, scheme: str, tcp: str) -> Evidence:
    """What the captures of a run at one error per 16 KB show."""
    lan = folder / "lan.pcapng"
    with lan_capture(lan):
        made = scenario(
            mtu=1440,
            tcp=tcp,
            receive_buffer_bytes=32_768,
            capture=True,
            trace=False,
            link={"scheme": scheme},
            channel={"delay_ms": 5, "errors": {"model": "exponential", "mean_spacing_bytes": 16_384}},
            workloads=[{"kind": "bulk", "flow": "down", "direction": "down", "duration_s": 4.0, "port": PORT}],
        )
        summary = run_once(made, folder, lambda progress: None)
    assert summary.intact
    assert summary.folder is not None
    return evidence(capture_path(Path(summary.folder), "down"), lan, PORT)


@pytest.mark.parametrize("tcp", ["reno", "reno-nosack"])
def test_no_dupack_of_a_wireless_loss_passes_snoop_while_it_is_repaired(tmp_path: Path, tcp: str) -> None:
    found = seen(tmp_path, "snoop", tcp)
    assert found.lost > 20
    assert found.dupacks_heard > 50
    assert found.passed_during_repair == 0


def test_without_help_they_all_pass(tmp_path: Path) -> None:
    found = seen(tmp_path, "none", "reno")
    assert found.passed_during_repair > 50
    assert 0 <= found.dupacks_heard - found.dupacks_passed <= 2
    # the receive buffer is Linux's to translate into a window
    assert 32_768 / 2 <= found.window <= 2 * 32_768
