"""The network of a case, and the measurement in a run of it.

Rules kept
- Goodput is payload that the ten receivers' applications have read, in Mbps over the whole run; an octet counts once.
  Throughput is all that the bottleneck has sent, headers, retransmissions and FEC included. The paper's megabit has
  2^20 bits (docs/papers/lt-tcp.md).
- Timeouts are those of a flow, the mean of the ten. So are the paper's, by their number: SACK at 10 % loses a tenth of
  its retransmissions and sends 275 packets/s, which is far more than 267 timeouts of all flows in 1000 s.
- FEC overhead is a share of all segments with payload, in percent.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from common.units import MS, SECOND
from experiments.lt_tcp import parameters
from experiments.lt_tcp.cells import Case
from linklayer.queues.red import RedOptions
from testbed.model.bulk_flows import BulkFlows, BulkFlowsConfig
from testbed.model.topologies import DumbbellConfig
from testbed.papers.results import Job, PaperError, Sample

#: options of RED, each a parameter
_RED = ("min_packets", "max_packets", "max_p", "weight", "gentle", "mark_above")

#: values of parameters.NETWORK by key
Values = tuple[tuple[str, Any], ...]


def job(case: Case, settings: Sequence[str]) -> Job:
    """Return the computation of a replication of a cell. Raises PaperError in one line for bad settings."""
    return Run(case.scheme, case.per_pct, values(settings))


def values(settings: Sequence[str]) -> Values:
    """Return the network's values, some changed by `key=value`. Raises PaperError in one line."""
    found = {parameter.key: parameter.value for parameter in parameters.NETWORK}
    for setting in settings:
        key, _, text = setting.partition("=")
        if key not in found:
            raise PaperError(f"--set {setting}: choose from {', '.join(found)}")
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        found[key] = _like(found[key], value, setting, 0 if key in parameters.MAY_BE_0 else 1e-12)
    if not found["red_min_packets"] <= found["red_max_packets"]:
        raise PaperError("--set red_min_packets: red_max_packets at most")
    return tuple(found.items())


def _like(default: Any, value: Any, setting: str, least: float) -> Any:
    """Return a value of the default's type. Raises PaperError in one line."""
    key = setting.partition("=")[0]
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise PaperError(f"--set {setting}: {key} takes true or false")
        return value
    if type(value) not in (int, type(default)) or not least <= value < 1e12:
        raise PaperError(f"--set {setting}: {key} takes a number {'from' if not least else 'above'} 0, as {default}")
    return type(default)(value)


@dataclass(frozen=True, slots=True)
class Run:
    """One run: its scheme, PER and network, and as a job its measurement."""

    scheme: str
    per_pct: int
    network: Values
    #: other values of options of its TCP, by name
    tcp: Values = ()

    def flows(self, seed: int) -> BulkFlows:
        """Return the flows of a replication, ready to be run."""
        values, per = dict(self.network), self.per_pct / 100
        link = parameters.LINKS.get(self.scheme)
        config = BulkFlowsConfig(
            profile=parameters.TCP[self.scheme],
            tcp={
                "delayed_ack_ns": round(MS * values["delayed_ack_ms"]),
                "min_rto_ns": round(MS * values["min_rto_ms"]),
                **dict(self.tcp),
            },
            per=per,
            loses_acks=values["lossy_acks"],
            link=None if link is None else link(per),
            stagger_ns=round(MS * values["stagger_ms"]),
            dumbbell=DumbbellConfig(
                pairs=values["flows"],
                bottleneck_bps=round(1e6 * values["bottleneck_mbps"]),
                bottleneck_delay_ns=round(MS * values["delay_ms"]),
                access_bps=round(1e6 * values["access_mbps"]),
                access_delay_ns=round(MS * values["access_delay_ms"]),
            ),
            segment_bytes=values["segment_bytes"],
            receive_buffer_bytes=values["receive_buffer_bytes"],
            red=RedOptions(
                **{name: values[f"red_{name}"] for name in _RED},
                limit_packets=values["queue_packets"],
            ),
        )
        return BulkFlows(config, seed)

    def __call__(self, seed: int) -> Sample:
        """Run one replication."""
        flows, seconds = self.flows(seed), dict(self.network)["seconds"]
        flows.clock.run(int(seconds * SECOND))
        mbit_per_byte = 8 / dict(self.network)["mbit_bits"] / seconds
        fec = [flows.total("proactive_sent"), flows.total("reactive_sent")]
        segments = max(1, flows.total("data_segments_sent") + sum(fec))
        return Sample(
            flows.bytes_received * mbit_per_byte,
            {
                "throughput": flows.network.bottleneck.nbytes * mbit_per_byte,
                "timeouts": flows.total("timeouts") / len(flows.counters),
                "proactive": 100 * fec[0] / segments,
                "reactive": 100 * fec[1] / segments,
                "retransmissions": 100 * flows.total("retransmits") / segments,
                "fast_retransmits": flows.total("fast_retransmits"),
                "ecn_reductions": flows.total("ecn_reductions"),
                "queue_drops": flows.queue.drops,
            },
        )
