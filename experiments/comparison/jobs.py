"""A cell's scenario, and the measurement in a run of it.

Rules kept
- Throughput is payload at the receiver, in Mbps of 10^6 bit/s, from the first SYN until the last octet has been read.
- Goodput of a path is useful payload over all the payload that was sent on it, in percent: on the wireless one by the
  base station, lost packets included, on the wired one by the fixed host.

Left out: how a run works (`testbed/model`).
"""

import math
from collections.abc import Sequence
from typing import Any

from common.sides import Side
from experiments.comparison import parameters
from experiments.comparison.cells import Case
from testbed.model.watch import Arrival, Segment
from testbed.papers import runs
from testbed.papers.results import Job, Sample
from testbed.papers.watching import SinceSyn
from testbed.scenario.schema import Scenario
from testbed.simulation import simulate

#: data goes to the mobile host
DATA: Side = "down"


def job(case: Case, settings: Sequence[str]) -> Job:
    """Return the computation of a replication of a cell. Raises FadelabError in one line for bad settings."""
    return runs.Measurement(scenario(case, settings), transfer)


def scenario(case: Case, settings: Sequence[str] = ()) -> Scenario:
    """Return the scenario of a cell; its seed is a replication's to give."""
    network, buffer = case.setting.split("-")
    scheme, tcp, eln = parameters.SCHEMES[case.scheme]
    errors: dict[str, Any] = {"model": "exponential", "mean_spacing_bytes": 1024 * case.spacing_kb}
    if case.burst is not None:
        errors |= {"model": "bursts", "burst_frames": case.burst}
    values = {
        "name": "comparison",
        "workloads": [{"kind": "bulk", "bytes": parameters.TRANSFER_BYTES, "direction": DATA}],
        "tcp": tcp,
        "link.scheme": scheme,
        "link.eln": eln,
        "channel.errors": errors,
    }
    fixed = ["tcp", "receive_buffer_bytes", "link.scheme", "link.eln", "workloads"]
    if case.place in ("table5", "figure12"):
        fixed.append("channel.down.errors")
    choices = (*parameters.SCENARIO, *parameters.SETTINGS[network], *parameters.SETTINGS[buffer])
    return runs.scenario(case.name, values, choices, settings, fixed)


def transfer(scenario: Scenario) -> Sample:
    """Measure the whole transfer: throughput, the goodput of both paths, and counters that explain them."""
    meter = Meter()
    summary = simulate(scenario, meter)
    counts = runs.counters(summary, DATA, "frames", "congestion_losses", "corruption_losses")
    if not summary.finished:
        # no transfer, no figures
        return Sample(math.inf, {**counts, "wireless_goodput": math.inf, "wired_goodput": math.inf})
    return Sample(
        meter.useful_bytes * 8e3 / (meter.read_at - meter.started_at),
        {
            "wireless_goodput": 100 * meter.useful_bytes / meter.wireless_bytes,
            "wired_goodput": 100 * meter.useful_bytes / meter.wired_bytes,
            **counts,
        },
    )


class Meter(SinceSyn):
    """Counts the payload of a run with one flow: sent by its host, sent on the air, and read."""

    def __init__(self) -> None:
        super().__init__()
        #: when the receiver's application last read
        self.read_at = 0
        self.wired_bytes = 0
        self.wireless_bytes = 0
        self.useful_bytes = 0

    def sent(self, flow: str, segment: Segment, now: int) -> None:
        super().sent(flow, segment, now)
        self.wired_bytes += segment.length

    def delivered(self, flow: str, nbytes: int, now: int) -> None:
        if nbytes > self.useful_bytes:
            self.useful_bytes, self.read_at = nbytes, now

    def carried(self, side: Side, arrival: Arrival[Any], now: int) -> None:
        if side == DATA:
            self.wireless_bytes += arrival.frame.payload.length
