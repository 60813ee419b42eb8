"""The path of packets: the interface of their takers, and the datagrams of virtual time."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final

from mypy_extensions import mypyc_attr

from tcpip.segment import Flow, IpPacket

#: IP protocol numbers
TCP: Final = 6
UDP: Final = 17
#: octets of the IPv4 and UDP headers
UDP_HEADERS: Final = 28


@mypyc_attr(allow_interpreted_subclasses=True)
class Taker(ABC):
    """Takes packets: a wire, a router, a station, a host. A clock delivers to it likewise."""

    @abstractmethod
    def take(self, packet: Any) -> None:
        """Take one packet."""


class _Call(Taker):
    def __init__(self, call: Callable[[Any], object]) -> None:
        self._call = call

    def take(self, packet: Any) -> None:
        self._call(packet)


#: the destination of packets: a taker, or a function for rare packets
Deliver = Taker | Callable[[Any], object]


def taker(deliver: Deliver) -> Taker:
    """Return a taker that passes on to `deliver`."""
    return deliver if isinstance(deliver, Taker) else _Call(deliver)


@mypyc_attr(allow_interpreted_subclasses=True)
class Datagram(IpPacket):
    """A UDP datagram in its IP packet of `nbytes` octets; its payload carries `sequence` and `sent_at`."""

    __slots__ = ("sent_at", "sequence")

    def __init__(self, flow: Flow, nbytes: int, sequence: int, sent_at: int) -> None:
        super().__init__(flow, nbytes)
        self.sequence = sequence
        self.sent_at = sent_at


@mypyc_attr(allow_interpreted_subclasses=True)
class PayloadDatagram(Datagram):
    """A UDP datagram with its payload's octets."""

    __slots__ = ("payload",)

    def __init__(self, flow: Flow, payload: bytes, sent_at: int) -> None:
        super().__init__(flow, UDP_HEADERS + len(payload), 0, sent_at)
        self.payload = payload
