"""UDP with exponential on and off times."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

from annotated_types import Ge, Le
from typing_extensions import override

from common.options import NotNegative, Positive
from hosts.engine.datagrams import UDP_MIN_PACKET
from hosts.engine.results import Received, Sent
from hosts.workloads import Outcome, Port, Workload, WorkloadPlugin, without_end

if TYPE_CHECKING:
    from hosts.engine.agent import Agent


@dataclass(frozen=True, slots=True, kw_only=True)
class OnOffUdp(Workload):
    """UDP at a constant rate while on; the lengths of on and off periods are exponential, seeded by the run.

    `rate_bps` counts whole IP packets of `packet_bytes`. With `off_ms` 0 it is always on.
    """

    kind: ClassVar[str] = "onoff-udp"

    flow: str = "udp"
    port: Port = 5801
    rate_bps: Positive = 500_000.0
    #: mean lengths
    on_ms: Positive = 100.0
    off_ms: NotNegative = 100.0
    packet_bytes: Annotated[int, Ge(UDP_MIN_PACKET), Le(65535)] = 1000
    duration_s: Positive = 10.0
    #: time after the end of sending in which the receiver still counts packets
    drain_s: NotNegative = 1.0

    @property
    @override
    def ends_s(self) -> float:
        return self.start_s + self.duration_s

    @property
    @override
    def largest_packet_bytes(self) -> int:
        return self.packet_bytes

    @override
    def lasting(self) -> Self:
        return without_end(self)  # type: ignore[no-any-return]

    @override
    def bind(self, agent: "Agent") -> None:
        agent.bind_datagrams(self)

    @override
    def expect(self, agent: "Agent") -> None:
        agent.receive_datagrams(self, start_at=agent.at(self.start_s), end_at=agent.at(self.ends_s + self.drain_s))

    @override
    def received(self, agent: "Agent", flow: str, index: int, result: Received) -> None:
        agent.end_counting(flow)
        agent.report(self, flow, index, result)

    @override
    def start(self, agent: "Agent") -> None:
        agent.send_datagrams(self, end_at=agent.at(self.ends_s))

    @override
    def outcome(self, senders: Sequence[Sent], receivers: Sequence[Received], until_s: float) -> Outcome:
        return Outcome(
            nbytes=sum(end.bytes for end in receivers),
            span=self.span(self.duration_s, until_s),
            finished=bool(senders) and senders[0].complete,
            intact=None,
        )


WORKLOAD = WorkloadPlugin(
    name=OnOffUdp.kind,
    summary="UDP at a constant rate while on; on and off periods are exponential",
    options=OnOffUdp,
    example={"rate_bps": 200_000, "duration_s": 1},
)
