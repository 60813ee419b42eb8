"""Our TCP and Linux's in real runs on tier emulated, as their results and Wireshark tell."""

import os
from pathlib import Path

import pytest

from common.sides import SIDES
from testbed.live.capture import capture_path
from tests.hosts.harness import needs_network
from tests.interop import Handshake, handshake, wrong
from tests.testbed.live_runs import complaint, fadelab, folder_of, left_behind, run_all
from tests.testbed.samples import scenario
from tests.tshark import needs_tshark

pytestmark = [*needs_network, needs_tshark, pytest.mark.light]

SIZE = 1_000_000
PORTS = {"up": 5001, "down": 6001}
EVERYTHING = Handshake(timestamps=True, sack=True, window_scaling=True, ecn=True, mss=(1460, 1460))


@pytest.mark.parametrize("per", [0, 0.02])
@pytest.mark.parametrize("tcp_h2", ["cubic-ecn", "user:sack-ecn"])
def test_both_ways_across_a_lossy_link(per: float, tcp_h2: str, tmp_path: Path) -> None:
    made = scenario(
        seed=3,
        tcp="user:sack-ecn",
        tcp_h2=tcp_h2,
        capture=True,
        link={"scheme": "none"},
        # nothing is lost but by the channel
        channel={"rate_bps": 20_000_000, "delay_ms": 5, "per": per, "bare_buffer_bytes": 2 * SIZE},
        workloads=[
            {"kind": "bulk", "flow": flow, "direction": flow, "bytes": SIZE, "port": port}
            for flow, port in PORTS.items()
        ],
    )
    [summary] = run_all([made], tmp_path)
    assert left_behind(os.getpid()) == []
    assert summary.tcp == ("user:sack-ecn and cubic-ecn" if tcp_h2 == "cubic-ecn" else "user:sack-ecn")
    assert (summary.finished, summary.intact) == (True, True)
    assert [(flow.flow, flow.bytes) for flow in summary.flows] == [("up", SIZE), ("down", SIZE)]
    assert all((flow.retransmits > 0) == (per > 0) for flow in summary.flows)
    captures = [capture_path(folder_of(summary), side) for side in SIDES]
    assert [wrong(capture, PORTS.values()) for capture in captures] == [0, 0]
    # what h1 asked for left it at the terminal, and what h2 agreed to left it at the base station
    assert {handshake(captures[0], port) for port in PORTS.values()} == {EVERYTHING}


def test_a_tcp_that_nobody_has_is_one_line() -> None:
    outcome = fadelab("run", "scenarios/lossy-link.yaml", "--set", "tcp=user:vegas")
    assert "tcp 'user:vegas' is no profile: choose from reference" in complaint(outcome)
