"""Transfers over the kernel's TCP.

Read first: `hosts/engine/streams.py` for the two ends of a transfer.
"""

import errno
import os
import socket
import struct
from collections.abc import Callable
from functools import partial

from typing_extensions import override

from hosts.engine.content import CHUNK, Incoming, Received, Stream
from hosts.engine.context import Context
from hosts.engine.probe import FlowCounter, Probe, TcpInfo
from hosts.engine.streams import HasReceived, HasSent, Receive, ReceivingEnd, SendingEnd, Transfer, Transport
from hosts.errors import HostError
from hosts.kernel.sockets import delay_acks, listen
from hosts.kernel.tcp_info import of_socket
from hosts.loop import READ, WRITE, Loop

#: most writes or reads in a row, before other flows are served
_TURNS = 4


class KernelTcp(Transport):
    """The TCP of the current namespace; with `delayed_ack`, receivers request delayed ACKs."""

    def __init__(self, context: Context, loop: Loop, *, delayed_ack: bool = False) -> None:
        self._context, self._loop, self._delayed_ack = context, loop, delayed_ack
        self._listeners: dict[int, socket.socket] = {}

    @property
    def _protocol(self) -> int:
        """The protocol of its sockets."""
        return socket.IPPROTO_TCP

    def bind(self, port: int) -> None:
        """Listen on a port; connections wait for `accept`. Raises HostError when the port is taken."""
        listener = listen(self._context.host, port, socket.SOCK_STREAM, self._protocol)
        if self._delayed_ack:
            delay_acks(listener)
        self._listeners[port] = listener

    @override
    def accept(self, port: int, accepted: Callable[[Receive], ReceivingEnd]) -> None:
        listener = self._listeners[port]
        self._loop.watch(listener, READ, partial(self._accept, listener, accepted))

    @override
    def send(self, transfer: Transfer, paused: bool, done: HasSent) -> SendingEnd:
        return KernelSender(self._context, self._loop, transfer, paused, done)

    @override
    def check(self) -> None:
        """Always valid."""

    def close(self) -> None:
        for listener in self._listeners.values():
            listener.close()

    def _accept(self, listener: socket.socket, accepted: Callable[[Receive], ReceivingEnd]) -> None:
        try:
            connection, _ = listener.accept()
        except OSError:
            return  # reset before it was accepted
        accepted(partial(KernelReceiver, self._context, self._loop, connection, self._delayed_ack))


class KernelSender(SendingEnd):
    """The sending end of a socket of this protocol; `probe` as for every sending end."""

    def __init__(
        self,
        context: Context,
        loop: Loop,
        transfer: Transfer,
        paused: bool,
        done: HasSent,
        *,
        protocol: int = socket.IPPROTO_TCP,
        probe: Probe | None = None,
    ) -> None:
        super().__init__(context, transfer, paused, done, probe=probe)
        assert isinstance(self._content, Stream), "a kernel takes octets, not numbers"
        self._octets, self._loop = self._content, loop
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
        self._socket.setblocking(False)
        if transfer.congestion_control is not None:
            _control_by(self._socket, transfer.congestion_control)
        error = self._socket.connect_ex(transfer.address)
        if error not in (0, errno.EINPROGRESS):
            loop.at(0, self._finish, os.strerror(error))
            return
        loop.watch(self._socket, WRITE, self._try_connected)

    def _try_connected(self) -> None:
        error = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            self._finish(os.strerror(error))
        else:
            self._has_connected()

    def _let_write(self, may: bool) -> None:
        if may:
            self._loop.watch(self._socket, WRITE, self._write)
        else:
            self._loop.forget(self._socket)

    def _write(self) -> None:
        for _ in range(_TURNS):
            if not self._writing:
                return
            left = CHUNK if self._limit is None else min(CHUNK, self._limit - self._octets.taken)
            try:
                self._octets.take(self._socket.send(self._octets.peek(left)))
                if self._octets.taken == self._limit:
                    self._end_writing()
            except BlockingIOError:
                return
            except OSError as error:
                self._finish(error.strerror)
                return

    def _shut_down(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)
        self._loop.watch(self._socket, READ, self._await_eof)

    def _await_eof(self) -> None:
        try:
            if self._socket.recv(CHUNK) == b"":
                self._finish(None)
        except BlockingIOError:
            return
        except OSError as error:
            self._finish(error.strerror)

    def _reset(self) -> None:
        _reset_at_close(self._socket)

    def _let_go(self) -> tuple[int, TcpInfo]:
        info = of_socket(self._socket)
        local_port: int = self._socket.getsockname()[1]
        self._loop.forget(self._socket)
        self._socket.close()
        return local_port, info


class KernelReceiver(ReceivingEnd):
    """The receiving end of a socket."""

    def __init__(
        self,
        context: Context,
        loop: Loop,
        connection: socket.socket,
        delayed_ack: bool,
        content: Incoming,
        counter: FlowCounter,
        done: HasReceived,
    ) -> None:
        super().__init__(context, content, counter, done)
        assert isinstance(content, Received), "a kernel gives octets, not numbers"
        self._octets, self._loop, self._delayed_ack = content, loop, delayed_ack
        self._socket = connection
        connection.setblocking(False)
        self._loop.watch(connection, READ, self._read)
        self._read()

    def _read(self) -> None:
        for _ in range(_TURNS):
            if self._delayed_ack:
                delay_acks(self._socket)
            try:
                data = self._socket.recv(CHUNK)
            except BlockingIOError:
                return
            except OSError as error:
                self._finish(error.strerror)
                return
            if not data:
                self._finish(None)
                return
            self._octets.add(data)
            self._count(len(data), self._loop.now)

    def _reset(self) -> None:
        _reset_at_close(self._socket)

    def _let_go(self) -> None:
        self._loop.forget(self._socket)
        self._socket.close()


def _control_by(connection: socket.socket, name: str) -> None:
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
    except OSError as error:
        raise HostError(f"cannot use congestion control {name}: {error.strerror}; modprobe tcp_{name}") from None


def _reset_at_close(connection: socket.socket) -> None:
    """Make `close` send a RST and drop unsent data."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
