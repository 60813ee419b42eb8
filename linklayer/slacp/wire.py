"""SLACP's octets: emit and parse. The formats are in docs/slacp.md.

Rules: a frame is parsed once, into a valid object; emit then parse gives an equal object. The CRC-32 covers the whole
frame; the header has a check of its own, so that a damaged frame can still tell which transmission it was. A frame
that fails both is a `FrameError`. Octets behind the CRC are padding of the physical layer and are passed over.
"""

import binascii
import struct
import zlib
from typing import Final, cast

from common.sequence import MASK
from linklayer.link import FrameError
from linklayer.slacp.frames import (
    BLOCK_BYTES,
    FEC_BYTES,
    HEADER_BYTES,
    HELLO_BYTES,
    OVERHEAD_BYTES,
    Ack,
    Damaged,
    Data,
    Fec,
    Frame,
    Hello,
    Sync,
)

VERSION: Final = 1
TYPE_DATA, TYPE_FEC, TYPE_SYNC, TYPE_ACK, TYPE_HELLO = range(1, 6)
FLAG_RETRANSMISSION: Final = 1
FLAG_BLOCK: Final = 2
FLAG_REPEAT: Final = 4
FLAG_ESTABLISHED: Final = 8

# version and type, channel and flags, body length, tag, tx, seq, arg; then the header check
_CHECKED: Final = struct.Struct(">BBHIIIH")
_HEADER: Final = struct.Struct(">BBHIIIHH")
_BLOCK: Final = struct.Struct(">HBx")
_FEC: Final = struct.Struct(">BBxx")
_NUMBER: Final = struct.Struct(">I")
_CHECK_SEED: Final = 0xFFFF

_VERSION_BITS: Final = VERSION << 4


def emit(frame: Frame) -> bytes:
    """Return the octets of `frame`. A payload or shard must be octets here."""
    kind = type(frame)
    if kind is Data:
        frame = cast(Data, frame)
        payload = cast(bytes, frame.payload)
        flags = frame.channel << 4
        if frame.retransmission:
            flags |= FLAG_RETRANSMISSION
            if frame.block is not None:
                flags |= FLAG_BLOCK
                payload = _BLOCK.pack(frame.block, frame.index) + payload
        return _seal(TYPE_DATA, flags, frame.tag, frame.tx, frame.seq, frame.back, payload)
    if kind is Ack:
        frame = cast(Ack, frame)
        flags = frame.channel << 4 | (FLAG_REPEAT if frame.repeat else 0)
        received = frame.received
        body = received.to_bytes((received.bit_length() + 7) // 8, "little")
        return _seal(TYPE_ACK, flags, frame.tag, frame.tx_high, frame.cum, 0, body)
    if kind is Fec:
        frame = cast(Fec, frame)
        body = _FEC.pack(frame.actual, frame.index) + cast(bytes, frame.shard)
        return _seal(TYPE_FEC, frame.channel << 4, frame.tag, frame.tx, frame.base, frame.block, body)
    if kind is Sync:
        frame = cast(Sync, frame)
        return _seal(TYPE_SYNC, frame.channel << 4, frame.tag, frame.tx, frame.base, 0, b"")
    frame = cast(Hello, frame)
    flags = FLAG_ESTABLISHED if frame.established else 0
    return _seal(TYPE_HELLO, flags, frame.echo, frame.ident, frame.offer, 0, _NUMBER.pack(frame.first))


def _seal(kind: int, flags: int, tag: int, tx: int, seq: int, arg: int, body: bytes) -> bytes:
    checked = _CHECKED.pack(_VERSION_BITS | kind, flags, len(body), tag, tx, seq, arg)
    header = checked + binascii.crc_hqx(checked, _CHECK_SEED).to_bytes(2, "big")
    return b"".join((header, body, zlib.crc32(body, zlib.crc32(header)).to_bytes(4, "big")))


def parse(octets: bytes) -> Frame | Damaged:
    """Return the frame in `octets`, or `Damaged` where only the header can be trusted. Raises FrameError."""
    if len(octets) < OVERHEAD_BYTES:
        raise FrameError(f"{len(octets)} octets: too short for a frame")
    version_kind, flags, length, tag, tx, seq, arg, check = _HEADER.unpack_from(octets)
    if binascii.crc_hqx(octets[: HEADER_BYTES - 2], _CHECK_SEED) != check:
        raise FrameError("header check failed")
    kind = version_kind ^ _VERSION_BITS
    if not TYPE_DATA <= kind <= TYPE_HELLO:
        raise FrameError(f"unknown version or type {version_kind:#04x}")
    channel = flags >> 4
    end = HEADER_BYTES + length
    body = octets[HEADER_BYTES:end]
    trailer = octets[end : end + 4]
    if zlib.crc32(body, zlib.crc32(octets[:HEADER_BYTES])).to_bytes(4, "big") != trailer:
        if kind in (TYPE_ACK, TYPE_HELLO):
            raise FrameError("CRC failed")
        return Damaged(tag, channel, tx, seq)

    if kind == TYPE_DATA:
        if not flags & FLAG_RETRANSMISSION:
            return Data(tag, channel, tx, seq, arg, body)
        if not flags & FLAG_BLOCK:
            return Data(tag, channel, tx, seq, arg, body, True)
        if length < BLOCK_BYTES:
            raise FrameError("data frame without its block fields")
        block, index = _BLOCK.unpack_from(body)
        return Data(tag, channel, tx, seq, arg, body[BLOCK_BYTES:], True, block, index)
    if kind == TYPE_ACK:
        return Ack(tag, channel, tx, seq, int.from_bytes(body, "little"), bool(flags & FLAG_REPEAT))
    if kind == TYPE_FEC:
        if length < FEC_BYTES:
            raise FrameError("redundancy frame without its block fields")
        actual, index = _FEC.unpack_from(body)
        if not 1 <= actual <= index:
            raise FrameError(f"redundancy frame {index} of {actual}: cannot be")
        return Fec(tag, channel, tx, seq, arg, actual, index, body[FEC_BYTES:])
    if kind == TYPE_SYNC:
        return Sync(tag, channel, tx, seq)
    if length != HELLO_BYTES:
        raise FrameError("hello frame of the wrong length")
    return Hello(tx, seq, tag, bool(flags & FLAG_ESTABLISHED), _NUMBER.unpack(body)[0] & MASK)


def damage(frame: Frame, bit_errors: tuple[int, ...]) -> Damaged | None:
    """Return the result of `parse` for the octets of `frame` with the bits at these offsets flipped.

    None stands for FrameError. Takes frames of size-only packets, too.
    """
    if isinstance(frame, Ack | Hello) or min(bit_errors) < 8 * HEADER_BYTES:
        return None
    seq = frame.seq if isinstance(frame, Data) else frame.base
    return Damaged(frame.tag, frame.channel, frame.tx, seq)
