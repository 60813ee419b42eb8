"""UDP probes beside the flows: the other host sends each back at once."""

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar

from annotated_types import Ge, Le
from typing_extensions import override

from common.options import NotNegative, Positive
from hosts.engine.datagrams import UDP_MIN_PACKET
from hosts.engine.delays import Counts
from hosts.engine.results import Sent
from hosts.workloads import Port, WorkloadPlugin
from hosts.workloads.onoff_udp import OnOffUdp

if TYPE_CHECKING:
    from hosts.engine.agent import Agent


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe(OnOffUdp):
    """Small packets at random times, `off_ms` apart on average (Poisson sampling, RFC 2330 section 11.1.1).

    An on period is too short for a second packet. The flow is beside the run's own: its octets and delays count apart.
    """

    kind: ClassVar[str] = "probe"
    beside: ClassVar[bool] = True

    flow: str = "probe"
    port: Port = 5701
    #: the gap between packets of an on period
    rate_bps: Positive = 500_000.0
    on_ms: Positive = 0.001
    #: mean time between two probes
    off_ms: NotNegative = 100.0
    #: whole IP packet, each way
    packet_bytes: Annotated[int, Ge(UDP_MIN_PACKET), Le(65535)] = 64
    #: time after the end of sending in which answers count
    drain_s: NotNegative = 2.0

    @override
    def bind_sender(self, agent: "Agent") -> None:
        agent.bind_replies(self)

    @override
    def start(self, agent: "Agent") -> None:
        agent.receive_replies(self.flow)
        super(Probe, self).start(agent)

    @override
    def sent(self, agent: "Agent", port: int, flow: str, index: int, result: Sent) -> None:
        drain_ns = int(self.drain_s * 1e9) if result.complete else 0
        agent.await_replies(flow, drain_ns, partial(self._answered, agent, flow, index, result))

    def _answered(self, agent: "Agent", flow: str, index: int, result: Sent, round_trips: Counts) -> None:
        agent.report(self, flow, index, replace(result, round_trips=round_trips))


WORKLOAD = WorkloadPlugin(
    name=Probe.kind,
    summary="UDP packets at random times that come back, to measure delays beside the flows",
    options=Probe,
    example={"off_ms": 20, "duration_s": 1},
)
