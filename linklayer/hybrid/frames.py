"""The frames of link FEC and hybrid FEC/ARQ, as objects and as octets. docs/hybrid.md has the formats.

Rules: emit then parse gives an equal frame; a frame whose CRC-32 fails is a FrameError, since nothing in it is to be
trusted. Numbers of packets are 32-bit and wrap (`common/sequence.py`).
"""

import struct
import zlib
from collections.abc import Sized
from dataclasses import dataclass
from typing import Final, cast

from linklayer.hybrid.code import fragment_bytes
from linklayer.link import Description, FrameError

TYPE_FRAGMENT: Final = 0x21
TYPE_ACK: Final = 0x22
#: octets of a fragment's header, and of an acknowledgement's
HEADER_BYTES: Final = 17
ACK_BYTES: Final = 10
TRAILER_BYTES: Final = 4
OVERHEAD_BYTES: Final = HEADER_BYTES + TRAILER_BYTES
#: the farthest that `back` tells
MAX_BACK: Final = 0xFFFF

# type, sending, index, data, total, tag, number, back, length
_FRAGMENT: Final = struct.Struct(">BBBBBIIHH")
# type, octets of the map, tag, highest number
_ACK: Final = struct.Struct(">BBII")
assert (_FRAGMENT.size, _ACK.size) == (HEADER_BYTES, ACK_BYTES)


@dataclass(slots=True, init=False)
class Fragment:
    """One fragment of a packet. `back` is how far `number` is ahead of the oldest packet that may still be sent."""

    #: the sender's incarnation
    tag: int
    number: int
    back: int
    #: how often the packet had been sent before
    sending: int
    index: int
    #: fragments that suffice, and all of the packet
    data: int
    total: int
    #: octets of the packet
    length: int
    shard: Sized

    # a dataclass's own is interpreted, where the rest is compiled
    def __init__(
        self,
        tag: int,
        number: int,
        back: int,
        sending: int,
        index: int,
        data: int,
        total: int,
        length: int,
        shard: Sized,
    ) -> None:
        self.tag = tag
        self.number = number
        self.back = back
        self.sending = sending
        self.index = index
        self.data = data
        self.total = total
        self.length = length
        self.shard = shard

    @property
    def nbytes(self) -> int:
        """Octets on the air."""
        return OVERHEAD_BYTES + len(self.shard)


@dataclass(slots=True, init=False)
class Ack:
    """The packets that the receiver has: `highest`, the highest number seen, minus i for every bit i of `received`."""

    #: of the fragments that it acknowledges
    tag: int
    highest: int
    received: int

    def __init__(self, tag: int, highest: int, received: int) -> None:
        self.tag = tag
        self.highest = highest
        self.received = received

    @property
    def nbytes(self) -> int:
        """Octets on the air."""
        return ACK_BYTES + (self.received.bit_length() + 7) // 8 + TRAILER_BYTES


Frame = Fragment | Ack


def emit(frame: Frame) -> bytes:
    """Return the octets of `frame`. Its shard must be octets."""
    if isinstance(frame, Fragment):
        head = _FRAGMENT.pack(
            TYPE_FRAGMENT,
            frame.sending,
            frame.index,
            frame.data,
            frame.total,
            frame.tag,
            frame.number,
            frame.back,
            frame.length,
        )
        body = head + cast(bytes, frame.shard)
    else:
        received = frame.received
        size = (received.bit_length() + 7) // 8
        body = _ACK.pack(TYPE_ACK, size, frame.tag, frame.highest) + received.to_bytes(size, "big")
    return body + zlib.crc32(body).to_bytes(TRAILER_BYTES, "big")


def parse(octets: bytes) -> Frame:
    """Return the frame in `octets`. Raises FrameError."""
    body = octets[:-TRAILER_BYTES]
    if len(body) < ACK_BYTES:
        raise FrameError(f"{len(octets)} octets: too short for a frame")
    if zlib.crc32(body).to_bytes(TRAILER_BYTES, "big") != octets[-TRAILER_BYTES:]:
        raise FrameError("CRC failed")
    if body[0] == TYPE_FRAGMENT:
        return _parse_fragment(body)
    if body[0] == TYPE_ACK:
        return _parse_ack(body)
    raise FrameError(f"type {body[0]:#x}: not a frame of this link")


def _parse_fragment(body: bytes) -> Fragment:
    if len(body) <= HEADER_BYTES:
        raise FrameError("fragment without octets")
    _, sending, index, data, total, tag, number, back, length = _FRAGMENT.unpack_from(body)
    shard = body[HEADER_BYTES:]
    if not (1 <= data <= total and index < total):
        raise FrameError(f"fragment {index} of {total}, {data} suffice: cannot be")
    if len(shard) != fragment_bytes(length, data):
        raise FrameError(f"a fragment of {len(shard)} octets is not one of {data} of {length} octets")
    return Fragment(tag, number, back, sending, index, data, total, length, shard)


def _parse_ack(body: bytes) -> Ack:
    _, size, tag, highest = _ACK.unpack_from(body)
    octets = body[ACK_BYTES:]
    if len(octets) != size or octets[:1] == b"\0":
        raise FrameError("acknowledgement of the wrong length")
    return Ack(tag, highest, int.from_bytes(octets, "big"))


def describe(octets: bytes) -> Description:
    """Describe a frame."""
    try:
        frame = parse(octets)
    except FrameError as error:
        return Description(f"damaged: {error}", intact=False)
    if isinstance(frame, Fragment):
        kind = "fragment" if frame.index < frame.data else "FEC fragment"
        again = f", sent again ({frame.sending})" if frame.sending else ""
        return Description(f"{kind} {frame.index + 1} of {frame.total} of packet {frame.number}{again}", intact=True)
    return Description(f"ACK of {frame.received.bit_count()} packets up to {frame.highest}", intact=True)
