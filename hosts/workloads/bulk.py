"""Bulk transfers over TCP."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Self

from annotated_types import Ge, Le
from typing_extensions import override

from common.options import Bytes, Matches, NotNegative, Positive
from hosts.engine.clock import OBSERVER
from hosts.engine.results import Received, Sent, TcpSent
from hosts.workloads import (
    Outcome,
    Port,
    StreamWorkload,
    WorkloadPlugin,
    intact,
    seconds_of,
    without_end,
)

if TYPE_CHECKING:
    from hosts.engine.agent import Agent

#: time that a receiver waits for the RST of a sender that gave up
RST_GRACE_S: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bulk(StreamWorkload):
    """One transfer, or `flows` parallel ones on consecutive ports, each limited by size, by time or by both.

    With a duration the sender stops writing after it, and then waits up to `drain_s` until the receiver has read
    everything; remaining data is dropped (RST).
    """

    kind: ClassVar[str] = "bulk"

    flow: str = "bulk"
    port: Port = 5001
    #: payload octets of each flow; None: the duration is the limit
    bytes: Bytes | None = None
    #: None: the size is the limit
    duration_s: Positive | None = None
    flows: Annotated[int, Ge(1), Le(1000)] = 1
    drain_s: NotNegative = 5.0
    #: for the kernel's TCP, by its kernel name; None: that of the host's TCP profile
    congestion_control: Annotated[str, Matches(r"[a-z0-9_]{1,15}")] | None = None

    def __post_init__(self) -> None:
        super(Bulk, self).__post_init__()
        if self.bytes is None and self.duration_s is None:
            raise ValueError("a bulk needs bytes or duration_s")
        if self.port + self.flows > 65536:
            raise ValueError(f"{self.flows} flows from port {self.port} on end above 65535")

    @property
    @override
    def transfers(self) -> int:
        return self.flows

    @property
    @override
    def ends_s(self) -> float | None:
        return None if self.duration_s is None else self.start_s + self.duration_s

    @property
    @override
    def payload_bytes(self) -> int | None:
        return None if self.bytes is None else self.bytes * self.flows

    @property
    @override
    def kernels_option(self) -> str | None:
        return None if self.congestion_control is None else "congestion_control"

    @override
    def ports(self) -> dict[int, str]:
        if self.flows == 1:
            return {self.port: self.flow}
        return {self.port + i: f"{self.flow}-{i + 1}" for i in range(self.flows)}

    @override
    def lasting(self) -> Self:
        return without_end(self) if self.bytes is None else self

    @override
    def expect(self, agent: "Agent") -> None:
        super(Bulk, self).expect(agent)
        if self.ends_s is None:
            return
        for flow in self.ports().values():
            agent.clock.at(agent.at(self.ends_s), agent.mark, flow, OBSERVER)
            # the sender has given up by then; its RST may be lost like any packet
            given_up_at = agent.at(self.ends_s + self.drain_s + RST_GRACE_S)
            agent.clock.at(given_up_at, partial(agent.give_up, self), flow)

    @override
    def received(self, agent: "Agent", flow: str, index: int, result: Received) -> None:
        agent.end_counting(flow)
        if self._goes_on(agent, result):
            return
        if self.duration_s is not None:
            result = replace(result, bytes_at_duration=agent.marked(flow, result.bytes))
        agent.report(self, flow, index, result)

    @override
    def start(self, agent: "Agent") -> None:
        for port, flow in self.ports().items():
            self._connect(agent, port, flow, 0)

    @override
    def sent(self, agent: "Agent", port: int, flow: str, index: int, result: Sent) -> None:
        if self._goes_on(agent, result) or self._peer_was_absent(agent, result):
            assert agent.again_ns is not None
            agent.broken(flow, result.error or "")
            agent.clock.at(agent.clock.now + agent.again_ns, partial(self._connect, agent, port, flow), index + 1)
        else:
            agent.report(self, flow, index, result)

    def _connect(self, agent: "Agent", port: int, flow: str, index: int) -> None:
        ends_s = self.ends_s
        agent.connect(
            self,
            port,
            flow,
            index,
            limit=self.bytes,
            end_at=None if ends_s is None else agent.at(ends_s),
            drain_ns=None if ends_s is None else int(self.drain_s * 1e9),
            congestion_control=self.congestion_control,
        )

    def _goes_on(self, agent: "Agent", result: Sent | Received) -> bool:
        """Whether the bulk begins again after this end of a connection."""
        if agent.again_ns is None or self.bytes is not None or self.ends_s is None:
            return False
        return result.error not in (None, "stopped") and agent.clock.now < agent.at(self.ends_s)

    def _peer_was_absent(self, agent: "Agent", result: Sent) -> bool:
        """Whether a transfer without a time limit could not connect yet."""
        if agent.again_ns is None or self.duration_s is not None or result.error == "stopped":
            return False
        return isinstance(result, TcpSent) and not result.complete and result.connected_ns is None

    @override
    def outcome(self, senders: Sequence[Sent], receivers: Sequence[Received], until_s: float) -> Outcome:
        times = seconds_of(senders)
        ran_out = self.bytes is not None and bool(times) and (self.duration_s is None or times[0] < self.duration_s)
        if self.duration_s is not None and not ran_out:
            return Outcome(
                nbytes=sum(end.bytes_at_duration or 0 for end in receivers),
                span=self.span(self.duration_s, until_s),
                finished=until_s >= self.start_s + self.duration_s,
                intact=intact(receivers),
            )
        # each flow has a single transfer
        return replace(super(Bulk, self).outcome(senders, receivers, until_s), transfer_s=())


WORKLOAD = WorkloadPlugin(
    name=Bulk.kind,
    summary="one transfer, or several parallel ones, limited by size, by time or by both",
    options=Bulk,
    example={"bytes": 50_000, "flows": 2},
)
