"""A base station that splits TCP connections in two, in virtual time.

    wired host == connection of BAS ==[ 64 KB ]== connection of BAS ~~ hop ~~ mobile host

Read first: `hosts/engine/split_pairs.py`, the machine that this drives.

Rule kept here: in each direction of a connection it holds `buffer_bytes` at most: octets that have come and that the
other side has not acknowledged. The window it offers is the rest, so a sender waits while the other side stalls.
"""

from functools import partial
from random import Random
from typing import Final

from typing_extensions import override

from hosts.engine.clock import Clock
from hosts.engine.packets import Datagram, Deliver, taker
from hosts.engine.split_pairs import MOST_CONNECTIONS, End, Pairs, SplitCounters
from hosts.engine.stack import Application, CallApplication, Socket, Stack
from hosts.tcp.config import TcpConfig
from hosts.tcp.connection import Connection, State
from hosts.tcp.states import TO_BE_RESET
from tcpip.segment import Segment

#: the states in which a side still has something to lose
_ALIVE: Final = TO_BE_RESET | {State.SYN_SENT}
_OVER: Final = frozenset({State.CLOSED, State.TIME_WAIT})


class Splitter:
    """BAS between its LAN and its radio: `handle_wired` and `handle_wireless` take packets, the callables give them.

    `rng` draws initial sequence numbers. Packets that are not TCP's pass.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        wired: TcpConfig,
        wireless: TcpConfig,
        buffer_bytes: int,
        send_wired: Deliver,
        send_wireless: Deliver,
        rng: Random,
    ) -> None:
        self.buffer_bytes = buffer_bytes
        self._send_wired, self._send_wireless = taker(send_wired), taker(send_wireless)
        self._configs = {"wired": wired, "wireless": wireless}
        self._pairs = Pairs()
        #: each stands for all hosts of the other side
        self._hosts = {"wired": Stack(clock, 0, send_wired, rng), "wireless": Stack(clock, 0, send_wireless, rng)}
        for side, host in self._hosts.items():
            host.listen_to_all(self._configs[side], partial(self._accept, side), MOST_CONNECTIONS)

    def handle_wired(self, packet: Segment | Datagram) -> None:
        """Take a packet of the LAN's."""
        if isinstance(packet, Datagram):
            self._send_wireless.take(packet)
        else:
            self._hosts["wired"].take(packet)

    def handle_wireless(self, packet: Segment | Datagram) -> None:
        """Take a packet that has crossed the radio link."""
        if isinstance(packet, Datagram):
            self._send_wired.take(packet)
        else:
            self._hosts["wireless"].take(packet)

    def counters(self) -> SplitCounters:
        """Return the counters so far."""
        counters = self._pairs.counters()
        counters.refusals += sum(host.refusals for host in self._hosts.values())
        return counters

    def wireless(self) -> list[Connection]:
        """The connections towards the mobile host."""
        return [pair.wireless.connection for pair in self._pairs.all() if isinstance(pair.wireless, NumbersEnd)]

    def _accept(self, side: str, socket: Socket) -> Application | None:
        """Connect onwards for a connection that was accepted on a side."""
        onwards = "wireless" if side == "wired" else "wired"
        # as its peer sends
        flow = socket.connection.flow.reversed()
        host, config = self._hosts[onwards], self._configs[onwards]

        def connect() -> NumbersEnd | None:
            if host.has(flow):
                # the one before it, with the same addresses and ports, is not over there
                return None
            return NumbersEnd(host.open(config, flow), config.buffers.receive_buffer, self.buffer_bytes)

        near = NumbersEnd(socket, self._configs[side].buffers.receive_buffer, self.buffer_bytes)
        self._pairs.join(near, connect, near_is_wireless=side == "wireless")
        return socket.application


class NumbersEnd(End):
    """A connection of our TCP's that passes on numbers of octets; its window is `receive_buffer` at most."""

    def __init__(self, socket: Socket, receive_buffer: int, limit: int) -> None:
        self.connection = socket.connection
        self._socket, self._receive_buffer, self._limit = socket, receive_buffer, limit
        #: octets
        self._passed_on = 0
        socket.application = CallApplication(self.handle)

    @property
    @override
    def error(self) -> str | None:
        return self.connection.error

    @property
    @override
    def over(self) -> bool:
        return self.connection.state in _OVER

    @property
    @override
    def retransmits(self) -> int:
        return self.connection.counters.retransmits

    @property
    @override
    def timeouts(self) -> int:
        return self.connection.counters.timeouts

    @override
    def relay(self, sink: End) -> int:
        assert isinstance(sink, NumbersEnd)
        connection, onwards = self.connection, sink.connection
        if onwards.state is State.CLOSED:
            return 0
        received = connection.bytes_received
        if received > self._passed_on:
            self._passed_on += onwards.write(received - self._passed_on)
        held = received - onwards.bytes_acked
        # octets that are not read make the window smaller: it is the rest of `limit`, and the receive buffer at most
        unread = held - (self._limit - self._receive_buffer)
        readable = connection.readable
        if readable and readable > unread:
            connection.discard(readable - max(unread, 0))
        if connection.fin_received and onwards.connected:
            sink._socket.close()
        return held

    @override
    def settle(self, other: End) -> None:
        self._socket.pump()

    @override
    def reset(self) -> None:
        if self.connection.state in _ALIVE:
            self._socket.abort()

    @override
    def release(self) -> None:
        """Close the socket; the stack finishes the connection."""
