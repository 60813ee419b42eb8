"""UDP ports over the kernel's sockets, for transports above UDP.

Read first: `hosts/engine/ports.py`; ip(7) for IP_MTU and IP_MTU_DISCOVER, which Python does not name.
"""

import socket
from typing import Final

from typing_extensions import override

from hosts.engine.packets import UDP_HEADERS
from hosts.engine.ports import Address, Take, UdpPort, UdpPorts
from hosts.errors import HostError
from hosts.kernel.sockets import listen
from hosts.loop import READ, Loop

_IP_MTU_DISCOVER: Final = 10
_IP_PMTUDISC_DO: Final = 2
_IP_MTU: Final = 14
#: most datagrams in a row, before other sources of the loop are served
_TURN: Final = 64
_MAX_BYTES: Final = 65535


class KernelUdpPorts(UdpPorts):
    """The UDP of the current namespace."""

    def __init__(self, loop: Loop, host: str) -> None:
        self._loop, self._host = loop, host

    @override
    def open(self, port: int) -> UdpPort:
        return _Port(self._loop, listen(self._host, port, socket.SOCK_DGRAM))

    @override
    def payload_bytes(self, address: str) -> int:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                # nothing is sent: the kernel looks up the route
                probe.connect((address, 9))
                mtu: int = probe.getsockopt(socket.IPPROTO_IP, _IP_MTU)
            except OSError as error:
                raise HostError(f"no route from host {self._host} to {address} ({error.strerror})") from None
        return mtu - UDP_HEADERS


class _Port(UdpPort):
    def __init__(self, loop: Loop, bound: socket.socket) -> None:
        self._loop, self._socket = loop, bound
        bound.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _IP_PMTUDISC_DO)

    @override
    def start(self, take: Take) -> None:
        """Earlier datagrams have waited in the socket."""
        self._loop.watch(self._socket, READ, lambda: self._read(take))

    @override
    def send(self, payload: bytes, to: Address) -> None:
        try:
            self._socket.sendto(payload, to)
        except OSError:
            # a full queue, or an ICMP error about an earlier packet: the transport above sends again
            return

    @override
    def close(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.forget(self._socket)
            self._socket.close()

    def _read(self, take: Take) -> None:
        for _ in range(_TURN):
            try:
                payload, (address, port) = self._socket.recvfrom(_MAX_BYTES)
            except OSError:
                return
            self._loop.refresh()
            take(payload, (address, port), -1)
