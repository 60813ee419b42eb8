"""UDP over the kernel's sockets.

Read first: `hosts/engine/datagrams.py` for the packets.
"""

import socket
import struct
from collections.abc import Callable
from typing import Final

from typing_extensions import override

from hosts.engine.datagrams import DatagramReceiver, Datagrams, DatagramSender
from hosts.engine.packets import UDP_HEADERS
from hosts.kernel.sockets import listen
from hosts.loop import READ, Loop

#: header of each payload: sequence number, and CLOCK_MONOTONIC (ns) of sending
_PAYLOAD_HEADER: Final = struct.Struct("!QQ")
#: most datagrams in a row, before other sources of the loop are served
_TURN: Final = 64
_MAX_BYTES: Final = 65535


class KernelDatagrams(Datagrams):
    """The UDP of the current namespace."""

    def __init__(self, loop: Loop, host: str) -> None:
        self._loop, self._host = loop, host

    @override
    def sender(self, address: str, port: int, packet_bytes: int) -> "KernelDatagramSender":
        return KernelDatagramSender(address, port, packet_bytes)

    @override
    def receiver(self, port: int) -> "KernelDatagramReceiver":
        return KernelDatagramReceiver(self._loop, listen(self._host, port, socket.SOCK_DGRAM))


class KernelDatagramSender(DatagramSender):
    """A connected UDP socket."""

    def __init__(self, address: str, port: int, packet_bytes: int) -> None:
        self._padding = bytes(packet_bytes - UDP_HEADERS - _PAYLOAD_HEADER.size)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.connect((address, port))

    @override
    def send(self, sequence: int, now: int) -> bool:
        try:
            self._socket.send(_PAYLOAD_HEADER.pack(sequence, now) + self._padding)
        except OSError:
            # a full queue, or an ICMP error about an earlier packet: UDP goes on
            return False
        return True

    @override
    def close(self) -> None:
        self._socket.close()


class KernelDatagramReceiver(DatagramReceiver):
    """A bound UDP socket."""

    def __init__(self, loop: Loop, bound: socket.socket) -> None:
        self._loop, self._socket = loop, bound

    @override
    def start(self, take: Callable[[int, int, int], None]) -> None:
        """Earlier datagrams wait in the socket."""
        self._loop.watch(self._socket, READ, lambda: self._read(take))

    @override
    def close(self) -> None:
        self._loop.forget(self._socket)
        self._socket.close()

    def _read(self, take: Callable[[int, int, int], None]) -> None:
        for _ in range(_TURN):
            try:
                payload = self._socket.recv(_MAX_BYTES)
            except OSError:
                return
            self._loop.refresh()
            if len(payload) >= _PAYLOAD_HEADER.size:
                sequence, sent_at = _PAYLOAD_HEADER.unpack_from(payload)
                take(len(payload), sequence, sent_at)
