"""The frames of the adaptive link, as objects and as octets. The formats are in docs/adaptive.md.

Rules kept: a frame is parsed once, into a valid object; emit then parse gives an equal object. The CRC-32 covers the
whole frame: a damaged frame is no frame. Numbers are 32-bit and wrap. `tx` numbers the frames of one end but its
acknowledgements, repetitions included, so that a jump in it shows a loss.
"""

import struct
import zlib
from collections.abc import Sized
from dataclasses import dataclass
from typing import Final, cast

from common.sequence import MASK
from linklayer.adaptive.code import LENGTH_BYTES, MAX_INDEXES
from linklayer.link import Description, FrameError

#: kind and channel, session, tx, base, patience in ms, loss heard; a packet's distance from the base; of a combination
#: the first member, all of them, the index
_HEAD: Final = struct.Struct(">BHIIHB")
_DATA: Final = struct.Struct(">H")
_CODED: Final = struct.Struct(">IQB")
#: kind, session, count, newest tx, newest packet, octets of either bitmap
_ACK: Final = struct.Struct(">BHBIIBB")
CRC_BYTES: Final = 4
DATA_OVERHEAD_BYTES: Final = _HEAD.size + _DATA.size + CRC_BYTES
CODED_OVERHEAD_BYTES: Final = _HEAD.size + _CODED.size + LENGTH_BYTES + CRC_BYTES
MARK_BYTES: Final = _HEAD.size + CRC_BYTES
#: without its bitmaps; as long as a mark, the shortest of the others
ACK_BYTES: Final = _ACK.size + CRC_BYTES
#: numbers before the newest that an acknowledgement can tell of
MAX_BITMAP_BYTES: Final = 128
MAX_BITS: Final = 8 * MAX_BITMAP_BYTES
#: numbers before the newest that every acknowledgement tells of
MIN_BITS: Final = 64
CHANNELS: Final = 2
SESSIONS: Final = 1 << 16
#: frames from the oldest that may still come to the newest
MAX_WINDOW: Final = 1 << 14
MAX_PATIENCE_MS: Final = 0xFFFF
#: steps of the loss that a peer has heard
LOSS_STEPS: Final = 255

#: with the channel in the lowest bit
_KIND_DATA: Final = 0xC0
_KIND_CODED: Final = 0xC2
_KIND_MARK: Final = 0xC4
_KIND_ACK: Final = 0xC5


@dataclass(slots=True, init=False)
class Data:
    """One packet.

    The sender will send none of the numbers below `base` again. `patience_ms`: how long its packets may be under way;
    `heard`: the share of the peer's acknowledgements that did not come, in 1/255.
    """

    session: int
    channel: int
    tx: int
    base: int
    patience_ms: int
    heard: int
    seq: int
    payload: Sized

    # a dataclass's own is interpreted, where the rest is compiled
    def __init__(
        self,
        session: int,
        channel: int,
        tx: int,
        base: int,
        patience_ms: int,
        heard: int,
        seq: int,
        payload: Sized,
    ) -> None:
        self.session = session
        self.channel = channel
        self.tx = tx
        self.base = base
        self.patience_ms = patience_ms
        self.heard = heard
        self.seq = seq
        self.payload = payload

    @property
    def nbytes(self) -> int:
        """Octets on the air."""
        return DATA_OVERHEAD_BYTES + len(self.payload)


@dataclass(slots=True, init=False)
class Coded:
    """A combination of packets; otherwise as `Data`. Bit i of `members`: packet `first` + i is one of them."""

    session: int
    channel: int
    tx: int
    base: int
    patience_ms: int
    heard: int
    first: int
    members: int
    #: which combination of them
    index: int
    #: two octets longer than the longest member
    payload: Sized

    def __init__(
        self,
        session: int,
        channel: int,
        tx: int,
        base: int,
        patience_ms: int,
        heard: int,
        first: int,
        members: int,
        index: int,
        payload: Sized,
    ) -> None:
        self.session = session
        self.channel = channel
        self.tx = tx
        self.base = base
        self.patience_ms = patience_ms
        self.heard = heard
        self.first = first
        self.members = members
        self.index = index
        self.payload = payload

    @property
    def nbytes(self) -> int:
        """Octets on the air."""
        return CODED_OVERHEAD_BYTES - LENGTH_BYTES + len(self.payload)


@dataclass(slots=True, init=False)
class Mark:
    """No packet: it tells the base, and its acknowledgement the round trip."""

    session: int
    channel: int
    tx: int
    base: int
    patience_ms: int
    heard: int

    def __init__(self, session: int, channel: int, tx: int, base: int, patience_ms: int, heard: int) -> None:
        self.session = session
        self.channel = channel
        self.tx = tx
        self.base = base
        self.patience_ms = patience_ms
        self.heard = heard

    @property
    def nbytes(self) -> int:
        """Octets on the air."""
        return MARK_BYTES

    @property
    def payload(self) -> Sized:
        """A mark brings no packet."""
        return b""


@dataclass(slots=True, init=False)
class Ack:
    """What has come of the data's `session`: the frames `tx` and, for bit i of `frames`, `tx` - 1 - i; the packets
    likewise, restored ones included. `top` is below all that is awaited before the first packet.

    `count` numbers the acknowledgements.
    """

    session: int
    count: int
    tx: int
    frames: int
    top: int
    packets: int

    def __init__(self, session: int, count: int, tx: int, frames: int, top: int, packets: int) -> None:
        self.session = session
        self.count = count
        self.tx = tx
        self.frames = frames
        self.top = top
        self.packets = packets

    @property
    def nbytes(self) -> int:
        """Octets on the air."""
        return ACK_BYTES + octets_of(self.frames) + octets_of(self.packets)

    @property
    def payload(self) -> Sized:
        """An acknowledgement brings no packet."""
        return b""


Frame = Data | Coded | Mark | Ack


def octets_of(bitmap: int) -> int:
    """Return the octets of a bitmap on the air."""
    return (bitmap.bit_length() + 7) // 8


def members_of(frame: Coded) -> list[int]:
    """Return the offsets of a combination's members from its first."""
    members, offset, offsets = frame.members, 0, []
    while members:
        if members & 1:
            offsets.append(offset)
        members >>= 1
        offset += 1
    return offsets


def emit(frame: Frame) -> bytes:
    """Return the octets of `frame`. Its payload must be octets."""
    if isinstance(frame, Ack):
        octets = _emit_ack(frame)
    elif isinstance(frame, Data):
        head = _HEAD.pack(
            _KIND_DATA | frame.channel, frame.session, frame.tx, frame.base, frame.patience_ms, frame.heard
        )
        octets = head + _DATA.pack(frame.seq - frame.base & MASK) + cast(bytes, frame.payload)
    elif isinstance(frame, Coded):
        head = _HEAD.pack(
            _KIND_CODED | frame.channel, frame.session, frame.tx, frame.base, frame.patience_ms, frame.heard
        )
        octets = head + _CODED.pack(frame.first, frame.members, frame.index) + cast(bytes, frame.payload)
    else:
        octets = _HEAD.pack(_KIND_MARK, frame.session, frame.tx, frame.base, frame.patience_ms, frame.heard)
    return octets + zlib.crc32(octets).to_bytes(CRC_BYTES, "big")


def _emit_ack(frame: Ack) -> bytes:
    frames, packets = octets_of(frame.frames), octets_of(frame.packets)
    head = _ACK.pack(_KIND_ACK, frame.session, frame.count, frame.tx, frame.top, frames, packets)
    return head + frame.frames.to_bytes(frames, "little") + frame.packets.to_bytes(packets, "little")


def parse(octets: bytes) -> Frame:
    """Return the frame in `octets`. Raises FrameError."""
    if len(octets) < MARK_BYTES:
        raise FrameError(f"{len(octets)} octets: too short for a frame")
    body = octets[:-CRC_BYTES]
    if zlib.crc32(body).to_bytes(CRC_BYTES, "big") != octets[-CRC_BYTES:]:
        raise FrameError("CRC failed")
    kind = body[0]
    if kind == _KIND_ACK:
        return _parse_ack(body)
    if not _KIND_DATA <= kind <= _KIND_MARK:
        raise FrameError(f"unknown kind {kind:#04x}")
    _, session, tx, base, patience_ms, heard = _HEAD.unpack_from(body)
    if kind == _KIND_MARK:
        if len(octets) != MARK_BYTES:
            raise FrameError(f"a mark of {len(octets)} octets: must be {MARK_BYTES}")
        return Mark(session, 0, tx, base, patience_ms, heard)
    if kind >= _KIND_CODED:
        channel, start = kind - _KIND_CODED, _HEAD.size + _CODED.size
        if len(body) < start + LENGTH_BYTES:
            raise FrameError("a combination without octets")
        first, members, index = _CODED.unpack_from(body, _HEAD.size)
        if not members & 1:
            raise FrameError("a combination without its first member")
        if index >= MAX_INDEXES:
            raise FrameError(f"combination {index}: must be below {MAX_INDEXES}")
        return Coded(session, channel, tx, base, patience_ms, heard, first, members, index, body[start:])
    start = _HEAD.size + _DATA.size
    if len(body) <= start:
        raise FrameError("a packet without octets")
    ahead = _DATA.unpack_from(body, _HEAD.size)[0]
    if ahead >= MAX_WINDOW:
        raise FrameError(f"packet {ahead} after the base: must be below {MAX_WINDOW}")
    return Data(session, kind - _KIND_DATA, tx, base, patience_ms, heard, base + ahead & MASK, body[start:])


def _parse_ack(body: bytes) -> Ack:
    _, session, count, tx, top, frames, packets = _ACK.unpack_from(body)
    bits = body[_ACK.size :]
    if len(bits) != frames + packets or frames > MAX_BITMAP_BYTES or packets > MAX_BITMAP_BYTES:
        raise FrameError(f"bitmaps of {len(bits)} octets: must be {frames} and {packets}, {MAX_BITMAP_BYTES} at most")
    of_frames, of_packets = int.from_bytes(bits[:frames], "little"), int.from_bytes(bits[frames:], "little")
    if octets_of(of_frames) != frames or octets_of(of_packets) != packets:
        raise FrameError("a bitmap has octets that tell nothing")
    return Ack(session, count, tx, of_frames, top, of_packets)


def describe(octets: bytes) -> Description:
    """Describe a frame, for the readers of a capture."""
    try:
        frame = parse(octets)
    except FrameError as error:
        return Description(f"damaged: {error}", intact=False)
    if isinstance(frame, Ack):
        more = frame.frames.bit_count()
        return Description(f"ACK of transmission {frame.tx}" + (f" and {more} before" if more else ""), intact=True)
    if isinstance(frame, Mark):
        return Description(f"transmission {frame.tx}: nothing below packet {frame.base} comes", intact=True)
    where = f" of channel {frame.channel}" if frame.channel else ""
    if isinstance(frame, Coded):
        packets = ", ".join(str(frame.first + offset & MASK) for offset in members_of(frame))
        return Description(f"transmission {frame.tx}: combination of packets {packets}{where}", intact=True)
    words = f"transmission {frame.tx}: packet {frame.seq}{where}, {len(frame.payload)} bytes"
    return Description(words, intact=True)
