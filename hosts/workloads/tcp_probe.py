"""TCP probes beside the flows: a handshake, and an octet and its answer, on connections of their own."""

from dataclasses import dataclass
from typing import ClassVar

from common.options import Bytes, Count, NotNegative
from hosts.workloads import Port, WorkloadPlugin
from hosts.workloads.short import Short


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpProbe(Short):
    """`count` connections one after the other, `gap_ms` apart, each with `bytes` octets.

    They stand for the foreign probes of draft-ietf-ippm-responsiveness-09, TCP only: the time to connect, and that from
    there to the receiver's FIN. The flow is beside the run's own: its octets and delays count apart.
    """

    kind: ClassVar[str] = "tcp-probe"
    beside: ClassVar[bool] = True

    flow: str = "tcp-probe"
    port: Port = 5601
    bytes: Bytes = 1
    count: Count = 50
    gap_ms: NotNegative = 100.0


WORKLOAD = WorkloadPlugin(
    name=TcpProbe.kind,
    summary="small transfers one after the other, to measure responsiveness beside the flows",
    options=TcpProbe,
    example={"count": 3},
)
