"""The two ends of one TCP transfer.

Read first: `hosts/flows.py`; `hosts/agent.py` for who drives them.

Rules kept
- A transfer lasts from before connect() (the first SYN) until the sender has seen the receiver's FIN, which
  the receiver sends once it has read everything.
- Ends by itself or by `abort`; what is still unsent then goes with a RST, so that nothing lingers in the
  kernel.

Left out: which transfers there are, and when (`hosts/agent.py`).
"""

import errno
import hashlib
import os
import socket
import struct
from collections.abc import Callable
from dataclasses import replace

from hosts.flows import CHUNK, Context, Counter, Result, Stream, delay_acks
from hosts.loop import READ, WRITE
from hosts.tcp_info import of_socket

#: writes or reads before other flows get their turn
_TURNS = 4


class StreamSender:
    """One connection's sending end, which writes unless `paused`; `done` gets its result, once."""

    def __init__(
        self,
        context: Context,
        flow: str,
        index: int,
        address: tuple[str, int],
        limit: int | None,
        end_at: int | None,
        drain_ns: int | None,
        paused: bool,
        done: Callable[[Result], None],
    ) -> None:
        self._context, self._loop, self._flow = context, context.loop, flow
        self._stream = Stream(context.seed, f"{flow}/{index}")
        self._limit, self._drain_ns, self._done = limit, drain_ns, done
        self._connected_ns: int | None = None
        self._writing = True
        self._paused = paused
        self._ended = False
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setblocking(False)
        self._started_ns = context.since_epoch(self._loop.now())
        error = self._socket.connect_ex(address)
        if error not in (0, errno.EINPROGRESS):
            self._loop.call_at(0, lambda: self._finish(os.strerror(error)))
            return
        self._loop.watch(self._socket, WRITE, self._connected)
        if end_at is not None:
            self._loop.call_at(end_at, self._stop_writing)

    def pause(self, paused: bool) -> None:
        """Write nothing more for now, or go on; the end of the flow's time comes all the same."""
        self._paused = paused
        if self._connected_ns is not None and self._writing and not self._ended:
            if paused:
                self._loop.forget(self._socket)
            else:
                self._loop.watch(self._socket, WRITE, self._write)

    def abort(self, reason: str) -> None:
        """End now with a RST; ignored when it has ended."""
        if not self._ended:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._finish(reason)

    def _connected(self) -> None:
        error = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            self._finish(os.strerror(error))
            return
        self._connected_ns = self._context.since_epoch(self._loop.now())
        if self._paused:
            self._loop.forget(self._socket)
            return
        self._loop.watch(self._socket, WRITE, self._write)
        self._write()

    def _write(self) -> None:
        for _ in range(_TURNS):
            left = CHUNK if self._limit is None else min(CHUNK, self._limit - self._stream.taken)
            if left == 0:
                self._stop_writing()
                return
            try:
                self._stream.take(self._socket.send(self._stream.peek(left)))
            except BlockingIOError:
                return
            except OSError as error:
                self._finish(error.strerror)
                return

    def _stop_writing(self) -> None:
        if self._ended or not self._writing:
            return
        self._writing = False
        if self._connected_ns is None:
            self.abort("not connected within the duration")
            return
        self._socket.shutdown(socket.SHUT_WR)
        self._loop.watch(self._socket, READ, self._await_eof)
        if self._drain_ns is not None:
            self._loop.call_at(self._loop.now() + self._drain_ns, lambda: self.abort("not drained in time"))

    def _await_eof(self) -> None:
        try:
            if self._socket.recv(CHUNK) == b"":
                self._finish(None)
        except BlockingIOError:
            return
        except OSError as error:
            self._finish(error.strerror)

    def _finish(self, error: str | None) -> None:
        if self._ended:
            return
        self._ended = True
        now = self._context.since_epoch(self._loop.now())
        info = of_socket(self._socket)
        # The kernel counts our FIN as a byte, and a closed connection's state no longer tells whether it did.
        info = replace(info, bytes_acked=min(info.bytes_acked, self._stream.taken))
        if self._connected_ns is not None:
            port = self._socket.getsockname()[1]
            self._context.emit(self._context.probe.retire(now, self._flow, port, info))
        self._loop.forget(self._socket)
        self._socket.close()
        self._done(
            {
                "bytes": self._stream.taken,
                "sha256": self._stream.sha256(),
                "started_ns": self._started_ns,
                "connected_ns": self._connected_ns,
                "finished_ns": now,
                "bytes_acked": info.bytes_acked,
                "retransmits": info.retransmits,
                "timeouts": info.timeouts,
                "complete": error is None,
                "error": error,
            }
        )


class StreamReceiver:
    """One accepted connection's receiving end; `done` gets its result, once."""

    def __init__(
        self,
        context: Context,
        flow: str,
        index: int,
        connection: socket.socket,
        counter: Counter,
        done: Callable[[Result], None],
    ) -> None:
        self._context, self._loop, self._socket, self._counter = context, context.loop, connection, counter
        self._stream = Stream(context.seed, f"{flow}/{index}")
        self._hash = hashlib.sha256()
        self._done = done
        self.bytes = 0
        self._intact = True
        self._accepted_ns = context.since_epoch(self._loop.now())
        self._first_ns: int | None = None
        self._last_ns: int | None = None
        #: whether `done` has been called
        self.ended = False
        connection.setblocking(False)
        counter.start(self._loop.now())
        self._loop.watch(connection, READ, self._read)
        self._read()

    def abort(self, reason: str) -> None:
        """End now; ignored when it has ended."""
        if not self.ended:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._finish(reason)

    def _read(self) -> None:
        for _ in range(_TURNS):
            if self._context.delayed_ack:
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
            self._last_ns = self._context.since_epoch(self._loop.now())
            self._first_ns = self._last_ns if self._first_ns is None else self._first_ns
            self.bytes += len(data)
            self._counter.bytes += len(data)
            self._hash.update(data)
            self._intact = self._stream.agrees(data) and self._intact

    def _finish(self, error: str | None) -> None:
        self.ended = True
        now = self._loop.now()
        self._loop.forget(self._socket)
        self._socket.close()
        self._counter.report(now)
        self._done(
            {
                "bytes": self.bytes,
                "sha256": self._hash.hexdigest(),
                "intact": self._intact,
                "accepted_ns": self._accepted_ns,
                "first_byte_ns": self._first_ns,
                "last_byte_ns": self._last_ns,
                "finished_ns": self._context.since_epoch(now),
                "complete": error is None,
                "error": error,
            }
        )


def never_connected() -> Result:
    """Return the result of a receiving end to which no connection has come."""
    return {
        "bytes": 0,
        "sha256": hashlib.sha256().hexdigest(),
        "intact": True,
        "accepted_ns": None,
        "first_byte_ns": None,
        "last_byte_ns": None,
        "finished_ns": None,
        "complete": False,
        "error": "never connected",
    }
