"""A cell's scenario, and what is measured in a run of it.

Rules kept
- Times are virtual, in seconds: from the first SYN to the moment the last flow has ended (tables 2 and 4), or until the
  first 50 kbytes are there (table 3).
- What `--set` changes must leave a cell what its name says.

Left out: how a run works (`testbed/model`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from experiments.slacp import parameters
from experiments.slacp.cells import Case
from testbed.model.run import simulate
from testbed.papers.paper import Job, PaperError, Sample
from testbed.papers.scenarios import put
from testbed.results.summary import Summary
from testbed.scenario.file import apply_setting, validate
from testbed.scenario.schema import Scenario

NS = 1e-9


def job(case: Case, settings: Sequence[str]) -> Job:
    """Return what computes a replication of a cell. Raises FadelabError in one line for bad settings."""
    made = scenario(case, settings)
    if case.table == 3:
        return FirstBytes(made)
    if case.tcp in parameters.WITH_PREDECESSOR:
        return LastTransfer(made)
    return Elapsed(made)


def scenario(case: Case, settings: Sequence[str] = ()) -> Scenario:
    """Return the scenario of a cell; its seed is a replication's to give."""
    raw: dict[str, Any] = {"name": "slacp", "tier": "model", "trace": False, "workloads": [_workload(case)]}
    for parameter in parameters.SCENARIO:
        put(raw, parameter.key, parameter.value)
    cell = {
        "tcp": parameters.TCP[case.tcp],
        "link.scheme": case.link,
        "channel.up.assignment.kind": case.dama,
        **{f"channel.{side}.errors": {"model": case.errors} for side in parameters.ERROR_DIRECTIONS},
    }
    for key, value in cell.items():
        put(raw, key, value)
    for setting in settings:
        apply_setting(raw, setting)
    made = validate(raw, case.name)
    up = made.channel.direction("up")
    what = {
        "seed": (made.seed, Scenario.model_fields["seed"].default),
        "tier": (made.tier, "model"),
        "tcp": (made.tcp, cell["tcp"]),
        "link.scheme": (made.link.scheme, case.link),
        "channel.up.assignment": (up.assignment.kind, case.dama),
        "channel.up.errors": (up.errors.model, case.errors if "up" in parameters.ERROR_DIRECTIONS else "none"),
    }
    for key, (now, named) in what.items():
        if now != named:
            raise PaperError(f"--set makes {key} of {case.name} {now}: --only chooses cells, --seed seeds")
    return made


def _workload(case: Case) -> dict[str, Any]:
    if case.workload == "4x250KB":
        return {"kind": "bulk", "bytes": parameters.QUARTER_MB, "flows": 4}
    if case.tcp in parameters.WITH_PREDECESSOR:
        return {"kind": "short", "bytes": parameters.ONE_MB, "count": 2}
    return {"kind": "bulk", "bytes": parameters.ONE_MB}


@dataclass(frozen=True, slots=True)
class Elapsed:
    """From the first SYN to the end of the last flow."""

    scenario: Scenario

    def __call__(self, seed: int) -> Sample:
        """One replication."""
        summary = simulate(seeded(self.scenario, seed))
        start_s, end_s = min(flow.start_s for flow in summary.flows), max(flow.end_s for flow in summary.flows)
        return Sample(end_s - start_s if summary.finished else math.inf, counts(summary))


@dataclass(frozen=True, slots=True)
class LastTransfer:
    """The last of several transfers, one after the other on connections of their own."""

    scenario: Scenario

    def __call__(self, seed: int) -> Sample:
        """One replication; the counters are of all transfers."""
        summary = simulate(seeded(self.scenario, seed))
        return Sample(summary.flows[0].transfer_s[-1] if summary.finished else math.inf, counts(summary))


@dataclass(frozen=True, slots=True)
class FirstBytes:
    """From the first SYN until the transfer's first 50 kbytes are there; the rest is not run."""

    scenario: Scenario

    def __call__(self, seed: int) -> Sample:
        """One replication."""
        clock = _FirstBytesClock(parameters.FIRST_BYTES, parameters.FIRST_BYTES_AT == "sender")
        try:
            simulate(seeded(self.scenario, seed), clock)
        except _Reached as reached:
            return Sample(reached.elapsed_ns * NS)
        return Sample(math.inf)


class _Reached(Exception):  # noqa: N818 - no error: it ends a run that has shown what it is for
    """The bytes are there."""

    def __init__(self, elapsed_ns: int) -> None:
        super().__init__()
        self.elapsed_ns = elapsed_ns


class Numbers(Protocol):
    """What a watch reads of a TCP segment."""

    seq: int
    ack: int
    length: int


class _FirstBytesClock:
    """Watches one flow and raises `_Reached`."""

    def __init__(self, enough: int, at_sender: bool) -> None:
        self._enough, self._at_sender = enough, at_sender
        self._started_at = 0
        self._iss: int | None = None

    def sent(self, flow: str, segment: Numbers, now: int) -> None:
        """A segment leaves the sender; the first is the SYN."""
        if self._iss is None:
            self._iss, self._started_at = segment.seq, now

    def received(self, flow: str, segment: Numbers, now: int) -> None:
        """A segment comes back to the sender."""
        assert self._iss is not None
        # the SYN takes one number
        acked = (segment.ack - self._iss - 1) % 2**32
        if self._at_sender and self._enough <= acked < 2**31:
            raise _Reached(now - self._started_at)

    def delivered(self, flow: str, nbytes: int, now: int) -> None:
        """The receiver has so much in order."""
        if not self._at_sender and nbytes >= self._enough:
            raise _Reached(now - self._started_at)

    def carried(self, side: str, arrival: object, now: int) -> None:
        """A frame on the air; nothing to this watch."""


def seeded(scenario: Scenario, seed: int) -> Scenario:
    """Return the scenario of one replication."""
    return scenario.model_copy(update={"seed": seed})


def counts(summary: Summary) -> Mapping[str, float]:
    """What explains a time: the counters of TCP, and of the link in the direction of the data."""
    up = summary.link["up"]
    return {
        "tcp_retransmissions": summary.retransmissions,
        "tcp_timeouts": summary.timeouts,
        "packets": up.packets,
        "congestion_losses": up.congestion_losses,
        "corruption_losses": up.corruption_losses,
        "residual_losses": up.residual_losses,
        "link_retransmissions": up.retransmissions,
        "fec_frames": up.fec_frames,
        "fec_repairs": up.fec_repairs,
    }
