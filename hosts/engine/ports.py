"""UDP ports whose payloads are octets, for transports above UDP, and the logs of such transports.

Rule kept: no datagram is larger than the path's MTU allows, and none is fragmented (RFC 9000 section 14).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TextIO

from mypy_extensions import mypyc_attr

#: IPv4 address and port
Address = tuple[str, int]
#: takes a payload, the address that sent it, and the time it was sent at (ns on the clock; -1: not known)
Take = Callable[[bytes, Address, int], None]
#: opens a new text file by its name, in the folder of the run
OpenLog = Callable[[str], TextIO]


@mypyc_attr(allow_interpreted_subclasses=True)
class UdpPort(ABC):
    """One UDP port of a host."""

    @abstractmethod
    def start(self, take: Take) -> None:
        """Call `take` with each datagram from now on; the clock has the time of its arrival."""

    @abstractmethod
    def send(self, payload: bytes, to: Address) -> None:
        """Send a datagram; one that is refused is lost."""

    @abstractmethod
    def close(self) -> None:
        """Release the port; idempotent."""


@mypyc_attr(allow_interpreted_subclasses=True)
class UdpPorts(ABC):
    """A host's UDP, as a transport above it uses it."""

    @abstractmethod
    def open(self, port: int) -> UdpPort:
        """Take a port. Raises HostError when it is taken."""

    @abstractmethod
    def payload_bytes(self, address: str) -> int:
        """Return the largest payload of a datagram to an address that no host or router fragments."""
