"""Writes frames with comments to a capture file that Wireshark can read, and reads such files.

Read first: draft-ietf-opsawg-pcapng, sections 3.1 (blocks), 3.5 (options), 4.1 to 4.3 (the three blocks written here).

Rules: the file always ends with a complete block, so it can be read after a killed process and after a full disk. While
frames come, blocks are buffered for at most a second, so `tail -f` can follow. Times are Unix time in ns, and increase
if the caller's do. A reader passes over blocks of other kinds, as the draft demands, and reads the file of a killed run
up to its last complete block. Every other fault is a CaptureError of one line.

Left out: statistics, name resolution and all other blocks; more than one section; reading of big-endian files, times in
other units than ns, and simple packet blocks.
"""

import os
import platform
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Final

from common.closing import Closing

_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_BYTE_ORDER_MAGIC = 0x1A2B3C4D
_UNKNOWN_LENGTH = -1

# options, by the block they belong to
_END, _COMMENT = 0, 1
_SHB_HARDWARE, _SHB_OS, _SHB_APPLICATION = 2, 3, 4
_IF_NAME, _IF_DESCRIPTION, _IF_TSRESOL, _IF_FCSLEN = 2, 3, 9, 13
_EPB_FLAGS, _EPB_DROPCOUNT = 2, 4
_NANOSECONDS = 9

#: octets of the frame check at the end of every frame
_FCS_BYTES: Final = 4
_FLAG_FCS: Final = _FCS_BYTES << 5
_FLAG_CRC_ERROR: Final = 1 << 24

_BLOCK = struct.Struct("<II")
_SECTION_FIELDS = struct.Struct("<IHHq")
_INTERFACE_FIELDS = struct.Struct("<HHI")
_PACKET_FIELDS = struct.Struct("<IIIII")
_OPTION = struct.Struct("<HH")
#: type and total length in front, total length again behind
_FRAME_BYTES: Final = 12

_FLUSH_BYTES = 1 << 16
_FLUSH_NS = 1_000_000_000


class CaptureError(RuntimeError):
    """A capture file cannot be written; one line."""


class Direction(IntEnum):
    """The direction of a frame, as numbered in the packet flags."""

    INBOUND = 1
    OUTBOUND = 2


class PcapngWriter(Closing):
    """Writes one capture file; a context manager. Replaces an existing file. Raises CaptureError."""

    def __init__(self, path: Path, *, application: str) -> None:
        self._path = path
        self._blocks: list[bytes] = []
        self._nbytes = 0
        #: octets of whole blocks in the file
        self._written = 0
        self._flushed_ns = 0
        self._interfaces = 0
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise CaptureError(f"{path}: cannot write a capture there: {error.strerror}") from None
        machine = platform.uname()
        section = _SECTION_FIELDS.pack(_BYTE_ORDER_MAGIC, 1, 0, _UNKNOWN_LENGTH)
        hardware, system = machine.machine.encode(), f"{machine.system} {machine.release}".encode()
        options = ((_SHB_HARDWARE, hardware), (_SHB_OS, system), (_SHB_APPLICATION, application.encode()))
        self._add(_SECTION, section, *options)

    def interface(self, link_type: int, *, name: str, description: str) -> int:
        """Describe a source of frames; return its number for `packet`. Its frames end with four octets of FCS."""
        fields = _INTERFACE_FIELDS.pack(link_type, 0, 0)
        options = (
            (_IF_NAME, name.encode()),
            (_IF_DESCRIPTION, description.encode()),
            (_IF_TSRESOL, bytes((_NANOSECONDS,))),
            (_IF_FCSLEN, bytes((_FCS_BYTES,))),
        )
        self._add(_INTERFACE, fields, *options)
        self._interfaces += 1
        return self._interfaces - 1

    def packet(
        self,
        interface: int,
        time_ns: int,
        octets: bytes,
        *,
        direction: Direction,
        comment: str,
        crc_error: bool = False,
        dropped: int = 0,
    ) -> None:
        """Append one frame. `dropped` is the number of frames dropped since the previous one."""
        nbytes = len(octets)
        fields = _PACKET_FIELDS.pack(interface, time_ns >> 32, time_ns & 0xFFFF_FFFF, nbytes, nbytes)
        flags = direction | _FLAG_FCS | (_FLAG_CRC_ERROR if crc_error else 0)
        options = [(_COMMENT, comment.encode()), (_EPB_FLAGS, flags.to_bytes(4, "little"))]
        if dropped:
            options.append((_EPB_DROPCOUNT, dropped.to_bytes(8, "little")))
        self._add(_PACKET, fields + _padded(octets), *options)
        if self._nbytes >= _FLUSH_BYTES or time_ns >= self._flushed_ns + _FLUSH_NS:
            self._flushed_ns = time_ns
            self.flush()

    def flush(self) -> None:
        """Write all blocks to the file. Raises CaptureError; the file then ends with the last complete block."""
        data = memoryview(b"".join(self._blocks))
        self._blocks.clear()
        self._nbytes = 0
        try:
            while data:
                data = data[os.write(self._fd, data) :]
            self._written = os.lseek(self._fd, 0, os.SEEK_CUR)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._fd, self._written)
            raise CaptureError(f"{self._path}: the capture cannot go on: {error.strerror}") from None

    def close(self) -> None:
        """Write all blocks to the file and close it; idempotent."""
        if self._fd >= 0:
            try:
                self.flush()
            finally:
                os.close(self._fd)
                self._fd = -1

    def _add(self, kind: int, fields: bytes, *options: tuple[int, bytes]) -> None:
        parts = [fields]
        for code, value in options:
            parts += (_OPTION.pack(code, len(value)), _padded(value))
        parts.append(_OPTION.pack(_END, 0))
        body = b"".join(parts)
        nbytes = len(body) + _FRAME_BYTES
        self._blocks.append(b"".join((_BLOCK.pack(kind, nbytes), body, nbytes.to_bytes(4, "little"))))
        self._nbytes += nbytes


def _padded(octets: bytes) -> bytes:
    """Pad to a multiple of 32 bits."""
    return octets + bytes(-len(octets) % 4)


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
        if at == 0 and (kind != _SECTION or int.from_bytes(data[8:12], "little") != _BYTE_ORDER_MAGIC):
            raise CaptureError(f"{path}: is no capture of fadelab")
        if nbytes < _FRAME_BYTES or nbytes % 4:
            raise CaptureError(f"{path}: octet {at} begins a block of {nbytes} octets, which cannot be")
        if at + nbytes > len(data):
            # the run was killed while it wrote
            return
        body = data[at + 8 : at + nbytes - 4]
        try:
            if kind == _INTERFACE:
                interfaces.append(dict(_options(body[8:])).get(_IF_NAME, b"").decode())
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
    flags = int.from_bytes(options.get(_EPB_FLAGS, b""), "little")
    return CapturedFrame(
        time_ns=high << 32 | low,
        interface=interfaces[interface],
        octets=body[start : start + nbytes],
        direction=Direction(flags & 3),
        comment=options.get(_COMMENT, b"").decode(),
        crc_error=bool(flags & _FLAG_CRC_ERROR),
    )


def _options(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _OPTION.size <= len(data):
        code, nbytes = _OPTION.unpack_from(data, at)
        if code == _END:
            return
        yield code, data[at + 4 : at + 4 + nbytes]
        at += 4 + nbytes + -nbytes % 4
