"""The packets and frames of a run, so that an octet of TCP can be followed to its frames and their samples.

Rules kept

- A packet is one transmission by its host: TCP's retransmission of the same octets is another packet. The link's
  retransmission is another frame with the same packet.
- `offset` counts the payload octets of one connection, from 0, independent of its sequence numbers; it does not wrap.
- Times are ns after the run's time 0; the handshake of the link comes before it, with negative times.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from common.sequence import MASK, precedes
from common.sides import Side

_HALF: Final = 1 << 31
#: numbers before the newest that acknowledgements of `arq` and `slacp-adaptive` always tell of
_SURE: Final = 64


#: what an acknowledgement of the link says of a packet: it has come, it has come or is awaited no more, or it has not
#: come though a later frame has
Said = Literal["come", "settled", "missing"]


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
    #: an ACK that says: the segment at its acknowledgement number was lost by corruption
    eln: bool = False

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
    #: ok; damaged, erased (by the modelled medium), or unheard (by the other station): it was lost; or under way, when
    #: the run ended
    fate: str
    #: its fields but the payload
    fields: Mapping[str, Any]
    #: number of the packet that it carries
    packet: int | None
    samples: Samples | None = None
    #: at the receiver, of the channel trace; None: not known
    snr_db: float | None = None
    #: when the first sample was received, as far as the clocks of radio and host agree
    heard_ns: int | None = None

    @property
    def lost(self) -> bool:
        """Whether it did not arrive whole."""
        return self.fate not in ("ok", "under way")

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

    def protects(self, carrier: "Frame") -> bool:
        """Whether this is redundancy from which the packet of another frame may be restored."""
        ours, theirs = self.fields, carrier.fields
        if self.side != carrier.side or any(ours.get(name) != theirs.get(name) for name in ("tag", "session")):
            return False
        if self.kind == "fec":
            return ours.get("block") is not None and ours["block"] == theirs.get("block")
        if "members" not in ours or "seq" not in theirs or ours.get("channel") != theirs.get("channel"):
            return False
        return bool(_number(ours["members"]) >> (theirs["seq"] - ours["first"] & MASK) & 1)

    def tells(self, carrier: "Frame") -> Said | None:
        """Return what this acknowledgement says of the packet of a frame of the other side; None: nothing."""
        said, data = self.fields, carrier.fields
        if self.kind != "ack" or self.side == carrier.side or "seq" not in data:
            return None
        if "cum" in said:
            return _told_by_slacp(said, data)
        newest, bits = ("top", "packets") if "top" in said else ("seq", "before")
        if newest not in said or said["session"] != data["session"]:
            return None
        if _listed(said[newest], said[bits], data["seq"]):
            return "come"
        newest, number = ("tx", data["tx"]) if "tx" in said else (newest, data["seq"])
        return "missing" if 0 < (said[newest] - number & MASK) <= _SURE else None


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
    #: packets that left, and ACKs that reached, the host of the data sender; none where only the air was captured, and
    #: none of a host behind a base station that splits connections
    sent: Sequence[Passing]
    received: Sequence[Passing]
    #: in the order of their ends
    frames: Sequence[Frame]
    #: records by measurement, as rows
    records: Mapping[str, Sequence[Mapping[str, Any]]]
    #: packets that left the link at the far station; empty where only the air was captured
    crossed: Sequence[Passing] = ()

    def with_passings(self) -> "Timeline":
        """Return the timeline, with the packets' times at the stations for connections that have none at the hosts.

        A packet with data is sent when its first frame begins, and another one is received when a frame with it first
        arrives at the station of the data's sender.
        """
        known = {_connection(self.packets[passing.packet]) for passing in self.sent}
        sides: dict[tuple[str, int | None], Side] = {}
        sent: dict[int, int] = {}
        received: dict[int, int] = {}
        packets = [(frame, self.packets[frame.packet]) for frame in self.frames if frame.packet is not None]
        carried = [(frame, packet) for frame, packet in packets if _connection(packet) not in known]
        for frame, packet in carried:
            if packet.length:
                sides.setdefault(_connection(packet), frame.side)
                sent.setdefault(packet.number, frame.start_ns)
        for frame, packet in carried:
            if sides.get(_connection(packet)) not in (None, frame.side) and frame.arrived_ns is not None:
                before = received.get(packet.number, frame.arrived_ns)
                received[packet.number] = min(before, frame.arrived_ns)
        return replace(
            self,
            sent=_merged(self.sent, sent),
            received=_merged(self.received, received),
        )

    def following(self, flow: str, octet: int, connection: int = 0) -> "Timeline":
        """Return the part that carries one payload octet of a flow, and the redundancy that may have restored it."""
        wanted = {
            packet.number
            for packet in self.packets
            if packet.flow == flow and packet.connection == connection and packet.has(octet)
        }
        carriers = [frame for frame in self.frames if frame.packet in wanted]
        first_ns = min((frame.start_ns for frame in carriers), default=0)
        frames = [
            frame
            for frame in self.frames
            if frame.packet in wanted
            or (frame.packet is None and frame.start_ns >= first_ns and any(frame.protects(each) for each in carriers))
        ]
        return replace(
            self,
            packets=[packet for packet in self.packets if packet.number in wanted],
            sent=[passing for passing in self.sent if passing.packet in wanted],
            received=[passing for passing in self.received if passing.packet in wanted],
            frames=frames,
            records={},
            crossed=[passing for passing in self.crossed if passing.packet in wanted],
        )


def _connection(packet: Packet) -> tuple[str, int | None]:
    return packet.flow, packet.connection


def _merged(passings: Sequence[Passing], more: Mapping[int, int]) -> list[Passing]:
    """Return passings and others, as times by packet, in the order of time."""
    found = [*passings, *(Passing(time_ns, packet) for packet, time_ns in more.items())]
    return sorted(found, key=lambda passing: passing.time_ns)


def _told_by_slacp(said: Mapping[str, Any], data: Mapping[str, Any]) -> Said | None:
    # the capture of a stranger may have acknowledgements of one link ARQ and data of another
    if said["channel"] != data["channel"] or "tx" not in data:
        return None
    ahead = data["seq"] - said["cum"] & MASK
    if ahead >= _HALF:
        return "settled"
    if _number(said["received"]) >> ahead & 1:
        return "come"
    return None if precedes(said["tx_high"], data["tx"]) else "missing"


def _listed(newest: int, before: int | str, number: int) -> bool:
    """Whether a number is the newest one or has its bit among those before, as in docs/arq.md."""
    behind = newest - number & MASK
    return behind == 0 or (behind < _HALF and bool(_number(before) >> (behind - 1) & 1))


def _number(value: int | str) -> int:
    """Return an integer of a frame's fields, where large ones are hexadecimal."""
    return int(value, 16) if isinstance(value, str) else value
