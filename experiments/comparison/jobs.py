"""A cell's scenario, and what is measured in a run of it.

Rules kept
- Throughput is payload at the receiver, in Mbps of 10^6 bit/s, from the first SYN until the last octet has been read.
- Goodput of a path is useful payload over all the payload that was sent on it, in percent: on the wireless one by the
  base station, lost packets included, on the wired one by the fixed host.
- What `--set` changes must leave a cell what its name says.

Left out: how a run works (`testbed/model`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from common.sides import Side
from experiments.comparison import parameters
from experiments.comparison.cells import Case
from testbed.model.run import simulate
from testbed.model.watch import Arrival, Segment
from testbed.papers.paper import Job, PaperError, Sample
from testbed.papers.scenarios import put
from testbed.results.summary import Summary
from testbed.scenario.file import apply_setting, validate
from testbed.scenario.schema import Scenario

#: data goes to the mobile host
DATA: Side = "down"


def job(case: Case, settings: Sequence[str]) -> Job:
    """Return what computes a replication of a cell. Raises FadelabError in one line for bad settings."""
    return Transfer(scenario(case, settings))


def scenario(case: Case, settings: Sequence[str] = ()) -> Scenario:
    """Return the scenario of a cell; its seed is a replication's to give."""
    raw: dict[str, Any] = {
        "name": "comparison",
        "tier": "model",
        "trace": False,
        "workloads": [{"kind": "bulk", "bytes": parameters.TRANSFER_BYTES, "direction": DATA}],
    }
    network, buffer = case.setting.split("-")
    for parameter in (*parameters.SCENARIO, *parameters.SETTINGS[network], *parameters.SETTINGS[buffer]):
        put(raw, parameter.key, parameter.value)
    scheme, tcp, eln = parameters.SCHEMES[case.scheme]
    errors: dict[str, Any] = {"model": "exponential", "mean_spacing_bytes": 1024 * case.spacing_kb}
    if case.burst is not None:
        errors = {"model": "bursts", "burst_frames": case.burst, "mean_spacing_bytes": 1024 * case.spacing_kb}
    for key, value in {"tcp": tcp, "link.scheme": scheme, "link.eln": eln, "channel.errors": errors}.items():
        put(raw, key, value)
    named = validate(raw, case.name)
    for setting in settings:
        apply_setting(raw, setting)
    made = validate(raw, case.name)
    what: dict[str, tuple[Any, Any]] = {
        "seed": (made.seed, named.seed),
        "tier": (made.tier, named.tier),
        "tcp": (made.tcps, named.tcps),
        "receive_buffer_bytes": (made.receive_buffer_bytes, named.receive_buffer_bytes),
        "link.scheme": (made.link.scheme, named.link.scheme),
        "link.eln": (made.link.eln, named.link.eln),
        "workloads": (made.workloads, named.workloads),
    }
    if case.place in ("table5", "figure12"):
        what["channel.down.errors"] = made.channel.direction(DATA).errors, named.channel.direction(DATA).errors
    for key, (now, then) in what.items():
        if now != then:
            raise PaperError(f"--set makes {key} of {case.name} another one: --only chooses cells, --seed seeds")
    return made


@dataclass(frozen=True, slots=True)
class Transfer:
    """The whole transfer: throughput, and the goodput of both paths."""

    scenario: Scenario

    def __call__(self, seed: int) -> Sample:
        """One replication."""
        meter = Meter()
        summary = simulate(self.scenario.model_copy(update={"seed": seed}), meter)
        if not summary.finished:
            # no transfer, no figures
            return Sample(math.inf, {**counts(summary), "wireless_goodput": math.inf, "wired_goodput": math.inf})
        return Sample(
            meter.useful_bytes * 8e3 / (meter.read_at - meter.started_at),
            {
                "wireless_goodput": 100 * meter.useful_bytes / meter.wireless_bytes,
                "wired_goodput": 100 * meter.useful_bytes / meter.wired_bytes,
                **counts(summary),
            },
        )


class Meter:
    """Counts the payload of a run with one flow: sent by its host, sent on the air, and read; watches it."""

    def __init__(self) -> None:
        #: when the SYN was sent, and when the receiver's application last read
        self.started_at = -1
        self.read_at = 0
        self.wired_bytes = 0
        self.wireless_bytes = 0
        self.useful_bytes = 0

    def sent(self, flow: str, segment: Segment, now: int) -> None:
        """A segment leaves the sender; the first is the SYN."""
        if self.started_at < 0:
            self.started_at = now
        self.wired_bytes += segment.length

    def received(self, flow: str, segment: Segment, now: int) -> None:
        """A segment comes back to the sender; nothing to this watch."""

    def delivered(self, flow: str, nbytes: int, now: int) -> None:
        """The receiver's application has read so much in all."""
        if nbytes > self.useful_bytes:
            self.useful_bytes, self.read_at = nbytes, now

    def carried(self, side: Side, arrival: Arrival[Any], now: int) -> None:
        """A frame has crossed the air, or was lost there."""
        if side == DATA:
            self.wireless_bytes += arrival.frame.payload.length


def counts(summary: Summary) -> dict[str, float]:
    """What explains a figure: the counters of the fixed host's TCP, and of the link in the direction of the data."""
    data = summary.link[DATA]
    return {
        "tcp_retransmissions": summary.retransmissions,
        "tcp_timeouts": summary.timeouts,
        "frames": data.frames,
        "congestion_losses": data.congestion_losses,
        "corruption_losses": data.corruption_losses,
        "link_retransmissions": data.retransmissions,
    }
