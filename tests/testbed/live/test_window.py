"""The shared advertised window in real time, between the kernel's TCP and the TAP: no slow-start overshoot.

A loaded machine may be late, so `on_time` is not asked for; a queue that is not overrun loses nothing, late or not.
"""

from pathlib import Path
from typing import Any

import pytest

from testbed.results.summary import Summary
from testbed.running import run_once
from tests.harness.scenarios import scenario
from tests.hosts.harness import needs_network

pytestmark = [*needs_network, pytest.mark.light]

QUEUE = 20
#: of 256 octets of data
MTU, MSS = 296, 256


def downloads(folder: Path, **link: Any) -> Summary:
    """Two downloads across a slow link behind a short queue: 80 kbytes in 2 s."""
    run = scenario(
        tier="emulated",
        tcp="reno",
        mtu=MTU,
        link={"scheme": "queued", "queue": {"kind": "drop-tail", "limit_packets": QUEUE}, **link},
        channel={"rate_bps": 384_000, "delay_ms": 5, "mac_buffer_bytes": 600},
        workloads=[{"kind": "bulk", "direction": "down", "bytes": 40_000, "flows": 2}],
    )
    return run_once(run, folder, lambda progress: None)


def test_kernels_connections_share_a_window_and_lose_nothing(tmp_path: Path) -> None:
    free = downloads(tmp_path / "free")
    assert free.intact
    assert free.link["down"].congestion_losses > 5
    shared = downloads(tmp_path / "shared", filters="window", window={"shared_bytes": QUEUE * MSS})
    assert shared.intact
    assert shared.link["down"].congestion_losses == 0
