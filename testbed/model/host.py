"""An end host in virtual time: connections by flow, listeners by port, and who drives each connection.

Read first: `hosts/tcp/connection.py` for the order of calls that is kept here.

Rules kept here: a connection has one wakeup at most that counts; it is made earlier when the connection's deadline
is, and finds out when it wakes that the deadline has moved to later. A segment for which there is no connection is
answered with a RST.

Left out: what is sent and read (`applications.py`); processing takes no time.
"""

from collections.abc import Callable
from random import Random
from typing import Final, Protocol

from hosts.tcp.config import TcpConfig
from hosts.tcp.connection import Connection, reset_for
from hosts.tcp.shared import Shared
from tcpip.segment import ACK, RST, SYN, Flow, Segment
from testbed.model.clock import Clock
from testbed.model.packets import Datagram
from testbed.model.wire import Deliver

_NEVER: Final = 1 << 63
#: Linux's ports for connections that ask for none
_FIRST_PORT, _LAST_PORT = 32_768, 60_999


class Application(Protocol):
    """What uses a connection."""

    def handle(self, now: int) -> None:
        """Do what there is to do: something has come, something was acknowledged, a timer has expired."""


class Tap(Protocol):
    """What looks at the segments of one connection."""

    def sent(self, segment: Segment, now: int) -> None:
        """See a segment leave."""

    def received(self, segment: Segment, now: int) -> None:
        """See a segment come in."""


MakeConnection = Callable[[TcpConfig, Flow, int, Shared], Connection]


class Socket:
    """A connection of a host and what drives it.

    After calls of the application's own to `connection` it calls `pump`; in `handle` it need not.
    """

    __slots__ = ("_clock", "_flow", "_host", "_send", "_wake_at", "application", "connection")

    def __init__(self, host: "Host", connection: Connection, flow: Flow, send: Deliver) -> None:
        self._host, self._clock, self._send = host, host.clock, send
        self._flow = flow
        self._wake_at = _NEVER
        self.connection = connection
        self.application: Application | None = None

    def pump(self) -> None:
        """Send what the connection has to send, and wake when it is due."""
        connection, send, now = self.connection, self._send, self._clock.now
        poll = connection.poll_segment
        segment = poll(now)
        while segment is not None:
            send(segment)
            segment = poll(now)
        self._arm(connection.next_deadline())

    def receive(self, segment: Segment) -> None:
        """Take a segment from the network."""
        now = self._clock.now
        self.connection.handle_segment(segment, now)
        if self.application is not None:
            self.application.handle(now)
        self.pump()

    def abort(self) -> None:
        """End the connection at once."""
        self.connection.abort(self._clock.now)
        self.pump()

    def _arm(self, at: int | None) -> None:
        if at is None:
            if self.connection.closed:
                self._host.forget(self._flow)
        elif at < self._wake_at:
            self._wake_at = at
            now = self._clock.now
            self._clock.at(at if at > now else now, self._wake, at)

    def _wake(self, at: int) -> None:
        if at != self._wake_at:
            # an earlier one has taken its place
            return
        self._wake_at = _NEVER
        connection, now = self.connection, self._clock.now
        due_at = connection.next_deadline()
        if due_at is None or due_at > now:
            self._arm(due_at)
            return
        connection.handle_deadline(now)
        if self.application is not None:
            self.application.handle(now)
        self.pump()


class _Accepting:
    """Stands in for the application of a connection that is being opened by the peer."""

    __slots__ = ("_accept", "_socket")

    def __init__(self, socket: Socket, accept: Callable[[Socket], Application]) -> None:
        self._socket, self._accept = socket, accept

    def handle(self, now: int) -> None:
        if self._socket.connection.connected:
            application = self._socket.application = self._accept(self._socket)
            application.handle(now)


class Host:
    """A host with one address, whose packets leave by `send`.

    `rng` draws initial sequence numbers; `make` makes the connections, for TCPs that are more than a configuration.
    """

    def __init__(
        self,
        clock: Clock,
        address: int,
        send: Deliver,
        rng: Random,
        *,
        shared: Shared | None = None,
        make: MakeConnection = Connection,
    ) -> None:
        self.clock = clock
        self.address = address
        self.send = send
        self.shared = shared or Shared()
        self._rng = rng
        self._make = make
        #: by the direction that comes in
        self._receivers: dict[Flow, Deliver] = {}
        self._listeners: dict[int, tuple[TcpConfig, Callable[[Socket], Application]]] = {}
        self._listener_to_all: tuple[TcpConfig, Callable[[Socket], Application]] | None = None
        self._most: int | None = None
        #: SYNs that were not heard
        self.refusals = 0
        self._datagrams: dict[int, Callable[[Datagram], None]] = {}
        self._next_port = _FIRST_PORT

    def connect(
        self, config: TcpConfig, address: int, port: int, application: Application, tap: Tap | None = None
    ) -> Socket:
        """Open a connection to a port of another host."""
        return self.open(config, self._free_flow(address, port), application, tap)

    def open(self, config: TcpConfig, flow: Flow, application: Application, tap: Tap | None = None) -> Socket:
        """Open a connection from an address and a port of one's choice, which no connection has."""
        socket = self._socket(config, flow, tap)
        socket.application = application
        socket.connection.connect(self.clock.now)
        socket.pump()
        return socket

    def listen(self, config: TcpConfig, port: int, accept: Callable[[Socket], Application]) -> None:
        """Let others connect to a port; `accept` makes the application of each connection, once it is open."""
        self._listeners[port] = (config, accept)

    def listen_to_all(self, config: TcpConfig, accept: Callable[[Socket], Application], most: int) -> None:
        """Let others connect to every address and port that comes along, but for ports that have listeners.

        While there are `most` connections, those in TIME-WAIT included, a SYN that would make another is not heard.
        """
        self._listener_to_all = (config, accept)
        self._most = most

    def has(self, flow: Flow) -> bool:
        """Whether there is a connection that sends in this direction."""
        return flow.reversed() in self._receivers

    def bind(self, port: int, receive: Callable[[Datagram], None]) -> None:
        """Hand the datagrams that come to a port to `receive`."""
        self._datagrams[port] = receive

    def deliver(self, packet: Segment | Datagram) -> None:
        """Take a packet from the network."""
        receive = self._receivers.get(packet.flow)
        if receive is not None:
            receive(packet)
        elif isinstance(packet, Datagram):
            take = self._datagrams.get(packet.flow.destination_port)
            if take is not None:
                take(packet)
        else:
            self._handle_unknown(packet)

    def forget(self, flow: Flow) -> None:
        """Drop a connection that is closed; `flow` is the direction it sent in."""
        self._receivers.pop(flow.reversed(), None)

    def _handle_unknown(self, segment: Segment) -> None:
        listener = self._listeners.get(segment.flow.destination_port, self._listener_to_all)
        if listener is not None and segment.flags & (SYN | ACK | RST) == SYN:
            if self._most is not None and len(self._receivers) >= self._most:
                self.refusals += 1
                return
            config, accept = listener
            socket = self._socket(config, segment.flow.reversed())
            socket.application = _Accepting(socket, accept)
            socket.connection.listen()
            socket.receive(segment)
            return
        reset = reset_for(segment)
        if reset is not None:
            self.send(reset)

    def _socket(self, config: TcpConfig, flow: Flow, tap: Tap | None = None) -> Socket:
        connection = self._make(config, flow, self._rng.getrandbits(32), self.shared)
        if tap is None:
            socket = Socket(self, connection, flow, self.send)
            self._receivers[flow.reversed()] = socket.receive
        else:
            socket = Socket(self, connection, flow, self._tapped(self.send, tap.sent))
            self._receivers[flow.reversed()] = self._tapped(socket.receive, tap.received)
        return socket

    def _tapped(self, take: Callable[[Segment], object], see: Callable[[Segment, int], None]) -> Deliver:
        clock = self.clock

        def seen(segment: Segment) -> None:
            see(segment, clock.now)
            take(segment)

        return seen

    def _free_flow(self, address: int, port: int) -> Flow:
        for _ in range(_FIRST_PORT, _LAST_PORT + 1):
            flow = Flow(self.address, self._next_port, address, port)
            self._next_port = _FIRST_PORT if self._next_port == _LAST_PORT else self._next_port + 1
            if flow.reversed() not in self._receivers:
                return flow
        raise RuntimeError(f"all ports of the host have connections to port {port}")
