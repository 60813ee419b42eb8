"""The connections of one host's own TCP: by flow, with listeners by port, and each with its timer and application.

Read first: `hosts/tcp/connection.py` for the order of calls.

Rules kept

- For each segment, the connection handles it, then the application, then all segments to send go out: so ACKs are
  clocked segment by segment.
- A connection has at most one valid wakeup. An earlier deadline sets an earlier wakeup; a wakeup that comes too early
  sets another.
- A segment without a connection is answered with a RST.

Left out: the data that is sent and read (`own_tcp.py`); processing time; ICMP; IP options.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from random import Random
from typing import Final

from mypy_extensions import mypyc_attr
from typing_extensions import override

from hosts.engine.clock import Alarm, Clock, Sleeper
from hosts.engine.delays import Delays
from hosts.engine.packets import Datagram, Deliver, Taker, taker
from hosts.errors import HostError
from hosts.tcp.config import TcpConfig
from hosts.tcp.connection import Connection, reset_for
from hosts.tcp.shared import Shared
from tcpip.segment import ACK, RST, SYN, Flow, IpPacket, Segment

_NEVER: Final = 1 << 61
#: Linux's range of ports for connections without a given port
_FIRST_PORT: Final = 32_768
_LAST_PORT: Final = 60_999


@mypyc_attr(allow_interpreted_subclasses=True)
class Application(ABC):
    """The user of a connection."""

    @abstractmethod
    def handle(self, now: int) -> None:
        """React to received data, to an acknowledgement or to a timer of the connection."""


class CallApplication(Application):
    """Passes on to a function."""

    def __init__(self, call: Callable[[int], None]) -> None:
        self._call = call

    @override
    def handle(self, now: int) -> None:
        self._call(now)


@mypyc_attr(allow_interpreted_subclasses=True)
class Tap(ABC):
    """Watches the segments of one connection."""

    @abstractmethod
    def sent(self, segment: Segment, now: int) -> None:
        """A segment leaves."""

    @abstractmethod
    def received(self, segment: Segment, now: int) -> None:
        """A segment arrives."""


#: makes the application of an accepted connection; None: it gets one later
Accept = Callable[["Socket"], Application | None]


class Socket(Taker, Sleeper):
    """A connection of a host, with its timer and application.

    An application that calls `connection` outside `handle` must call `pump` afterwards. `delays` has the delays of
    the peer's data on their way here, and the round trips of the own data, where both stacks are `timed`.
    """

    def __init__(self, stack: "Stack", connection: Connection, flow: Flow, out: Taker) -> None:
        self._stack, self._clock, self._out = stack, stack.clock, out
        self._alarm = Alarm(self)
        self._flow = flow
        self._wake_at = _NEVER
        self.connection = connection
        self.application: Application | None = None
        self.delays = Delays() if stack.timed else None
        #: when the earliest data without an ACK left the peer; -1: there are none, or it is not known
        self._answers = -1

    def pump(self) -> None:
        """Send the connection's segments, and set its wakeup."""
        connection, out, now = self.connection, self._out, self._clock.now
        segment = connection.poll_segment(now)
        while segment is not None:
            if self.delays is not None:
                self._time(segment, now)
            out.take(segment)
            segment = connection.poll_segment(now)
        self._arm(connection.next_deadline())

    def take(self, packet: Segment) -> None:
        now = self._clock.now
        if self.delays is not None and packet.timed_at >= 0:
            self.delays.add(now - packet.timed_at)
            if packet.length and self._answers < 0:
                self._answers = packet.timed_at
        self.connection.handle_segment(packet, now)
        if self.application is not None:
            self.application.handle(now)
        self.pump()

    def _time(self, segment: Segment, now: int) -> None:
        if segment.length:
            segment.timed_at = now
        elif self._answers >= 0:
            segment.timed_at, self._answers = self._answers, -1

    def close(self) -> None:
        """Send the written data, then FIN."""
        self.connection.close(self._clock.now)
        self.pump()

    def abort(self) -> None:
        """End the connection at once, with a RST if the peer knows it."""
        self.connection.abort(self._clock.now)
        self.pump()

    def _arm(self, at: int | None) -> None:
        if at is None:
            if self.connection.closed:
                self._stack.forget(self._flow)
        elif at < self._wake_at:
            self._wake_at = at
            now = self._clock.now
            self._clock.give(at if at > now else now, self._alarm, at)

    def wake(self, at: int) -> None:
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


class _Tapped(Taker):
    """Shows each segment to a function before it goes on."""

    def __init__(self, clock: Clock, see: Callable[[Segment, int], None], to: Taker) -> None:
        self._clock, self._see, self._to = clock, see, to

    def take(self, packet: Segment) -> None:
        self._see(packet, self._clock.now)
        self._to.take(packet)


class _Accepting(Application):
    """Stands in for the application of a connection that is being opened by the peer."""

    def __init__(self, stack: "Stack", socket: Socket) -> None:
        self._stack, self._socket = stack, socket

    def handle(self, now: int) -> None:
        socket = self._socket
        if socket.connection.connected:
            # the listener at the end of the handshake gets the connection
            listener = self._stack.listener_at(socket.connection.flow.source_port)
            assert listener is not None, "a port that has had a listener keeps one"
            socket.application = listener[1](socket)
            if socket.application is not None:
                socket.application.handle(now)


class Stack(Taker):
    """A host's TCP with one address, whose segments leave by `send`.

    `rng` draws initial sequence numbers, and all that connections draw. Connections without a given port get successive
    ports, or random ones (RFC 6056).
    """

    def __init__(
        self,
        clock: Clock,
        address: int,
        send: Deliver,
        rng: Random,
        *,
        random_ports: bool = False,
    ) -> None:
        self.clock = clock
        self.address = address
        self.out = taker(send)
        self.shared = Shared()
        #: whether connections made from now on take the delays of their packets
        self.timed = False
        self._rng = rng
        self._random_ports = random_ports
        #: by the incoming direction; and the one that took the last packet, which mostly takes the next as well
        self._receivers: dict[Flow, Taker] = {}
        self._last_flow: Flow | None = None
        self._last_receiver: Taker | None = None
        self._listeners: dict[int, tuple[TcpConfig, Accept]] = {}
        self._listener_to_all: tuple[TcpConfig, Accept] | None = None
        self._most: int | None = None
        #: SYNs that were ignored
        self.refusals = 0
        self._datagrams: dict[int, Callable[[Datagram], None]] = {}
        self._next_port = _FIRST_PORT

    def connect(
        self, config: TcpConfig, address: int, port: int, application: Application, tap: Tap | None = None
    ) -> Socket:
        """Open a connection to a port of another host. Raises HostError when no port is left."""
        return self.open(config, self._free_flow(address, port), application, tap)

    def open(
        self, config: TcpConfig, flow: Flow, application: Application | None = None, tap: Tap | None = None
    ) -> Socket:
        """Open a connection with a given, unused flow."""
        socket = self._socket(config, flow, tap)
        socket.application = application
        socket.connection.connect(self.clock.now)
        socket.pump()
        return socket

    def listen(self, config: TcpConfig, port: int, accept: Accept) -> None:
        """Accept connections to a port; `accept` makes the application of each open connection."""
        self._listeners[port] = (config, accept)

    def listen_to_all(self, config: TcpConfig, accept: Accept, most: int) -> None:
        """Accept connections to any address and port, except for ports with listeners.

        While there are `most` connections, those in TIME-WAIT included, a SYN for another one is ignored.
        """
        self._listener_to_all = (config, accept)
        self._most = most

    def listener_at(self, port: int) -> tuple[TcpConfig, Accept] | None:
        """Return the listener at a port."""
        return self._listeners.get(port, self._listener_to_all)

    def has(self, flow: Flow) -> bool:
        """Whether there is a connection that sends in this direction."""
        return flow.reversed() in self._receivers

    def bind(self, port: int, receive: Callable[[Datagram], None]) -> None:
        """Pass the datagrams for a port to `receive`."""
        self._datagrams[port] = receive

    def take(self, packet: IpPacket) -> None:
        flow = packet.flow
        receiver = self._last_receiver if flow is self._last_flow else self._receivers.get(flow)
        if receiver is not None:
            self._last_flow, self._last_receiver = flow, receiver
            receiver.take(packet)
        elif isinstance(packet, Datagram):
            receive = self._datagrams.get(packet.flow.destination_port)
            if receive is not None:
                receive(packet)
        else:
            assert isinstance(packet, Segment), "hosts exchange segments and datagrams"
            self._handle_unknown(packet)

    def forget(self, flow: Flow) -> None:
        """Remove a closed connection; `flow` is its sending direction."""
        self._receivers.pop(flow.reversed(), None)
        self._last_flow = self._last_receiver = None

    def _handle_unknown(self, segment: Segment) -> None:
        listener = self.listener_at(segment.flow.destination_port)
        if listener is not None and segment.flags & (SYN | ACK | RST) == SYN:
            if self._most is not None and len(self._receivers) >= self._most:
                self.refusals += 1
                return
            socket = self._socket(listener[0], segment.flow.reversed())
            socket.application = _Accepting(self, socket)
            socket.connection.listen()
            socket.take(segment)
            return
        reset = reset_for(segment)
        if reset is not None:
            self.out.take(reset)

    def _socket(self, config: TcpConfig, flow: Flow, tap: Tap | None = None) -> Socket:
        connection = Connection(config, flow, self._rng.getrandbits(32), self.shared, self._rng)
        if tap is None:
            socket = Socket(self, connection, flow, self.out)
            self._receivers[flow.reversed()] = socket
        else:
            socket = Socket(self, connection, flow, _Tapped(self.clock, tap.sent, self.out))
            self._receivers[flow.reversed()] = _Tapped(self.clock, tap.received, socket)
        return socket

    def _free_flow(self, address: int, port: int) -> Flow:
        ports = _LAST_PORT - _FIRST_PORT + 1
        if self._random_ports:
            self._next_port = _FIRST_PORT + self._rng.randrange(ports)
        for _ in range(ports):
            flow = Flow(self.address, self._next_port, address, port)
            self._next_port = _FIRST_PORT if self._next_port == _LAST_PORT else self._next_port + 1
            if flow.reversed() not in self._receivers:
                return flow
        raise HostError(f"no port is left for a connection to port {port}: all have one")
