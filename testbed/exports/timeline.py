"""The packets and frames of a run, so that an octet of TCP can be followed to its frames and their samples.

Rules kept

- A packet is one transmission by its host: TCP's retransmission of the same octets is another packet. The link's
  retransmission is another frame with the same packet.
- `offset` counts the payload octets of one connection, from 0, independent of its sequence numbers; it does not wrap.
- Times are ns after the run's time 0; the handshake of the link comes before it, with negative times.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Final

from common.sequence import MASK, unwrap
from common.sides import Side
from linklayer.arq.code import CountedFragment
from tcpip.segment import ACK, CWR, ECE, FIN, PSH, RST, SYN, URG, Flow, Segment

_LETTERS: Final = ((SYN, "S"), (FIN, "F"), (RST, "R"), (PSH, "P"), (ACK, "."), (URG, "U"), (ECE, "E"), (CWR, "W"))
#: JSON's numbers are doubles in most readers
_EXACT: Final = 1 << 53


@dataclass(frozen=True, slots=True, kw_only=True)
class Packet:
    """One IP packet. The fields behind `nbytes` are None for a packet without TCP."""

    number: int
    #: the workload's flow; empty for packets of no workload
    flow: str
    #: octets of the whole IP packet
    nbytes: int
    #: in the flow, by order of their first packets
    connection: int | None = None
    flags: str | None = None
    seq: int | None = None
    ack: int | None = None
    #: payload octets, and where the first one stands in its connection; None until the connection's SYN was seen
    length: int | None = None
    offset: int | None = None

    def has(self, octet: int) -> bool:
        """Whether the packet's payload has this octet of its connection."""
        return self.offset is not None and self.offset <= octet < self.offset + (self.length or 0)

    def words(self) -> str:
        """Return the packet in words."""
        if self.seq is None:
            return f"packet of {self.nbytes} bytes"
        if self.offset is not None and self.length:
            return f"octets {self.offset} to {self.offset + self.length - 1}"
        return f"{self.flags} seq {self.seq} ack {self.ack}"


@dataclass(frozen=True, slots=True)
class Samples:
    """The samples of one frame in a recording (radio.record): the exact indices of the first one and their number."""

    start: int
    count: int
    rate_sps: float
    crc_ok: bool
    figures: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One frame of the link. `sent_ns` is when its last bit left the transmitter."""

    number: int
    side: Side
    start_ns: int
    sent_ns: int
    #: at the other station; None: it did not arrive
    arrived_ns: int | None
    nbytes: int
    #: class of the frame in lower case, as in data, fec or ack
    kind: str
    #: ok, damaged, erased (by the modelled medium), or unheard (by the other station)
    fate: str
    #: its fields but the payload
    fields: Mapping[str, Any]
    #: number of the packet that it carries
    packet: int | None
    samples: Samples | None = None
    #: when the first sample was received, as far as the clocks of radio and host agree
    heard_ns: int | None = None

    def words(self) -> str:
        """Return the frame in words."""
        names = [
            "seq" if "seq" in self.fields else "base",
            "cum",
            "block",
            *(["index"] if self.kind == "fragment" else []),
        ]
        named = [f"{name} {self.fields[name]}" for name in names if self.fields.get(name) is not None]
        again = ["again"] if self.fields.get("retransmission") else []
        return " ".join([self.kind, *again, *named])


@dataclass(frozen=True, slots=True)
class Passing:
    """A packet at a host."""

    time_ns: int
    packet: int


@dataclass(frozen=True)
class Timeline:
    """All packets and frames of a run."""

    run: str
    tier: str
    scheme: str
    #: Unix time (ns) of time 0; None on tier model
    epoch_ns: int | None
    packets: Sequence[Packet]
    #: packets that left, and ACKs that reached, the host of the data sender; empty where only the air was captured
    sent: Sequence[Passing]
    received: Sequence[Passing]
    #: in the order of their ends
    frames: Sequence[Frame]
    #: records by measurement, as rows
    records: Mapping[str, Sequence[Mapping[str, Any]]]

    def following(self, flow: str, octet: int, connection: int = 0) -> "Timeline":
        """Return the part that carries one payload octet of a flow, and the redundancy that may have restored it."""
        wanted = {
            packet.number
            for packet in self.packets
            if packet.flow == flow and packet.connection == connection and packet.has(octet)
        }
        carriers = [frame for frame in self.frames if frame.packet in wanted]
        blocks = {(frame.side, frame.fields["block"]) for frame in carriers if frame.fields.get("block") is not None}
        first_ns = min((frame.start_ns for frame in carriers), default=0)

        def restores(frame: Frame) -> bool:
            block = frame.side, frame.fields.get("block")
            return frame.kind == "fec" and block in blocks and frame.start_ns >= first_ns

        frames = [frame for frame in self.frames if frame.packet in wanted or restores(frame)]
        return replace(
            self,
            packets=[packet for packet in self.packets if packet.number in wanted],
            sent=[passing for passing in self.sent if passing.packet in wanted],
            received=[passing for passing in self.received if passing.packet in wanted],
            frames=frames,
            records={},
        )


class Packets:
    """Numbers packets as they are first seen. `ports`: the flow of each port (`Workload.ports`)."""

    def __init__(self, ports: Mapping[int, str]) -> None:
        self._ports = ports
        self.found: list[Packet] = []
        #: initial sequence number and last offset, per direction of a connection
        self._starts: dict[Flow, int] = {}
        self._offsets: dict[Flow, int] = {}
        self._connections: dict[frozenset[tuple[int, int]], tuple[str, int]] = {}

    def add(self, packet: Segment | None, nbytes: int, flow: str = "") -> int:
        """Return the number of a new packet; `packet` is None when it is no TCP segment."""
        number = len(self.found)
        if packet is None:
            self.found.append(Packet(number=number, flow=flow, nbytes=nbytes))
            return number
        name, connection = self._connection(packet.flow)
        letters = "".join(letter for bit, letter in _LETTERS if packet.flags & bit)
        self.found.append(
            Packet(
                number=number,
                flow=name,
                nbytes=nbytes,
                connection=connection,
                flags=letters,
                seq=packet.seq,
                ack=packet.ack,
                length=packet.length,
                offset=self._offset(packet),
            )
        )
        return number

    def flow_of(self, flow: Flow) -> str:
        """Return the name of the workload's flow between these ports; empty: none."""
        return self._ports.get(flow.destination_port) or self._ports.get(flow.source_port) or ""

    def _connection(self, flow: Flow) -> tuple[str, int]:
        ends = frozenset(((flow.source, flow.source_port), (flow.destination, flow.destination_port)))
        if ends not in self._connections:
            name = self.flow_of(flow)
            self._connections[ends] = name, sum(other == name for other, _ in self._connections.values())
        return self._connections[ends]

    def _offset(self, packet: Segment) -> int | None:
        flow = packet.flow
        if packet.flags & SYN:
            self._starts[flow] = packet.seq + 1
            self._offsets[flow] = 0
            return 0
        if flow not in self._starts:
            return None
        last = self._offsets[flow]
        offset = unwrap(packet.seq - self._starts[flow] & MASK, last)
        self._offsets[flow] = max(last, offset)
        return offset


def content_of(frame: Any) -> tuple[str, dict[str, Any], Any]:
    """Return a frame's kind, its fields for JSON, and its payload (None: it carries no packet).

    The payload of a fragment of a packet without octets is the packet.
    """
    names = [field.name for field in fields(frame)] if is_dataclass(frame) else []
    values = {name: getattr(frame, name) for name in names if name not in ("payload", "shard")}
    shown = {name: _plain(value) for name, value in values.items() if isinstance(value, bool | int | float | str)}
    kind = type(frame).__name__.lower()
    payload = getattr(frame, "payload", None)
    if isinstance(payload, CountedFragment):
        payload = payload.packet
    return "packet" if kind == "plainframe" else kind, shown, payload or None


def _plain(value: Any) -> Any:
    return hex(value) if isinstance(value, int) and abs(value) >= _EXACT else value
