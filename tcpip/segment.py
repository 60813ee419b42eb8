"""A TCP segment in its IP packet, as an object.

Read first: RFC 9293 section 3.1; RFC 2018 (SACK), RFC 7323 (window scale, timestamps), RFC 3168 (ECN).

Numbers (`seq`, `ack`, SACK blocks, timestamps) are 32-bit and wrap, as on the wire; the machines unwrap them
(`common/sequence.py`). A payload is octets on the live tiers; in virtual time a segment has only a size. The
`len()` of a segment is the octets of the whole IPv4 packet. A sent segment does not change, except for `ecn`, which a
queue may set to CE.

Left out: octets (`wire.py`), urgent data, IP options and fragments.
"""

from typing import Final, NamedTuple

from mypy_extensions import mypyc_attr

from common.sequence import MASK

FIN: Final = 1
SYN: Final = 2
RST: Final = 4
PSH: Final = 8
ACK: Final = 16
URG: Final = 32
ECE: Final = 64
CWR: Final = 128
#: RFC 9768; in the octet of the data offset
AE: Final = 256

#: the ECN field of the IP header (RFC 3168 section 5)
NOT_ECT: Final = 0
ECT1: Final = 1
ECT0: Final = 2
CE: Final = 3

IP_HEADER_BYTES: Final = 20
TCP_HEADER_BYTES: Final = 20
HEADER_BYTES: Final = IP_HEADER_BYTES + TCP_HEADER_BYTES
#: RFC 9293 section 3.1: the data offset has four bits
MAX_OPTION_BYTES: Final = 40


class Flow(NamedTuple):
    """Source and destination: IPv4 addresses as integers, and ports."""

    source: int
    source_port: int
    destination: int
    destination_port: int

    def reversed(self) -> "Flow":
        """The opposite direction."""
        return Flow(self.destination, self.destination_port, self.source, self.source_port)


class SynOptions(NamedTuple):
    """Options of a SYN; None or False: absent."""

    mss: int | None = None
    window_scale: int | None = None
    sack_permitted: bool = False

    @property
    def nbytes(self) -> int:
        """Octets of these options, before padding."""
        return (
            (0 if self.mss is None else 4) + (0 if self.window_scale is None else 3) + (2 if self.sack_permitted else 0)
        )


class Option(NamedTuple):
    """An option without a field of its own (as the experimental ones, RFC 6994): its kind and its data octets."""

    kind: int
    data: bytes


#: left edge (first octet), right edge (the octet behind the last), 32-bit
SackBlock = tuple[int, int]
#: TSval and TSecr, 32-bit
Timestamps = tuple[int, int]


@mypyc_attr(allow_interpreted_subclasses=True)
class IpPacket:
    """A packet: `nbytes` and `len()` are the octets of the whole of it. `ecn` may be set to CE by a queue."""

    __slots__ = ("ecn", "flow", "nbytes")

    def __init__(self, flow: Flow, nbytes: int, ecn: int = NOT_ECT) -> None:
        self.flow = flow
        self.nbytes = nbytes
        self.ecn = ecn

    def __len__(self) -> int:
        return self.nbytes


@mypyc_attr(allow_interpreted_subclasses=True)
class Segment(IpPacket):
    """One segment.

    `window` is the 16-bit field, unscaled. `length` is the payload's size; `payload` the octets, or None where only
    the size counts. `number` is the IPv4 identification (0: not given). `timed_at` is for measurements in virtual time:
    when a segment with data left its host; in an ACK the `timed_at` of the earliest data that it answers; -1: unknown.
    """

    __slots__ = (
        "ack",
        "extra",
        "flags",
        "length",
        "number",
        "payload",
        "sack",
        "seq",
        "syn",
        "timed_at",
        "timestamps",
        "window",
    )

    def __init__(
        self,
        flow: Flow,
        seq: int,
        ack: int,
        flags: int,
        window: int,
        length: int = 0,
        payload: bytes | None = None,
        sack: tuple[SackBlock, ...] = (),
        timestamps: Timestamps | None = None,
        syn: SynOptions | None = None,
        extra: tuple[Option, ...] = (),
        ecn: int = NOT_ECT,
        number: int = 0,
    ) -> None:
        self.flow = flow
        self.seq = seq
        self.ack = ack
        self.flags = flags
        self.window = window
        self.length = length
        self.payload = payload
        self.sack = sack
        self.timestamps = timestamps
        self.syn = syn
        self.extra = extra
        self.ecn = ecn
        self.number = number
        self.timed_at = -1
        nbytes = HEADER_BYTES + length
        if sack or timestamps is not None or syn is not None or extra:
            nbytes += option_bytes(sack, timestamps, syn, extra)
        #: octets of the IPv4 packet
        self.nbytes = nbytes

    def __repr__(self) -> str:
        names = "".join(
            letter
            for bit, letter in (
                (SYN, "S"), (FIN, "F"), (RST, "R"), (PSH, "P"), (ACK, "."), (URG, "U"), (ECE, "E"), (CWR, "W"),
                (AE, "A"),
            )
            if self.flags & bit
        )  # fmt: skip
        parts = [f"{names or 'none'} {self.seq}:{(self.seq + self.length) & MASK}({self.length})"]
        if self.flags & ACK:
            parts.append(f"ack {self.ack}")
        parts.append(f"win {self.window}")
        if self.sack:
            parts.append("sack " + " ".join(f"{left}:{right}" for left, right in self.sack))
        if self.timestamps is not None:
            parts.append(f"TS {self.timestamps[0]}/{self.timestamps[1]}")
        if self.syn is not None:
            parts.append(str(self.syn))
        if self.extra:
            parts.append(str(self.extra))
        if self.ecn:
            parts.append(("", "ECT1", "ECT0", "CE")[self.ecn])
        return f"<{' '.join(parts)}>"


def option_bytes(
    sack: tuple[SackBlock, ...],
    timestamps: Timestamps | None,
    syn: SynOptions | None,
    extra: tuple[Option, ...],
) -> int:
    """Return the octets of these options in the header, padded to a multiple of four."""
    nbytes = 0
    if sack:
        nbytes += 2 + 8 * len(sack)
    if timestamps is not None:
        nbytes += 10
    if syn is not None:
        nbytes += syn.nbytes
    for option in extra:
        nbytes += 2 + len(option.data)
    return nbytes + 3 & ~3
