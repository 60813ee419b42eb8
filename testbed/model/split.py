"""A base station that splits TCP connections in two, in virtual time.

    wired host == connection of BAS ==[ 64 KB ]== connection of BAS ~~ hop ~~ mobile host

Read first: COMPARISON sections 2.2 and 3.3; docs/split.md; `hosts/split.py`: the same on the live tiers.

Rules kept here:

- Towards each host BAS has the other one's address and port: neither end sees that it is there.
- It accepts at once and connects onwards when the handshake is over; so one who is refused is reset.
- In each direction of a connection it holds `buffer_bytes` at most: octets that have come and that the other side has
  not acknowledged. The window it offers is what is left of that, so a sender waits while the other side stalls.
- A FIN goes on behind the last octet before it, one direction at a time; whatever ends one side otherwise resets the
  other.

Lost: what is acknowledged to a sender has reached BAS and not its receiver.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from random import Random
from typing import Final

from hosts.engine.clock import Clock
from hosts.engine.packets import Datagram, Deliver
from hosts.engine.stack import Application, Socket, Stack
from hosts.split_counters import SplitCounters
from hosts.tcp.config import MAX_UNSCALED_WINDOW, MAX_WINDOW_SCALE, TcpConfig
from hosts.tcp.connection import Connection, State
from hosts.tcp.profiles import USER_PROFILES
from hosts.tcp.states import TO_BE_RESET
from tcpip.segment import Segment
from testbed.scenario.schema import Scenario, user_tcp

#: connections BAS has at most towards one side, those in TIME-WAIT included; a SYN beyond them is not heard
MAX_CONNECTIONS: Final = 16_384
#: the states in which a side still has something to lose
_ALIVE = TO_BE_RESET | {State.SYN_SENT}


def split_configs(scenario: Scenario, profile: str) -> tuple[TcpConfig, TcpConfig]:
    """Return what BAS's TCP is on the wired side and on the wireless one, where the scheme names a profile.

    Wired, it is that of h2, but for the buffer and that a relay holds nothing back (RFC 896). Wireless, it is the same
    with the profile's loss recovery.
    """
    config = USER_PROFILES[user_tcp(scenario.tcp_of("h2"))].config
    most = MAX_UNSCALED_WINDOW << (MAX_WINDOW_SCALE if config.window_scaling else 0)
    # IPv4 and TCP headers
    wired = replace(
        config, mss=scenario.mtu - 40, receive_buffer=min(scenario.link.split_buffer_bytes, most), nagle=False
    )
    return wired, replace(wired, recovery=USER_PROFILES[profile].config.recovery)


class Splitter:
    """BAS between its LAN and its radio: `handle_wired` and `handle_wireless` take what comes, the callables the rest.

    `rng` draws initial sequence numbers. What is no TCP passes.
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
        self._send_wired, self._send_wireless = send_wired, send_wireless
        self._configs = {"wired": wired, "wireless": wireless}
        self._done = SplitCounters()
        #: those that are not over; a dictionary keeps the order of coming
        self._pairs: dict[_Pair, None] = {}
        #: each stands for all hosts of the other side
        self._hosts = {"wired": Stack(clock, 0, send_wired, rng), "wireless": Stack(clock, 0, send_wireless, rng)}
        for side, host in self._hosts.items():
            host.listen_to_all(self._configs[side], partial(self._accept, side), MAX_CONNECTIONS)

    def handle_wired(self, packet: Segment | Datagram) -> None:
        """Take a packet of the LAN's."""
        if isinstance(packet, Datagram):
            self._send_wireless(packet)
        else:
            self._hosts["wired"].deliver(packet)

    def handle_wireless(self, packet: Segment | Datagram) -> None:
        """Take a packet that has crossed the radio link."""
        if isinstance(packet, Datagram):
            self._send_wired(packet)
        else:
            self._hosts["wireless"].deliver(packet)

    def counters(self) -> SplitCounters:
        """Return what has happened so far."""
        counters = replace(self._done, refusals=sum(host.refusals for host in self._hosts.values()))
        for pair in self._pairs:
            pair.add_to(counters)
        return counters

    def wireless(self) -> list[Connection]:
        """The connections towards the mobile host."""
        sockets = (pair.ends["wireless"].socket for pair in self._pairs)
        return [socket.connection for socket in sockets if socket is not None]

    def retire(self, pair: "_Pair") -> None:
        """Let a pair go whose two connections are over."""
        del self._pairs[pair]
        pair.add_to(self._done)

    def _accept(self, side: str, socket: Socket) -> "_End":
        """Connect onwards for a connection that was accepted on a side."""
        onwards = "wireless" if side == "wired" else "wired"
        pair = _Pair(self, {side: config.receive_buffer for side, config in self._configs.items()})
        near, far = pair.ends[side], pair.ends[onwards]
        near.socket = socket
        # as its peer sends
        flow = socket.connection.flow.reversed()
        host = self._hosts[onwards]
        if host.has(flow):
            # the one before it, with the same addresses and ports, is not over there
            socket.abort()
        else:
            self._pairs[pair] = None
            self._done.connections += 1
            far.socket = host.open(self._configs[onwards], flow, far)
        return near


class _Pair:
    """The two connections of one end-to-end connection."""

    __slots__ = ("_peak_bytes", "_splitter", "ends")

    def __init__(self, splitter: Splitter, receive_buffers: Mapping[str, int]) -> None:
        self._splitter = splitter
        #: the most octets held in one direction
        self._peak_bytes = 0
        self.ends = {side: _End(self, nbytes) for side, nbytes in receive_buffers.items()}

    def add_to(self, counters: SplitCounters) -> None:
        """Count what this pair has done."""
        counters.peak_bytes = max(counters.peak_bytes, self._peak_bytes)
        socket = self.ends["wireless"].socket
        if socket is not None:
            counters.retransmissions += socket.connection.counters.retransmits
            counters.timeouts += socket.connection.counters.timeouts

    def relay(self, moved: "_End", now: int) -> None:
        """Pass on what there is to pass on: something has happened to one end."""
        wired, wireless = self.ends["wired"], self.ends["wireless"]
        other = wireless if moved is wired else wired
        if moved.socket is None or other.socket is None:
            # not opened yet, or never
            return
        mine, theirs = moved.socket.connection, other.socket.connection
        if mine.error is not None:
            if theirs.state in _ALIVE:
                other.socket.abort()
        else:
            limit = self._splitter.buffer_bytes
            held = max(moved.pass_on(theirs, limit, now), other.pass_on(mine, limit, now))
            if held > self._peak_bytes:
                self._peak_bytes = held
            other.socket.pump()
        if mine.state is State.CLOSED and theirs.state is State.CLOSED:
            self._splitter.retire(self)


class _End(Application):
    """One side of a pair: its connection, whose window is `receive_buffer` at most, and what was passed on of it."""

    __slots__ = ("_pair", "_passed_on", "_receive_buffer", "socket")

    def __init__(self, pair: _Pair, receive_buffer: int) -> None:
        self._pair = pair
        self._receive_buffer = receive_buffer
        #: octets
        self._passed_on = 0
        self.socket: Socket | None = None

    def handle(self, now: int) -> None:
        """See Application."""
        self._pair.relay(self, now)

    def pass_on(self, onwards: Connection, limit: int, now: int) -> int:
        """Write to the other connection what has come, and FIN behind it; return the octets that are held."""
        assert self.socket is not None
        connection = self.socket.connection
        if connection.error is not None or onwards.state is State.CLOSED:
            return 0
        received = connection.bytes_received
        if received > self._passed_on:
            self._passed_on += onwards.write(received - self._passed_on)
        held = received - onwards.bytes_acked
        # what is not read makes the window smaller: it is what `limit` leaves, and the receive buffer at most
        unread = held - (limit - self._receive_buffer)
        readable = connection.readable
        if readable and readable > unread:
            connection.discard(readable - max(unread, 0))
        if connection.fin_received and onwards.connected:
            onwards.close(now)
        return held
