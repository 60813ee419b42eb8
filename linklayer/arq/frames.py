"""The frames of link ARQ, as objects and as octets. The formats are in docs/arq.md.

Rules kept: a frame is parsed once, into a valid object; emit then parse gives an equal object. The CRC-32 covers the
whole frame: a damaged frame is no frame. Numbers are 32-bit and wrap.
"""

import struct
import zlib
from collections.abc import Sized
from dataclasses import dataclass
from typing import Final, cast

from linklayer.link import Description, FrameError

#: kind and channel, session, number, lowest number that may still come
_DATA: Final = struct.Struct(">BHII")
#: kind, session, number, the numbers before it
_ACK: Final = struct.Struct(">BHIQ")
CRC_BYTES: Final = 4
DATA_OVERHEAD_BYTES: Final = _DATA.size + CRC_BYTES
ACK_BYTES: Final = _ACK.size + CRC_BYTES
#: numbers before the latest one that an acknowledgement has a bit for
ACK_BITS: Final = 64
CHANNELS: Final = 2
SESSIONS: Final = 1 << 16

_KIND_DATA: Final = 0xA0
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


Frame = Data | Ack


def emit(frame: Frame) -> bytes:
    """Return the octets of `frame`. Its payload must be octets."""
    if isinstance(frame, Ack):
        octets = _ACK.pack(_KIND_ACK, frame.session, frame.seq, frame.before)
    else:
        head = _DATA.pack(_KIND_DATA | frame.channel, frame.session, frame.seq, frame.base)
        octets = head + cast(bytes, frame.payload)
    return octets + zlib.crc32(octets).to_bytes(CRC_BYTES, "big")


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
    channel = kind - _KIND_DATA
    if not 0 <= channel < CHANNELS:
        raise FrameError(f"unknown kind {kind:#04x}")
    _, session, seq, base = _DATA.unpack_from(body)
    return Data(session, channel, seq, base, body[_DATA.size :])


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
    return Description(f"packet {frame.seq}{where}, {len(frame.payload)} bytes", intact=True)
