"""The frames of link ARQ, as objects and as octets. The formats are in docs/arq.md.

Rules kept: a frame is parsed once, into a valid object; emit then parse gives an equal object. The CRC-32 covers the
whole frame: a damaged frame is no frame. Numbers are 32-bit and wrap.
"""

import struct
import zlib
from collections.abc import Sized
from dataclasses import dataclass
from typing import Final, cast

from linklayer.arq.code import fragment_bytes
from linklayer.link import Description, FrameError

#: kind and channel, session, number, lowest number that may still come
_DATA: Final = struct.Struct(">BHII")
#: the same; copies sent before, index, fragments that suffice, all fragments, octets of the packet
_FRAGMENT: Final = struct.Struct(">BHIIBBBBH")
#: kind, session, number, the numbers before it
_ACK: Final = struct.Struct(">BHIQ")
CRC_BYTES: Final = 4
DATA_OVERHEAD_BYTES: Final = _DATA.size + CRC_BYTES
FRAGMENT_OVERHEAD_BYTES: Final = _FRAGMENT.size + CRC_BYTES
ACK_BYTES: Final = _ACK.size + CRC_BYTES
#: numbers before the latest one that an acknowledgement has a bit for
ACK_BITS: Final = 64
CHANNELS: Final = 2
SESSIONS: Final = 1 << 16

#: with the channel in the lowest bit
_KIND_DATA: Final = 0xA0
_KIND_FRAGMENT: Final = 0xB0
_KIND_ACK: Final = 0xAF


@dataclass(slots=True, init=False)
class Data:
    """One packet. The sender will send none of the numbers below `base` again."""

    session: int
    channel: int
    seq: int
    base: int
    payload: Sized

    # a dataclass's own is interpreted, where the rest is compiled
    def __init__(self, session: int, channel: int, seq: int, base: int, payload: Sized) -> None:
        self.session = session
        self.channel = channel
        self.seq = seq
        self.base = base
        self.payload = payload

    @property
    def nbytes(self) -> int:
        """Octets on the air."""
        return DATA_OVERHEAD_BYTES + len(self.payload)


@dataclass(slots=True, init=False)
class Fragment:
    """One fragment of a packet; otherwise as `Data`."""

    session: int
    channel: int
    seq: int
    base: int
    #: how often the packet had been sent before
    copy: int
    index: int
    #: fragments that suffice, and all
    data: int
    total: int
    #: octets of the packet
    length: int
    payload: Sized

    def __init__(
        self,
        session: int,
        channel: int,
        seq: int,
        base: int,
        copy: int,
        index: int,
        data: int,
        total: int,
        length: int,
        payload: Sized,
    ) -> None:
        self.session = session
        self.channel = channel
        self.seq = seq
        self.base = base
        self.copy = copy
        self.index = index
        self.data = data
        self.total = total
        self.length = length
        self.payload = payload

    @property
    def nbytes(self) -> int:
        """Octets on the air."""
        return FRAGMENT_OVERHEAD_BYTES + len(self.payload)


@dataclass(slots=True, init=False)
class Ack:
    """`seq` has come in the data's `session`; bit i of `before`: so has `seq` - 1 - i."""

    session: int
    seq: int
    before: int

    def __init__(self, session: int, seq: int, before: int) -> None:
        self.session = session
        self.seq = seq
        self.before = before

    @property
    def nbytes(self) -> int:
        """Octets on the air."""
        return ACK_BYTES

    @property
    def payload(self) -> Sized:
        """An acknowledgement brings no packet."""
        return b""


Frame = Data | Fragment | Ack


def emit(frame: Frame) -> bytes:
    """Return the octets of `frame`. Its payload must be octets."""
    if isinstance(frame, Ack):
        octets = _ACK.pack(_KIND_ACK, frame.session, frame.seq, frame.before)
    elif isinstance(frame, Data):
        head = _DATA.pack(_KIND_DATA | frame.channel, frame.session, frame.seq, frame.base)
        octets = head + cast(bytes, frame.payload)
    else:
        octets = _fragment_head(frame) + cast(bytes, frame.payload)
    return octets + zlib.crc32(octets).to_bytes(CRC_BYTES, "big")


def _fragment_head(frame: Fragment) -> bytes:
    return _FRAGMENT.pack(
        _KIND_FRAGMENT | frame.channel,
        frame.session,
        frame.seq,
        frame.base,
        frame.copy,
        frame.index,
        frame.data,
        frame.total,
        frame.length,
    )


def parse(octets: bytes) -> Frame:
    """Return the frame in `octets`. Raises FrameError."""
    if len(octets) <= DATA_OVERHEAD_BYTES:
        raise FrameError(f"{len(octets)} octets: too short for a frame")
    body = octets[:-CRC_BYTES]
    if zlib.crc32(body).to_bytes(CRC_BYTES, "big") != octets[-CRC_BYTES:]:
        raise FrameError("CRC failed")
    kind = body[0]
    if kind == _KIND_ACK:
        if len(octets) != ACK_BYTES:
            raise FrameError(f"an acknowledgement of {len(octets)} octets: must be {ACK_BYTES}")
        _, session, seq, before = _ACK.unpack(body)
        return Ack(session, seq, before)
    if 0 <= kind - _KIND_FRAGMENT < CHANNELS:
        return _parse_fragment(body)
    channel = kind - _KIND_DATA
    if not 0 <= channel < CHANNELS:
        raise FrameError(f"unknown kind {kind:#04x}")
    _, session, seq, base = _DATA.unpack_from(body)
    return Data(session, channel, seq, base, body[_DATA.size :])


def _parse_fragment(body: bytes) -> Fragment:
    if len(body) <= _FRAGMENT.size:
        raise FrameError("a fragment without octets")
    kind, session, seq, base, copy, index, data, total, length = _FRAGMENT.unpack_from(body)
    payload = body[_FRAGMENT.size :]
    if not (1 <= data <= total and index < total):
        raise FrameError(f"fragment {index} of {total}, {data} suffice: cannot be")
    if len(payload) != fragment_bytes(length, data):
        raise FrameError(f"a fragment of {len(payload)} octets is not one of {data} of {length} octets")
    return Fragment(session, kind - _KIND_FRAGMENT, seq, base, copy, index, data, total, length, payload)


def describe(octets: bytes) -> Description:
    """Describe a frame, for the readers of a capture."""
    try:
        frame = parse(octets)
    except FrameError as error:
        return Description(f"damaged: {error}", intact=False)
    if isinstance(frame, Ack):
        more = frame.before.bit_count()
        return Description(f"ACK of {frame.seq}" + (f" and {more} before" if more else ""), intact=True)
    where = f" of channel {frame.channel}" if frame.channel else ""
    if isinstance(frame, Data):
        return Description(f"packet {frame.seq}{where}, {len(frame.payload)} bytes", intact=True)
    kind = "fragment" if frame.index < frame.data else "FEC fragment"
    copy = f", copy {frame.copy}" if frame.copy else ""
    return Description(f"{kind} {frame.index + 1} of {frame.total} of packet {frame.seq}{where}{copy}", intact=True)
