"""Scheme `none`: packets cross bare. No ARQ, no FEC, no flow control: the baseline of all other schemes.

A frame is the packet and a CRC-32, so that a damaged one is dropped, as any link's frame check does. Packets go
straight to the radio. Its MAC buffer drops packets that it has no room for (SLACP paper, section 4).
"""

import zlib
from collections import deque
from collections.abc import Sized
from dataclasses import dataclass
from typing import Final, cast

from mypy_extensions import mypyc_attr

from linklayer.link import Description, FrameError, Link, LinkCounters

TRAILER_BYTES: Final = 4


@dataclass(slots=True, init=False)
class PlainFrame:
    """One packet on the air."""

    payload: Sized

    def __init__(self, payload: Sized) -> None:
        self.payload = payload

    @property
    def nbytes(self) -> int:
        """Octets on the air."""
        return len(self.payload) + TRAILER_BYTES


@mypyc_attr(allow_interpreted_subclasses=True)
class Plain(Link):
    """One end of a link that does nothing about losses."""

    flow_control = False

    def __init__(self) -> None:
        self._counters = LinkCounters()
        self._unsent: deque[Sized] = deque()
        self._delivered: deque[Sized] = deque()

    def wants_packet(self, channel: int) -> bool:
        """Whether the next packet may be handed over: one at a time."""
        return not self._unsent

    def handle_packet(self, packet: Sized, channel: int) -> None:
        """Take one packet. Raises RuntimeError, and changes nothing, when none is wanted."""
        if self._unsent:
            raise RuntimeError("a packet was handed over that the link did not want")
        self._unsent.append(packet)

    def poll_frame(self, now: int) -> PlainFrame | None:
        if not self._unsent:
            return None
        packet = self._unsent.popleft()
        self._counters.packets += 1
        self._counters.useful_bytes += len(packet)
        return PlainFrame(packet)

    def handle_frame(self, frame: PlainFrame, now: int) -> None:
        self._counters.delivered += 1
        self._counters.delivered_bytes += len(frame.payload)
        self._delivered.append(frame.payload)

    def poll_packet(self) -> tuple[Sized, int] | None:
        return (self._delivered.popleft(), 0) if self._delivered else None

    def counters(self) -> LinkCounters:
        return self._counters


def emit(frame: PlainFrame) -> bytes:
    """Return the octets of `frame`. Its payload must be octets."""
    packet = cast(bytes, frame.payload)
    return packet + zlib.crc32(packet).to_bytes(TRAILER_BYTES, "big")


def parse(octets: bytes) -> PlainFrame:
    """Return the frame in `octets`. Raises FrameError."""
    if len(octets) <= TRAILER_BYTES:
        # four zeros would pass for an empty packet with a right CRC
        raise FrameError(f"{len(octets)} octets: too short for a frame")
    packet = octets[:-TRAILER_BYTES]
    if zlib.crc32(packet).to_bytes(TRAILER_BYTES, "big") != octets[-TRAILER_BYTES:]:
        raise FrameError("CRC failed")
    return PlainFrame(packet)


def describe(octets: bytes) -> Description:
    """Describe a frame."""
    try:
        frame = parse(octets)
    except FrameError as error:
        return Description(f"damaged: {error}", intact=False)
    return Description(f"packet of {len(frame.payload)} bytes", intact=True)
