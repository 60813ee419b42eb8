"""The two kinds of connections of a splitting base station in real time: the kernel's, and our own TCP's.

Read first: `hosts/engine/split_pairs.py` (the pairs that hold them); tcp(7) for SIOCINQ and SIOCOUTQ, ip(7) for
IP_TRANSPARENT.

Rules kept
- Nothing blocks: `read` and `write` transfer the octets possible now; the end calls `Pair.moved` when more are.
- A failed end reports the failure in `error` and accepts only `reset` and `release`.
- An end holds a bounded number of octets: `unread` fits into its receive buffer, `unacked` into its send buffer.
"""

import errno
import fcntl
import socket
import struct
from abc import abstractmethod
from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from hosts.engine.split_pairs import End
from hosts.engine.stack import CallApplication, Socket
from hosts.kernel.tcp_info import of_socket
from hosts.loop import READ, WRITE, Loop
from hosts.tcp.connection import State

#: linux/in.h, linux/sockios.h
_IP_TRANSPARENT = 19
_SIOCINQ, _SIOCOUTQ = 0x541B, 0x5411
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
#: octets read at a time; they wait in the proxy until the other side takes them
CHUNK: Final = 4096
_WAIT = frozenset({errno.EAGAIN, errno.EWOULDBLOCK, errno.EINTR})


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a connection of the base station: buffers in octets, and the kernel's congestion control."""

    receive_buffer: int
    send_buffer: int
    congestion_control: str


class OctetsEnd(End):
    """A connection that passes on octets."""

    def __init__(self) -> None:
        #: octets that were read and not yet taken by the other end
        self._waiting = b""
        #: whether FIN was sent
        self._finished = False

    @property
    @abstractmethod
    def connected(self) -> bool:
        """Whether the handshake is complete."""

    @property
    @abstractmethod
    def at_end(self) -> bool:
        """Whether the peer's FIN was read."""

    @property
    @abstractmethod
    def unread(self) -> int:
        """Octets received and acknowledged that wait to be read."""

    @property
    @abstractmethod
    def unacked(self) -> int:
        """Octets written that the peer has not acknowledged."""

    @abstractmethod
    def read(self, most: int) -> bytes:
        """Return received octets; empty when there are none now."""

    @abstractmethod
    def write(self, data: bytes) -> int:
        """Send octets; return the number accepted."""

    @abstractmethod
    def shut_down(self) -> None:
        """Send FIN after the octets written."""

    @abstractmethod
    def want(self, read: bool, write: bool) -> None:
        """Set the events to wait for, and send the octets written."""

    @property
    @override
    def over(self) -> bool:
        return self.at_end and self._finished and not self.unacked

    @override
    def relay(self, sink: End) -> int:
        assert isinstance(sink, OctetsEnd)
        if self.connected and sink.connected:
            self._pass_on(sink)
        return self.unread + len(self._waiting) + sink.unacked

    def _pass_on(self, sink: "OctetsEnd") -> None:
        while not sink._finished and self.error is None and sink.error is None:
            if self._waiting:
                self._waiting = self._waiting[sink.write(self._waiting) :]
                if self._waiting:
                    return
            elif self.at_end:
                sink._finished = True
                sink.shut_down()
            else:
                self._waiting = self.read(CHUNK)
                if not self._waiting and not self.at_end:
                    return

    @override
    def settle(self, other: End) -> None:
        assert isinstance(other, OctetsEnd)
        if self.connected and other.connected:
            self.want(not self._waiting and not other._finished, bool(other._waiting))


class KernelEnd(OctetsEnd):
    """A connection of the kernel's TCP."""

    connected = False
    at_end = False
    error: str | None = None

    def __init__(self, loop: Loop, sock: socket.socket, *, connected: bool) -> None:
        super().__init__()
        self.connected = connected
        self._loop, self._socket = loop, sock
        self._watched = 0
        self._counted = (0, 0)
        self._closed = False
        if not connected:
            self.want(False, True)

    @classmethod
    def accepted(cls, loop: Loop, sock: socket.socket) -> "KernelEnd":
        """Return the end of a connection accepted at a prepared socket."""
        sock.setblocking(False)
        return cls(loop, sock, connected=True)

    @classmethod
    def connecting(
        cls,
        loop: Loop,
        source: tuple[str, int],
        destination: tuple[str, int],
        options: Options,
    ) -> "KernelEnd":
        """Return the end of a new connection from `source`, an address of another host. Raises OSError."""
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            prepare(sock, options)
            sock.bind(source)
            status = sock.connect_ex(destination)
            if status != errno.EINPROGRESS:
                raise OSError(status, errno.errorcode.get(status, str(status)))
        except BaseException:
            sock.close()
            raise
        return cls(loop, sock, connected=False)

    @property
    @override
    def unread(self) -> int:
        return 0 if self._closed else _ask(self._socket, _SIOCINQ)

    @property
    @override
    def unacked(self) -> int:
        return 0 if self._closed or not self.connected else _ask(self._socket, _SIOCOUTQ)

    @property
    @override
    def retransmits(self) -> int:
        return self._counts()[0]

    @property
    @override
    def timeouts(self) -> int:
        """Retransmission timeouts so far; 0 before Linux 6.7, which does not count them."""
        return self._counts()[1]

    @override
    def read(self, most: int) -> bytes:
        try:
            data = self._socket.recv(most)
        except OSError as error:
            self._note(error)
            return b""
        self.at_end = not data
        return data

    @override
    def write(self, data: bytes) -> int:
        try:
            return self._socket.send(data)
        except OSError as error:
            self._note(error)
            return 0

    @override
    def shut_down(self) -> None:
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError as error:
            self._note(error)

    @override
    def want(self, read: bool, write: bool) -> None:
        wanted = (READ if read else 0) | (WRITE if write else 0)
        if wanted != self._watched:
            self._watched = wanted
            if wanted:
                self._loop.watch(self._socket, wanted, self._ready)
            else:
                self._loop.forget(self._socket)

    def look(self) -> None:
        """Look for a failure while no event is waited for."""
        if not self._watched and not self._closed:
            self._check()

    @override
    def reset(self) -> None:
        if not self._closed:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.release()

    @override
    def release(self) -> None:
        if not self._closed:
            self._counted = self._counts()
            self.want(False, False)
            self._socket.close()
            self._closed = True

    def _ready(self) -> None:
        if not self.connected:
            self._check()
            if self.error is None:
                self.connected = True
        self.handle(self._loop.now)

    def _check(self) -> None:
        # Not the state: after an end by FINs it is CLOSE before the last octets are read.
        status = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if status:
            self.error = errno.errorcode.get(status, str(status))

    def _note(self, error: OSError) -> None:
        if error.errno not in _WAIT:
            self.error = errno.errorcode.get(error.errno or 0, str(error))

    def _counts(self) -> tuple[int, int]:
        if self._closed:
            return self._counted
        info = of_socket(self._socket)
        return info.retransmits, info.timeouts or 0


class OwnEnd(OctetsEnd):
    """A connection of our own TCP; its configuration has the sizes of the buffers."""

    def __init__(self, sock: Socket, send_buffer: int) -> None:
        super().__init__()
        self._socket, self._connection = sock, sock.connection
        self._send_buffer = send_buffer
        sock.application = CallApplication(self.handle)

    @property
    @override
    def connected(self) -> bool:
        return self._connection.connected

    @property
    @override
    def at_end(self) -> bool:
        return self._connection.at_end

    @property
    @override
    def error(self) -> str | None:
        return self._connection.error if self._connection.state is State.CLOSED else None

    @property
    @override
    def unread(self) -> int:
        return self._connection.readable

    @property
    @override
    def unacked(self) -> int:
        return self._send_buffer - self._connection.write_room

    @property
    @override
    def retransmits(self) -> int:
        return self._connection.counters.retransmits

    @property
    @override
    def timeouts(self) -> int:
        return self._connection.counters.timeouts

    @override
    def read(self, most: int) -> bytes:
        return self._connection.read(most)

    @override
    def write(self, data: bytes) -> int:
        return self._connection.write(data)

    @override
    def shut_down(self) -> None:
        self._socket.close()

    @override
    def want(self, read: bool, write: bool) -> None:
        """Send the octets written; the socket calls `Pair.moved` at every event, so there is no event to choose."""
        self._socket.pump()

    @override
    def reset(self) -> None:
        self.release()
        self._socket.abort()

    @override
    def release(self) -> None:
        self._socket.application = None


def prepare(sock: socket.socket, options: Options) -> None:
    """Prepare a socket, and those accepted at it, for a relay: any address, bounded buffers, no Nagle algorithm.

    The kernel doubles the size it is given, for its overhead (socket(7)). Received octets lie packed, with little
    overhead. Of the memory of octets to be sent, in single segments, a third is overhead. Raises OSError.
    """
    sock.setsockopt(socket.SOL_IP, _IP_TRANSPARENT, 1)
    sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, max(options.receive_buffer // 2, 1))
    sock.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, max(options.send_buffer * 3 // 4, 1))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, options.congestion_control.encode())


def _ask(sock: socket.socket, request: int) -> int:
    return int(struct.unpack("i", fcntl.ioctl(sock, request, bytes(4)))[0])
