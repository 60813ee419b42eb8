"""Bulk transfers over QUIC."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal

from annotated_types import Ge, Le
from typing_extensions import override

from hosts.engine.packets import UDP_HEADERS
from hosts.workloads import Port, WorkloadPlugin
from hosts.workloads.bulk import Bulk

#: RFC 9000 section 14: a path must carry UDP payloads of 1200 octets
LEAST_PAYLOAD_BYTES: Final = 1200


@dataclass(frozen=True, slots=True, kw_only=True)
class Quic(Bulk):
    """One transfer over a QUIC connection, or `flows` parallel connections on consecutive ports, limited as `bulk`.

    The sender is the client. It opens `streams` bidirectional streams, which share the octets evenly, and closes the
    connection when the receiver has sent FIN on all of them (docs/quic.md).
    """

    kind: ClassVar[str] = "quic"
    transport: ClassVar[str] = "quic"

    flow: str = "quic"
    port: Port = 5901
    #: of aioquic, at both ends
    congestion_control: Literal["reno", "cubic"] = "cubic"
    #: of each connection, in parallel
    streams: Annotated[int, Ge(1), Le(100)] = 1
    #: write the events of both ends to the run's folder
    qlog: bool = False
    #: write the TLS secrets to the run's folder, so that Wireshark reads a capture; in real time only
    keylog: bool = False

    @property
    @override
    def kernels_option(self) -> str | None:
        return None

    @property
    @override
    def live_option(self) -> str | None:
        return "keylog" if self.keylog else None

    @property
    @override
    def logs(self) -> bool:
        return self.qlog or self.keylog

    @property
    @override
    def least_mtu_bytes(self) -> int:
        return LEAST_PAYLOAD_BYTES + UDP_HEADERS

    def stream_bytes(self, limit: int, stream: int) -> int:
        """Return the octets of one stream, from 0 on, of a connection with `limit` octets."""
        return limit // self.streams + (stream < limit % self.streams)


WORKLOAD = WorkloadPlugin(
    name=Quic.kind,
    summary="a transfer over QUIC (aioquic), or several parallel ones, limited by size, by time or by both",
    options=Quic,
    example={"bytes": 50_000, "streams": 2},
)
