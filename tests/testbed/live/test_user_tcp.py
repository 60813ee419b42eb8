"""Our TCP and Linux's in real runs on tier emulated, as their results and Wireshark tell."""

from itertools import product

import pytest

from common.sides import SIDES
from testbed.live.capture import capture_path
from testbed.results.summary import Summary
from tests.harness.interop import Handshake, handshakes, wrong
from tests.harness.live_runs import folder_of, run_all
from tests.harness.scenarios import scenario
from tests.harness.tshark import needs_tshark
from tests.hosts.harness import needs_network

pytestmark = [*needs_network, needs_tshark, pytest.mark.light]

SIZE = 1_000_000
PORTS = {"up": 5001, "down": 6001}
EVERYTHING = Handshake(timestamps=True, sack=True, window_scaling=True, ecn=True, mss=(1460, 1460))


KINDS = tuple(product(("cubic-ecn", "user:sack-ecn"), (0, 0.02)))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, float], Summary]:
    """Transfers both ways at once, by the TCP of h2 and the share of frames that the channel loses."""
    work = [
        {"kind": "bulk", "flow": flow, "direction": flow, "bytes": SIZE, "port": port} for flow, port in PORTS.items()
    ]
    scenarios = [
        scenario(
            seed=3,
            tcp="user:sack-ecn",
            tcp_h2=tcp_h2,
            capture=True,
            link={"scheme": "none"},
            # nothing is lost but by the channel
            channel={"rate_bps": 20_000_000, "delay_ms": 5, "per": per, "bare_buffer_bytes": 2 * SIZE},
            workloads=work,
        )
        for tcp_h2, per in KINDS
    ]
    return dict(zip(KINDS, run_all(scenarios, tmp_path_factory.mktemp("runs")), strict=True))


@pytest.mark.parametrize(("tcp_h2", "per"), KINDS)
def test_both_ways_across_a_lossy_link(runs: dict[tuple[str, float], Summary], tcp_h2: str, per: float) -> None:
    summary = runs[tcp_h2, per]
    assert summary.tcp == ("user:sack-ecn and cubic-ecn" if tcp_h2 == "cubic-ecn" else "user:sack-ecn")
    assert (summary.finished, summary.intact) == (True, True)
    assert [(flow.flow, flow.bytes) for flow in summary.flows] == [("up", SIZE), ("down", SIZE)]
    assert all((flow.retransmits > 0) == (per > 0) for flow in summary.flows)
    captures = [capture_path(folder_of(summary), side) for side in SIDES]
    assert [wrong(capture, PORTS.values()) for capture in captures] == [0, 0]
    # what h1 asked for left it at the terminal, and what h2 agreed to left it at the base station
    assert handshakes(captures[0]) == dict.fromkeys(PORTS.values(), EVERYTHING)
