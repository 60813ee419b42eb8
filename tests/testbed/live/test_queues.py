"""The queue that a scenario chooses, at the stations of a live tier: real octets are marked, or dropped."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.live_runs import left_behind, run_all
from tests.harness.scenarios import scenario
from tests.hosts.harness import needs_network

pytestmark = needs_network


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    yield
    assert left_behind(os.getpid()) == []


@pytest.mark.light
def test_red_marks_ecn_flows_and_drops_others(tmp_path: Path) -> None:
    # what finds ten packets waiting is notified
    step = {"kind": "red", "weight": 1, "min_packets": 10, "max_packets": 10, "mark_above": True}
    runs = [
        scenario(
            tcp=tcp,
            link={"scheme": "slacp", "queue": step},
            channel={"rate_bps": 4_000_000, "delay_ms": 20},
            workloads=[{"kind": "bulk", "bytes": 1_000_000}],
            timing={"late_fraction": 1.0},
        )
        for tcp in ("cubic-ecn", "cubic")
    ]
    marked, lost = run_all(runs, tmp_path)
    assert marked.finished
    assert lost.finished
    assert (marked.retransmissions, marked.link["up"].congestion_losses) == (0, 0)
    assert lost.link["up"].congestion_losses > 0
    assert lost.retransmissions >= lost.link["up"].congestion_losses
