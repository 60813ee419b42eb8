"""Snoop with the kernel's TCP in real time: what two captures show of the dupacks of wireless losses."""

from pathlib import Path

import pytest

from benchmarks.base_station import PORT, scenario
from testbed.live.capture import capture_path
from testbed.running import run_once
from tests.harness.captures import Evidence, evidence, lan_capture
from tests.harness.tshark import needs_tshark

pytestmark = [pytest.mark.net, needs_tshark, pytest.mark.light]


def seen(folder: Path, scheme: str, tcp: str) -> Evidence:
    """What the captures of a run at one error per 16 KB show."""
    lan = folder / "lan.pcapng"
    with lan_capture(lan):
        summary = run_once(scenario(scheme, tcp, 16_384, 1, 4.0), folder, lambda progress: None)
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
