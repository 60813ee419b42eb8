"""A cell's scenario, and the measurement in a run of it.

Rules kept
- A transfer's time is the paper's: from its first SYN until the sender has received the receiver's FIN.
- The time of a first part ends when the sender has its acknowledgement.
- The seed draws what differs between replications: the wired delay, the times of the first SYNs, the excessive delays.

Left out: how a run works (`testbed/model`).
"""

import math
from collections.abc import Sequence
from random import Random
from typing import Any

from common.sides import Side
from experiments.slowlink import parameters
from experiments.slowlink.cells import Case
from testbed.model.watch import Segment, Watch
from testbed.papers import runs
from testbed.papers.results import Job, Sample
from testbed.papers.watching import acknowledged
from testbed.results.summary import Summary
from testbed.scenario.schema import Scenario
from testbed.simulation import simulate

#: data goes to the mobile host
DATA: Side = "down"


def job(case: Case, settings: Sequence[str]) -> Job:
    """Return the computation of a replication of a cell. Raises FadelabError in one line for bad settings."""
    return runs.Measurement(scenario(case, settings), one if case.place == "one" else four)


def scenario(case: Case, settings: Sequence[str] = ()) -> Scenario:
    """Return the scenario of a cell; a replication gives its seed and its random draws."""
    variant = parameters.VARIANTS[case.variant]
    single = case.place == "one"
    bulk = {
        "kind": "bulk",
        "bytes": parameters.ONE_BYTES if single else parameters.FOUR_BYTES,
        "direction": DATA,
    }
    values: dict[str, Any] = {
        "name": "slowlink",
        "workloads": [bulk] * (1 if single else parameters.FLOWS),
        "tcp": variant.tcp,
        "link.queue": {"kind": "drop-tail", "limit_packets": parameters.QUEUES[case.queue]},
    }
    fixed = ["tcp", "link.scheme", "link.queue", "link.filters", "workloads"]
    if variant.window != "none":
        [other] = (queue for queue in parameters.QUEUES if queue != case.queue)
        values["link.filters"] = ["window"]
        values["link.window.shared_bytes"] = parameters.window_bytes(case.queue if variant.window == "own" else other)
        fixed.append("link.window")
    choices = (*parameters.SCENARIO, *parameters.DELAYS[case.delays])
    return runs.scenario(case.name, values, choices, settings, fixed)


def drawn(scenario: Scenario) -> Scenario:
    """Return a replication's scenario with the values that its seed draws."""
    rng = Random(f"{scenario.seed}/slowlink")
    wired = scenario.wired.model_copy(update={"delay_ms": rng.uniform(*parameters.WIRED_DELAY_MS)})
    workloads = tuple(
        part.model_copy(update={"start_s": rng.uniform(*parameters.STARTS_S)}) for part in scenario.workloads
    )
    return scenario.model_copy(update={"wired": wired, "workloads": workloads})


def one(scenario: Scenario) -> Sample:
    """Measure a single transfer: all of it, and its first 20 KB."""
    clock = FirstBytes(parameters.FIRST_BYTES)
    summary = simulate(drawn(scenario), clock)
    return Sample(
        summary.flows[0].duration_s if summary.finished else math.inf,
        {"first_s": clock.latest_s(1), **counts(summary)},
    )


def four(scenario: Scenario) -> Sample:
    """Measure parallel transfers: the slowest, the fastest, and the latest beginning."""
    clock = FirstBytes(parameters.START_BYTES)
    summary = simulate(drawn(scenario), clock)
    times = [flow.duration_s if flow.finished else math.inf for flow in summary.flows]
    return Sample(
        max(times),
        {"fastest_s": min(times), "start_s": clock.latest_s(len(times)), **counts(summary)},
    )


class FirstBytes(Watch):
    """Notes when the first `enough` octets of each flow are acknowledged, since the flow's first SYN."""

    def __init__(self, enough: int) -> None:
        self._enough = enough
        self._iss: dict[str, int] = {}
        self._started_at: dict[str, int] = {}
        self._times_ns: dict[str, int] = {}

    def sent(self, flow: str, segment: Segment, now: int) -> None:
        if flow not in self._iss:
            self._iss[flow], self._started_at[flow] = segment.seq, now

    def received(self, flow: str, segment: Segment, now: int) -> None:
        if flow not in self._times_ns and (acknowledged(segment, self._iss[flow]) or 0) >= self._enough:
            self._times_ns[flow] = now - self._started_at[flow]

    def latest_s(self, flows: int) -> float:
        """The time of the last of so many flows, s; infinite where one has not come so far."""
        return max(self._times_ns.values()) * 1e-9 if len(self._times_ns) == flows else math.inf


def counts(summary: Summary) -> dict[str, float]:
    """Return the counters that explain a time."""
    return runs.counters(summary, DATA, "congestion_losses")
