"""Our TCP on a host: its connections, driven by the agent's loop over a TUN.

Read first: `hosts/tcp/connection.py` for the order of calls, `hosts/tun.py` for whose segments come.

Rules kept
- What a connection has to send goes out after every segment, so ACKs are clocked as if segments came one by one. The
  application hears of a connection once per turn.
- Nothing waits: a packet that the TUN has no room for is lost, as in any queue, and counted.
- Octets that are no segment of ours are counted and dropped; a segment without a connection is answered with RST.
- Initial sequence numbers and ports cannot be guessed (RFC 6528, RFC 6056) nor repeated by the next process, whose peer
  may still know the one before.

- A stack on a router's TUN (`TransitTun`) has everybody's address: it takes connections to all of them and connects as
  anybody.

Left out: a limit of connections but for those, IP options, ICMP (a way that is too narrow is not noticed).
"""

import secrets
from collections.abc import Callable
from ipaddress import IPv4Address

from hosts.errors import HostError
from hosts.loop import READ, Loop
from hosts.tcp.config import TcpConfig
from hosts.tcp.connection import Connection, reset_for
from hosts.tcp.shared import Shared
from hosts.tun import Tun
from tcpip.segment import ACK, RST, SYN, Flow, Segment
from tcpip.wire import SegmentError, emit, parse

#: packets taken before others on the loop get their turn
_TURN = 64
#: as Linux's ip_local_port_range
_FIRST_PORT, _LAST_PORT = 32768, 60999


def nothing() -> None:
    """Do nothing."""


class UserSocket:
    """One connection as an application holds it; `changed` is called whenever something happened to it.

    The application writes to the connection and reads from it, also within `changed`, and says `settle` afterwards.
    """

    def __init__(self, stack: "UserStack", connection: Connection) -> None:
        self.connection = connection
        self.changed: Callable[[], None] = nothing
        self._stack, self._loop = stack, stack.loop
        #: when the loop will call for a deadline of the connection; None: not at all
        self._called_at: int | None = None

    def close(self) -> None:
        """Send what was written, then FIN."""
        self.connection.close(self._loop.now())
        self.settle()

    def abort(self) -> None:
        """End at once, with a RST where the peer must hear of it."""
        self.connection.abort(self._loop.now())
        self.settle()

    def settle(self) -> None:
        """Send what is due and see to the next deadline, after anything was done to the connection."""
        connection, now = self.connection, self._loop.now()
        while (segment := connection.poll_segment(now)) is not None:
            self._stack.send(segment)
        if connection.closed:
            self._stack.forget(self)
            self._called_at = None
            return
        deadline = connection.next_deadline()
        if deadline is not None and (self._called_at is None or deadline < self._called_at):
            self._called_at = deadline
            self._loop.call_at(deadline, lambda: self._expire(deadline))

    def _expire(self, deadline: int) -> None:
        if deadline != self._called_at:
            return  # the call for an earlier deadline has seen to this one
        self._called_at = None
        self.connection.handle_deadline(self._loop.now())
        self.settle()
        self.changed()


class UserStack:
    """All connections of one host. `config` is every connection's; its MSS is what the TUN's MTU leaves room for."""

    def __init__(self, loop: Loop, tun: Tun, config: TcpConfig) -> None:
        self.loop = loop
        #: octets that were no segment, and segments for another host
        self.rejected = 0
        self._tun, self._config = tun, config
        self._address = None if tun.address is None else int(IPv4Address(tun.address))
        self._shared = Shared()
        self._sockets: dict[Flow, UserSocket] = {}
        self._listeners: dict[int, Callable[[UserSocket], None]] = {}
        self._to_all: Callable[[UserSocket], None] | None = None
        self._most: int | None = None
        #: SYNs that were not heard
        self.refusals = 0
        #: those that came to a port and are not connected yet
        self._coming: set[UserSocket] = set()
        loop.watch(tun, READ, self._receive)

    @property
    def connections(self) -> int:
        """How many connections there are, those in TIME-WAIT included."""
        return len(self._sockets)

    def connect(self, address: str, port: int) -> UserSocket:
        """Begin to connect; the SYN is on its way. Raises HostError when no port is left."""
        assert self._address is not None, "who has no address connects by `open`"
        destination = int(IPv4Address(address))
        free = _LAST_PORT - _FIRST_PORT + 1
        first = secrets.randbelow(free)
        for turn in range(free):
            flow = Flow(self._address, _FIRST_PORT + (first + turn) % free, destination, port)
            if flow not in self._sockets:
                break
        else:
            raise HostError(f"no port is left for a connection to {address} port {port}")
        return self.open(flow)

    def open(self, flow: Flow) -> UserSocket:
        """Begin to connect from an address and a port of one's choice, which no connection has."""
        socket = self._add(flow)
        socket.connection.connect(self.loop.now())
        socket.settle()
        return socket

    def listen(self, port: int, came: Callable[[UserSocket], None]) -> None:
        """Call `came` with every connection to the port from now on, once its handshake is over."""
        self._listeners[port] = came

    def listen_to_all(self, came: Callable[[UserSocket], None], most: int) -> None:
        """Call `came` with every connection to any address and port, but for ports that have listeners.

        While there are `most` connections, those in TIME-WAIT included, a SYN that would make another is not heard.
        """
        self._to_all, self._most = came, most

    def has(self, flow: Flow) -> bool:
        """Whether there is a connection that sends in this direction."""
        return flow in self._sockets

    def send(self, segment: Segment) -> None:
        """Send a segment."""
        self._tun.write(emit(segment))

    def forget(self, socket: UserSocket) -> None:
        """Take a connection away that is over."""
        self._sockets.pop(socket.connection.flow, None)
        self._coming.discard(socket)

    def _add(self, flow: Flow) -> UserSocket:
        socket = UserSocket(self, Connection(self._config, flow, secrets.randbits(32), self._shared))
        self._sockets[flow] = socket
        return socket

    def _receive(self) -> None:
        # a dictionary keeps the order of coming
        touched: dict[UserSocket, None] = {}
        for _ in range(_TURN):
            packet = self._tun.read()
            if packet is None:
                break
            try:
                segment = parse(packet)
            except SegmentError:
                self.rejected += 1
                continue
            socket = self._sockets.get(segment.flow.reversed()) or self._newcomer(segment)
            if socket is not None:
                socket.connection.handle_segment(segment, self.loop.now())
                socket.settle()
                touched[socket] = None
        for socket in touched:
            if socket in self._coming and socket.connection.connected:
                self._coming.remove(socket)
                came = self._listeners.get(socket.connection.flow.source_port, self._to_all)
                assert came is not None
                came(socket)
            socket.changed()

    def _newcomer(self, segment: Segment) -> UserSocket | None:
        """Return the connection that a segment without one begins, if it does; else answer it."""
        flow = segment.flow
        if self._address is not None and flow.destination != self._address:
            self.rejected += 1
            return None
        heard = flow.destination_port in self._listeners or self._to_all is not None
        if heard and segment.flags & (SYN | ACK | RST) == SYN:
            if self._most is not None and len(self._sockets) >= self._most:
                self.refusals += 1
                return None
            socket = self._add(flow.reversed())
            socket.connection.listen()
            self._coming.add(socket)
            return socket
        answer = reset_for(segment)
        if answer is not None:
            self.send(answer)
        return None
