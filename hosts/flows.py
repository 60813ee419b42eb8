"""What the ends of all workloads share: bytes that can be checked, counting, sockets.

Read first: `hosts/workloads.py` for what is sent, `hosts/tcp_flows.py` and `hosts/udp_flows.py` for the ends.

Rules kept
- A stream's bytes follow from the run's seed and the flow's name alone. Both ends hash what passed, and the
  receiver also compares it with what should have come, so that a transfer cut short can be proved intact too.
- Everything is a callback on the agent's loop; nothing here waits.

Left out: the names and JSON of results (`hosts/agent.py` adds host, role and kind).
"""

import errno
import hashlib
import random
import socket
from typing import Any, Protocol

from hosts.errors import HostError
from hosts.loop import Loop
from hosts.probes import Probe
from telemetry.records import FlowRecord, TcpRecord

#: what one write offers the kernel, and one read takes
CHUNK = 65536
Result = dict[str, Any]


class Context(Protocol):
    """What a flow needs of its agent."""

    loop: Loop
    host: str
    seed: int
    probe: Probe
    delayed_ack: bool

    def since_epoch(self, now: int) -> int:
        """CLOCK_MONOTONIC as ns since the run's start."""

    def emit(self, record: TcpRecord | FlowRecord) -> None:
        """Report a record."""


class Stream:
    """The endless pseudo-random bytes of one flow, with the hash of what has been taken."""

    def __init__(self, seed: int, name: str) -> None:
        self._random = random.Random(f"{seed}/{name}")
        self._waiting = memoryview(b"")
        self._hash = hashlib.sha256()
        self.taken = 0

    def peek(self, most: int) -> memoryview:
        """Some of the next bytes: at least one, at most `most`."""
        if not self._waiting:
            self._waiting = memoryview(self._random.randbytes(CHUNK))
        return self._waiting[:most]

    def take(self, count: int) -> None:
        """Go on by `count` of the bytes `peek` showed."""
        self._hash.update(self._waiting[:count])
        self._waiting = self._waiting[count:]
        self.taken += count

    def agrees(self, data: bytes) -> bool:
        """Take as many bytes as `data` has; whether they are the same."""
        view = memoryview(data)
        same = True
        while view:
            expected = self.peek(len(view))
            same = same and view[: len(expected)] == expected
            view = view[len(expected) :]
            self.take(len(expected))
        return same

    def sha256(self) -> str:
        """Hex digest of all bytes taken."""
        return self._hash.hexdigest()


class Counter:
    """The bytes received under one flow name, and the records about them."""

    def __init__(self, context: Context, flow: str) -> None:
        self._context, self._flow = context, flow
        self.bytes = 0
        self.active = False
        self._bytes_before = 0
        self._time_before = 0

    def start(self, now: int) -> None:
        """Begin to report; ignored while it does."""
        if not self.active:
            self.active = True
            self._time_before = now

    def report(self, now: int) -> None:
        """Emit a record for the time since the one before."""
        elapsed_ns = now - self._time_before
        if not self.active or elapsed_ns <= 0:
            return
        goodput_bps = (self.bytes - self._bytes_before) * 8e9 / elapsed_ns
        time_ns = self._context.since_epoch(now)
        self._context.emit(
            FlowRecord(
                time_ns=time_ns,
                host=self._context.host,
                flow=self._flow,
                bytes_received=self.bytes,
                goodput_bps=goodput_bps,
            )
        )
        self._bytes_before, self._time_before = self.bytes, now


def listen(host: str, port: int, kind: socket.SocketKind) -> socket.socket:
    """A non-blocking socket bound to the port, listening where it is a stream.

    Raises HostError when the port is taken.
    """
    listener = socket.socket(socket.AF_INET, kind)
    try:
        if kind == socket.SOCK_STREAM:
            # Connections of an earlier run in TIME_WAIT are no reason to refuse the port.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("0.0.0.0", port))
        if kind == socket.SOCK_STREAM:
            listener.listen(1024)
    except OSError as error:
        listener.close()
        reason = "is already in use" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror})"
        raise HostError(f"port {port} {reason} on host {host}") from None
    listener.setblocking(False)
    return listener


def delay_acks(sock: socket.socket) -> None:
    """Ask the kernel for delayed ACKs from now on; it falls back by itself, so ask again at every read."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
