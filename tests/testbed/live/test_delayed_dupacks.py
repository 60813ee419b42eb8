"""Dupacks that wait, in real time, between the kernel's TCP and the TAP, on link ARQ that delivers out of order.

A loaded machine may be late, so `on_time` is not asked for, and goodputs are not compared: docs/filters.md does that.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from linklayer.filters.filter import Cause
from testbed.results.summary import Summary
from testbed.running import run_once
from tests.harness.scenarios import scenario
from tests.hosts.harness import needs_network

pytestmark = [*needs_network, pytest.mark.light]


def download(folder: Path, **changes: Any) -> Summary:
    """500 kbytes in 2 s, seed 1, 5 % of the frames lost in each direction."""
    link = {"scheme": "arq", **changes.pop("link")}
    run = scenario(
        tier="emulated",
        link=link,
        channel={"rate_bps": 3_000_000, "delay_ms": 8, "per": 0.05},
        workloads=[{"kind": "bulk", "direction": "down", "bytes": 500_000}],
        **changes,
    )
    return run_once(run, folder, lambda progress: None)


def suppressed(summary: Summary) -> int:
    return sum(direction.suppressed_dupacks for direction in summary.link.values())


def late_segments(summary: Summary, by: str) -> Mapping[Cause, int]:
    """The guesses about segments that were late."""
    assert summary.confusion is not None
    return summary.confusion[by]["late"]


def test_kernels_sender_is_spared_the_dupacks_of_late_segments(tmp_path: Path) -> None:
    bare = download(tmp_path / "bare", tcp="cubic-nosack", link={})
    assert bare.intact
    assert suppressed(bare) == 0
    held = download(tmp_path / "held", tcp="cubic-nosack", link={"filters": "dda"})
    assert held.intact
    assert suppressed(held) > 10
    assert late_segments(held, "dda")["late"] > 3


def test_congestion_coherence_sees_the_kernels_ecn(tmp_path: Path) -> None:
    queue = {"kind": "red", "min_packets": 5, "max_packets": 5, "weight": 1, "mark_above": True}
    summary = download(tmp_path, tcp="cubic-nosack-ecn", link={"filters": "cc", "queue": queue})
    assert summary.intact
    truth = late_segments(summary, "cc")
    # a queue that is nearly always marking: most holes have a marked neighbour
    assert truth["congestion"] + truth["late"] > 3
    assert truth["congestion"] > 0
