"""Packets of virtual time: they have a size and no octets."""

from collections.abc import Callable
from typing import Any, Final, Protocol

from tcpip.segment import NOT_ECT, Flow

#: IP protocol numbers
TCP: Final = 6
UDP: Final = 17

#: takes a packet: a wire, a router, a station, a host
Deliver = Callable[[Any], object]


class Packet(Protocol):
    """A segment (`tcpip/segment.py`) or a datagram: `nbytes` and `len()` are the octets of the whole IP packet."""

    flow: Flow
    nbytes: int

    def __len__(self) -> int: ...


class Datagram:
    """A UDP datagram in its IP packet of `nbytes` octets; its payload carries `sequence` and `sent_at`."""

    __slots__ = ("ecn", "flow", "nbytes", "sent_at", "sequence")

    def __init__(self, flow: Flow, nbytes: int, sequence: int, sent_at: int) -> None:
        self.flow = flow
        self.nbytes = nbytes
        self.sequence = sequence
        self.sent_at = sent_at
        self.ecn = NOT_ECT

    def __len__(self) -> int:
        return self.nbytes
