"""Short transfers over TCP, each timed by itself."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from common.options import Bytes, Count, NotNegative
from hosts.engine.results import Sent
from hosts.workloads import Port, StreamWorkload, WorkloadPlugin

if TYPE_CHECKING:
    from hosts.engine.agent import Agent


@dataclass(frozen=True, slots=True, kw_only=True)
class Short(StreamWorkload):
    """`count` transfers of `bytes` payload octets, each on a new connection and timed by itself.

    The next one starts `gap_ms` after the end of the previous one.
    """

    kind: ClassVar[str] = "short"

    flow: str = "short"
    port: Port = 5501
    bytes: Bytes = 50_000
    count: Count = 1
    gap_ms: NotNegative = 0.0

    @property
    @override
    def transfers(self) -> int:
        return self.count

    @property
    @override
    def payload_bytes(self) -> int:
        return self.bytes * self.count

    @override
    def start(self, agent: "Agent") -> None:
        self._connect(agent, 0)

    @override
    def sent(self, agent: "Agent", port: int, flow: str, index: int, result: Sent) -> None:
        agent.report(self, flow, index, result)
        if index + 1 < self.count and result.error != "stopped":
            next_at = agent.clock.now + int(self.gap_ms * 1e6)
            agent.clock.at(next_at, partial(self._connect, agent), index + 1)

    def _connect(self, agent: "Agent", index: int) -> None:
        agent.connect(self, self.port, self.flow, index, limit=self.bytes)


WORKLOAD = WorkloadPlugin(
    name=Short.kind,
    summary="transfers one after the other, each on a new connection and timed by itself",
    options=Short,
    example={"bytes": 10_000, "count": 3},
)
