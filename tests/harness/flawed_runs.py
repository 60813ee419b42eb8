"""A campaign on tier `model` with runs that are corrupt, cut off by `limit_s` and late, each by a fault of its own.

- Corrupt: the receiving host of workload `short` reads an octet more than arrived.
- Cut off: the transfer is far too long for its `limit_s`.
- Late: the driver in virtual time, which is never late, tells the lateness of a machine that is.
"""

from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hosts.engine.results import Received
from hosts.workloads.short import Short
from linklayer.station_counts import Lateness
from testbed.campaigns.engine import run_campaign
from testbed.model import model_run
from tests.harness.campaigns import InProcess, campaign_file, opened

SHORT = [{"kind": "short", "bytes": 5000}]
LONG = [{"kind": "bulk", "bytes": 50_000_000}]
#: four points, in this order: whole, cut off, late, corrupt
POINTS: list[dict[str, Any]] = [
    {"mtu": 600},
    {"mtu": 700, "workloads": LONG, "limit_s": 3},
    {"mtu": 800},
    {"mtu": 900, "workloads": SHORT},
]


def corrupt(patch: pytest.MonkeyPatch) -> None:
    """Let the receiving host of workload `short` read an octet more than arrived."""
    received = Short.received

    def corrupted(self: Short, agent: Any, flow: str, index: int, result: Received) -> None:
        received(self, agent, flow, index, replace(result, bytes=result.bytes + 1))

    patch.setattr(Short, "received", corrupted)


class _LateWorkers(InProcess):
    """Workers whose runs at the third point are late."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch

    def submit(self, call: Any, task: Any) -> "Future[Any]":
        late = task.run.startswith("2-")

        def lateness(events: int) -> Lateness:
            return Lateness(events, late_events=events, max_ns=50_000_000) if late else Lateness(events)

        self._patch.setattr(model_run, "Lateness", lateness)
        return super().submit(call, task)


def flawed(folder: Path, patch: pytest.MonkeyPatch, *, allow_late: bool = True, **changes: Any) -> Path:
    """Make the campaign, two runs of each point, and return its folder."""
    corrupt(patch)
    swept: dict[str, Any] = {"sweep": {"list": POINTS}, "seeds": {"count": 2}}
    with opened(folder / "out", campaign_file(folder, **{**swept, **changes})) as campaign:
        run_campaign(campaign, lambda: _LateWorkers(patch), allow_late=allow_late)
    return folder / "out"
