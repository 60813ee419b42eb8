"""Transfers over our own TCP.

Read first: `streams.py` for the two ends of a transfer; `stack.py`, which drives the connections.
"""

from collections.abc import Callable
from functools import partial
from ipaddress import IPv4Address

from mypy_extensions import mypyc_attr
from typing_extensions import override

from hosts.engine.content import Incoming
from hosts.engine.context import Context
from hosts.engine.probe import ConnectionProbe, FlowCounter, TcpInfo, info_of
from hosts.engine.stack import Application, Socket, Stack, Tap
from hosts.engine.streams import HasReceived, HasSent, Receive, ReceivingEnd, SendingEnd, Transfer, Transport
from hosts.tcp.config import TcpConfig
from hosts.tcp.connection import Connection, State

#: returns the tap for the connections of a flow
TapFor = Callable[[str], Tap]


@mypyc_attr(allow_interpreted_subclasses=True)
class OwnTcp(Transport):
    """Our TCP on a stack; all connections have `config`.

    `ahead_bytes` stands for the `written_ahead` of configurations that have none.
    """

    def __init__(
        self,
        context: Context,
        stack: Stack,
        config: TcpConfig,
        *,
        ahead_bytes: int | None = None,
        tap_for: TapFor | None = None,
    ) -> None:
        self.stack = stack
        self._context, self._config, self._tap_for = context, config, tap_for
        self._ahead_bytes = ahead_bytes if config.buffers.written_ahead is None else config.buffers.written_ahead
        #: connections opened before `accept`, by port
        self._waiting: dict[int, list[Socket]] = {}

    def bind(self, port: int) -> None:
        """Take a port; connections wait until they are accepted."""
        waiting = self._waiting[port] = []

        def wait(socket: Socket) -> None:
            waiting.append(socket)

        self.stack.listen(self._config, port, wait)

    @override
    def accept(self, port: int, accepted: Callable[[Receive], ReceivingEnd]) -> None:

        def receive(socket: Socket) -> Application:
            end = accepted(partial(OwnReceiver, self._context, socket))
            assert isinstance(end, OwnReceiver)
            return _User(end)

        self.stack.listen(self._config, port, receive)
        for socket in self._waiting.pop(port, []):
            socket.application = receive(socket)
            socket.application.handle(self._context.clock.now)
            socket.pump()

    @override
    def send(self, transfer: Transfer, paused: bool, done: HasSent) -> "OwnSender":
        tap = None if self._tap_for is None else self._tap_for(transfer.flow)
        return OwnSender(
            self._context,
            transfer,
            paused,
            done,
            stack=self.stack,
            config=self._config,
            ahead_bytes=self._ahead_bytes,
            tap=tap,
        )

    @override
    def check(self) -> None:
        """Do nothing: only a driver can lose packets before the stack."""

    @override
    def close(self) -> None:
        """Do nothing: there is nothing to close."""


class OwnSender(SendingEnd):
    """The sending end of a connection of ours."""

    def __init__(
        self,
        context: Context,
        transfer: Transfer,
        paused: bool,
        done: HasSent,
        *,
        stack: Stack,
        config: TcpConfig,
        ahead_bytes: int | None = None,
        tap: Tap | None = None,
    ) -> None:
        super().__init__(context, transfer, paused, done)
        self._ahead_bytes = ahead_bytes
        self._may_write = False
        address, port = transfer.address
        self._socket = stack.connect(config, int(IPv4Address(address)), port, _User(self), tap)
        self.connection = self._socket.connection
        if self._socket.delays is not None:
            self.delays = self._socket.delays
        assert isinstance(context.probe, ConnectionProbe), "a host of our TCP has the probe for it"
        context.probe.watch(transfer.flow, partial(_info_if_connected, self.connection))

    def handle(self, now: int) -> None:
        """React to an acknowledgement, to received data or to a timer of the connection."""
        if self.ended:
            return
        connection = self.connection
        if connection.error is not None:
            self._finish(connection.error)
        elif self._writing:
            if self._connected_ns is None:
                if connection.connected:
                    self._has_connected()
            elif self._may_write:
                self._write()
        elif connection.at_end:
            self._finish(None)
        elif connection.state is State.CLOSED:
            self._finish("closed")

    def _let_write(self, may: bool) -> None:
        self._may_write = may
        if may:
            self._write()
            self._socket.pump()

    def _write(self) -> None:
        connection, content, limit = self.connection, self._content, self._limit
        room = connection.write_room
        if self._ahead_bytes is not None:
            ahead = max(2 * connection.cwnd, self._ahead_bytes) + connection.bytes_acked - content.taken
            room = min(room, ahead)
        while room > 0:
            written = content.write(connection, room if limit is None else min(room, limit - content.taken))
            if content.taken == limit:
                self._end_writing()
                return
            room = room - written if written else 0

    def _shut_down(self) -> None:
        self._socket.close()

    def _reset(self) -> None:
        self._socket.abort()

    def _let_go(self) -> tuple[int, TcpInfo]:
        return self.connection.flow.source_port, info_of(self.connection)


def _info_if_connected(connection: Connection) -> TcpInfo | None:
    return info_of(connection) if connection.connected else None


class OwnReceiver(ReceivingEnd):
    """The receiving end of a connection of ours."""

    def __init__(
        self, context: Context, socket: Socket, content: Incoming, counter: FlowCounter, done: HasReceived
    ) -> None:
        super().__init__(context, content, counter, done)
        self._socket = socket
        self._connection = socket.connection
        if socket.delays is not None:
            self.delays = socket.delays

    def handle(self, now: int) -> None:
        """React to an acknowledgement, to received data or to a timer of the connection."""
        if self.ended:
            return
        connection = self._connection
        nbytes = self._content.read(connection)
        if nbytes:
            self._count(nbytes, now)
        if connection.at_end:
            connection.close(now)
            self._finish(None)
        elif connection.error is not None:
            self._finish(connection.error)

    def _reset(self) -> None:
        self._socket.abort()

    def _let_go(self) -> None:
        """The connection ends by its own FIN or by the reset."""


class _User(Application):
    """An end of a transfer, as the user of its connection."""

    def __init__(self, end: OwnSender | OwnReceiver) -> None:
        self._end = end

    @override
    def handle(self, now: int) -> None:
        self._end.handle(now)
