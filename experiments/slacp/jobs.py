"""A cell's scenario, and the measurement in a run of it.

Rules kept
- Times are virtual, in seconds: from the first SYN to the moment the last flow has ended (tables 2 and 4), or until the
  first 50 kbytes are there (table 3).

Left out: how a run works (`testbed/model`).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.slacp import parameters
from experiments.slacp.cells import Case
from testbed.model.watch import Segment
from testbed.papers import runs
from testbed.papers.results import Job, Sample
from testbed.papers.watching import SinceSyn, octet
from testbed.results.summary import Summary
from testbed.scenario.schema import Scenario
from testbed.simulation import simulate

NS = 1e-9


def job(case: Case, settings: Sequence[str]) -> Job:
    """Return the computation of a replication of a cell. Raises FadelabError in one line for bad settings."""
    repeats = case.tcp in parameters.WITH_PREDECESSOR
    measure = first_bytes if case.table == 3 else last_transfer if repeats else elapsed
    return runs.Measurement(scenario(case, settings), measure)


def scenario(case: Case, settings: Sequence[str] = ()) -> Scenario:
    """Return the scenario of a cell; its seed is a replication's to give."""
    values = {
        "name": "slacp",
        "workloads": [_workload(case)],
        "tcp": parameters.TCP[case.tcp],
        "link.scheme": case.link,
        "channel.up.assignment.kind": case.dama,
        **{f"channel.{side}.errors": {"model": case.errors} for side in parameters.ERROR_DIRECTIONS},
    }
    fixed = ("tcp", "link.scheme", "channel.up.assignment.kind", "channel.up.errors")
    return runs.scenario(case.name, values, parameters.SCENARIO, settings, fixed)


def _workload(case: Case) -> dict[str, Any]:
    if case.workload == "4x250KB":
        return {"kind": "bulk", "bytes": parameters.QUARTER_MB, "flows": 4}
    if case.tcp in parameters.WITH_PREDECESSOR:
        return {"kind": "short", "bytes": parameters.ONE_MB, "count": 2}
    return {"kind": "bulk", "bytes": parameters.ONE_MB}


def elapsed(scenario: Scenario) -> Sample:
    """Measure from the first SYN to the end of the last flow."""
    summary = simulate(scenario)
    start_s, end_s = min(flow.start_s for flow in summary.flows), max(flow.end_s for flow in summary.flows)
    return Sample(end_s - start_s if summary.finished else math.inf, counts(summary))


def last_transfer(scenario: Scenario) -> Sample:
    """Measure the last of several transfers, each on its own connection; the counters are of all transfers."""
    summary = simulate(scenario)
    return Sample(summary.flows[0].transfer_s[-1] if summary.finished else math.inf, counts(summary))


def first_bytes(scenario: Scenario) -> Sample:
    """Measure from the first SYN until the transfer's first 50 kbytes are there; the rest is not run."""
    try:
        simulate(scenario, _FirstBytesClock(parameters.FIRST_BYTES, parameters.FIRST_BYTES_AT == "sender"))
    except _Reached as reached:
        return Sample(reached.elapsed_ns * NS)
    return Sample(math.inf)


class _Reached(Exception):  # noqa: N818 - not an error: it ends a run that has given its result
    """The bytes are there."""

    def __init__(self, elapsed_ns: int) -> None:
        super().__init__()
        self.elapsed_ns = elapsed_ns


class _FirstBytesClock(SinceSyn):
    """Watches one flow and raises `_Reached`."""

    def __init__(self, enough: int, at_sender: bool) -> None:
        super().__init__()
        self._enough, self._at_sender = enough, at_sender

    def received(self, flow: str, segment: Segment, now: int) -> None:
        if self._at_sender and self._enough <= octet(segment.ack, self.iss) < 2**31:
            raise _Reached(now - self.started_at)

    def delivered(self, flow: str, nbytes: int, now: int) -> None:
        if not self._at_sender and nbytes >= self._enough:
            raise _Reached(now - self.started_at)


def counts(summary: Summary) -> Mapping[str, float]:
    """Return the counters that explain a time."""
    names = ("packets", "congestion_losses", "corruption_losses", "residual_losses", "fec_frames", "fec_repairs")
    return runs.counters(summary, "up", *names)
