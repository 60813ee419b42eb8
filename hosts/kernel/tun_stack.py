"""Our TCP in real time: a stack of connections whose segments cross a TUN.

Read first: `hosts/engine/stack.py` for the stack, `hosts/kernel/tun.py` for the routing of segments.

Rules kept

- A packet that the TUN has no room for is lost and counted, as in any queue.
- Octets that are no segment, and segments for another host, are counted and dropped.
- Initial sequence numbers and ports cannot be guessed (RFC 6528, RFC 6056), and differ between processes, since a peer
  may still have connections of an earlier one.
- A stack on a router's TUN (`TransitTun`) has all addresses: it accepts connections to any address and connects from
  any.
"""

from ipaddress import IPv4Address
from random import SystemRandom
from typing import Final

from typing_extensions import override

from hosts.engine.context import Context
from hosts.engine.own_tcp import OwnTcp
from hosts.engine.stack import Stack
from hosts.errors import HostError
from hosts.kernel.tun import Tun
from hosts.loop import READ, Loop
from hosts.tcp.config import TcpConfig
from tcpip.segment import Segment
from tcpip.wire import SegmentError, emit, parse

#: most packets in a row, before other sources of the loop are served
_TURN: Final = 64
#: least limit of data ahead of the acknowledgements (see `OwnTcp`), as Linux's send buffer
_AHEAD_BYTES: Final = 65_536


class TunStack:
    """All connections of one host over `tun`, which the loop watches from now on."""

    def __init__(self, loop: Loop, tun: Tun) -> None:
        self.tun = tun
        #: octets that were no segment, and segments for another host
        self.rejected = 0
        self._loop = loop
        self._address = None if tun.address is None else int(IPv4Address(tun.address))
        self.stack = Stack(loop, self._address or 0, self._send, SystemRandom(), random_ports=True)
        loop.watch(tun, READ, self._receive)

    def check(self) -> None:
        """Raise HostError when packets were lost between the kernel and this process, and not on the link."""
        if lost := self.tun.lost:
            raise HostError(
                f"{lost} packets were lost at {self.tun.name}: this machine is too slow for our TCP at such rates"
            )

    def _send(self, segment: Segment) -> None:
        self.tun.write(emit(segment))

    def _receive(self) -> None:
        for _ in range(_TURN):
            packet = self.tun.read()
            if packet is None:
                return
            try:
                segment = parse(packet)
            except SegmentError:
                self.rejected += 1
                continue
            if self._address is not None and segment.flow.destination != self._address:
                self.rejected += 1
                continue
            self._loop.refresh()
            self.stack.take(segment)


class TunTcp(OwnTcp):
    """Our TCP over a TUN, as an agent uses it; it closes the TUN."""

    def __init__(self, context: Context, driver: TunStack, config: TcpConfig) -> None:
        super().__init__(context, driver.stack, config, ahead_bytes=_AHEAD_BYTES)
        self._driver = driver

    @override
    def check(self) -> None:
        self._driver.check()

    @override
    def close(self) -> None:
        self._driver.tun.close()
