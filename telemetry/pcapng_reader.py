"""Reads the capture files of `pcapng.py`.

Read first: draft-ietf-opsawg-pcapng, sections 3.1 (blocks), 3.5 (options), 4.1 to 4.3.

Rules: a file of a killed run is read up to its last complete block. Any other fault is a CaptureError of one line.
Blocks of other kinds are passed over, as the draft demands.

Left out: big-endian files, times in other units than ns, simple packet blocks.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from telemetry.pcapng import CaptureError, Direction

_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_MAGIC: Final = 0x1A2B3C4D
_END, _COMMENT, _NAME, _FLAGS = 0, 1, 2, 2
_CRC_ERROR: Final = 1 << 24
_BLOCK: Final = struct.Struct("<II")
_OPTION: Final = struct.Struct("<HH")
_PACKET_FIELDS: Final = struct.Struct("<IIIII")
#: type and total length in front, total length behind
_FRAME_BYTES: Final = 12


@dataclass(frozen=True, slots=True)
class CapturedFrame:
    """One frame of a capture."""

    #: Unix time
    time_ns: int
    #: name of the interface: the link scheme
    interface: str
    octets: bytes
    direction: Direction
    comment: str
    crc_error: bool


def read_capture(path: Path) -> Iterator[CapturedFrame]:
    """Yield the frames of a capture file in their order. Raises CaptureError."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CaptureError(f"{path}: cannot be read: {error.strerror}") from None
    interfaces: list[str] = []
    at = 0
    while at + _FRAME_BYTES <= len(data):
        kind, nbytes = _BLOCK.unpack_from(data, at)
        if at == 0 and (kind != _SECTION or int.from_bytes(data[8:12], "little") != _MAGIC):
            raise CaptureError(f"{path}: is no capture of fadelab")
        if nbytes < _FRAME_BYTES or nbytes % 4:
            raise CaptureError(f"{path}: octet {at} begins a block of {nbytes} octets, which cannot be")
        if at + nbytes > len(data):
            # the run was killed while it wrote
            return
        body = data[at + 8 : at + nbytes - 4]
        try:
            if kind == _INTERFACE:
                interfaces.append(dict(_options(body[8:])).get(_NAME, b"").decode())
            elif kind == _PACKET:
                yield _frame(body, interfaces)
        except (struct.error, IndexError, ValueError):
            raise CaptureError(f"{path}: the block at octet {at} is damaged") from None
        at += nbytes
    if not data:
        raise CaptureError(f"{path}: is empty")


def _frame(body: bytes, interfaces: list[str]) -> CapturedFrame:
    interface, high, low, nbytes, _ = _PACKET_FIELDS.unpack_from(body)
    start = _PACKET_FIELDS.size
    options = dict(_options(body[start + nbytes + -nbytes % 4 :]))
    flags = int.from_bytes(options.get(_FLAGS, b""), "little")
    return CapturedFrame(
        time_ns=high << 32 | low,
        interface=interfaces[interface],
        octets=body[start : start + nbytes],
        direction=Direction(flags & 3),
        comment=options.get(_COMMENT, b"").decode(),
        crc_error=bool(flags & _CRC_ERROR),
    )


def _options(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _OPTION.size <= len(data):
        code, nbytes = _OPTION.unpack_from(data, at)
        if code == _END:
            return
        yield code, data[at + 4 : at + 4 + nbytes]
        at += 4 + nbytes + -nbytes % 4
