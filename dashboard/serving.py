"""The web server: waitress, configured for event streams, and for clients that mean no good.

Each stream occupies a thread. With these settings waitress notices at once when a browser disconnects, buffers little
for a browser that does not read, and closes its connection after half a minute.

Rules kept
- A connection that sends its request, or reads its answer, a few octets at a time is closed. Waiting for a request
  takes no thread.
- One address has a part of the connections, so that others find some: not behind a proxy, whose address all have.
"""

import errno
import logging
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from flask import Flask
from typing_extensions import override
from waitress.channel import HTTPChannel
from waitress.server import create_server

from common.closing import Closing

#: streams, answers that take long, and some more for all other requests
STREAMS = 24
LONG = 16
_THREADS = STREAMS + LONG + 8
_BUFFERED_BYTES = 1 << 18
_STALLED_MS = 30_000
_MAX_BODY = 1 << 16
_MAX_HEAD = 1 << 15
_BACKLOG = 128
#: connections, and those of one address: a browser has 6
_CONNECTIONS, _OF_ONE = 512, 128
#: how long a connection may be idle, and a request be under way
_IDLE_S, _REQUEST_S = 30, 20.0
#: a client that has data waiting reads this much in this time, at least
_READ_BYTES, _READ_S = 1 << 16, 30.0


class ServerError(RuntimeError):
    """The dashboard cannot be served; one line."""


class _Channel(HTTPChannel):
    """A connection whose client has to keep up. `most`: connections that its address may have."""

    def __init__(self, server: Any, sock: socket.socket, addr: Any, adj: Any, map: Any, *, most: int) -> None:  # noqa: A002
        #: since when a request has been awaited or under way; None: it is there
        self._awaited: float | None = time.monotonic()
        #: octets sent, and when there were how many while more waited
        self._sent = 0
        self._behind: tuple[float, int] | None = None
        super().__init__(server, sock, addr, adj, map)
        if sum(1 for other in server.active_channels.values() if other.addr[0] == addr[0]) > most:
            self.handle_close()

    @override
    def received(self, data: bytes) -> bool:
        done = bool(super().received(data))
        if self.request is None:
            self._awaited = None
        elif self._awaited is None:
            self._awaited = time.monotonic()
        return done

    @override
    def send(self, data: bytes, do_close: bool = True) -> int:
        sent = int(super().send(data, do_close))
        self._sent += sent
        return sent

    @override
    def readable(self) -> bool:
        # the server's loop asks each connection at least once a second
        if self._too_slow(time.monotonic()):
            # at once: the loop would wait until the client reads
            self.handle_close()
            self.will_close = self.close_when_flushed = False
            return False
        return bool(super().readable())

    def _too_slow(self, now: float) -> bool:
        if self._awaited is not None and not self.requests and now > self._awaited + _REQUEST_S:
            return True
        if not self.total_outbufs_len:
            self._behind = None
            return False
        if self._behind is None:
            self._behind = now, self._sent
        since, sent = self._behind
        if now <= since + _READ_S:
            return False
        self._behind = None
        return self._sent < sent + _READ_BYTES


class Served(Closing):
    """A dashboard being served, in threads of its own; a context manager, which ends it.

    `most`: connections that one address may have.
    """

    def __init__(self, app: Flask, listening: socket.socket, ending: Callable[[], None], most: int) -> None:
        self._ending = ending
        # accepted sockets inherit these
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _STALLED_MS)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFERED_BYTES)
        # a page requests all its files at once
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)
        self._channels: dict[int, Any] = {}
        self._server: Any = cast(
            Any,
            create_server(
                app,
                map=self._channels,
                sockets=[listening],
                threads=_THREADS,
                ident="fadelab",
                # reads while a stream is written, so that it notices a disconnect
                channel_request_lookahead=1,
                outbuf_high_watermark=_BUFFERED_BYTES,
                max_request_body_size=_MAX_BODY,
                max_request_header_size=_MAX_HEAD,
                connection_limit=_CONNECTIONS,
                channel_timeout=_IDLE_S,
                # select() knows no descriptors above 1,023
                asyncore_use_poll=True,
                # a disconnect within a stream is no error
                log_socket_errors=False,
                # the application knows which proxies there are
                clear_untrusted_proxy_headers=False,
            ),
        )
        self._server.channel_class = partial(_Channel, most=most)
        host, self.port = listening.getsockname()[:2]
        self.url = f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dashboard")
        self._thread.start()

    def wait(self) -> None:
        """Wait until the server ends."""
        self._ended.wait()

    def close(self) -> None:
        """End all streams and close the port; idempotent."""
        if self._thread.is_alive():
            self._ending()
            # in the server's thread, which may wait on these sockets
            self._server.trigger.pull_trigger(self._hang_up)
            self._thread.join()
            self._server.task_dispatcher.shutdown()
            # last, with its trigger: another thread may have woken the server, so that it ended before our own write
            self._server.close()

    def _run(self) -> None:
        try:
            self._server.run()
        finally:
            self._ended.set()

    def _hang_up(self) -> None:
        for channel in list(self._server.active_channels.values()):
            channel.handle_close()
        # the loop ends without sockets
        self._channels.clear()


def serve(app: Flask, host: str, port: int) -> Served:
    """Serve the dashboard `app` (of `create_app`); port 0 takes a free one. Raises ServerError in one line."""
    if not 0 <= port <= 65_535:
        raise ServerError(f"port {port}: there is none of this number; choose another --port, up to 65535")
    try:
        family, *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise ServerError(_reason(host, port, error)) from None
    try:
        most = _CONNECTIONS if app.config["PROXIES"] else _OF_ONE
        return Served(app, listening, app.extensions["fadelab"].end, most)
    except BaseException:
        listening.close()
        raise


def free_port(host: str, first: int, most: int = 32) -> int:
    """Return the first free port from `first` on, of `most`; where none is free, or none can be had, `first`."""
    for port in range(first, min(first + most, 65_536)):
        try:
            family, *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
            socket.create_server((host, port), family=family).close()
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                return first
        else:
            return port
    return first


def _reason(host: str, port: int, error: OSError) -> str:
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return f"{host}: not an address of this machine; bind to one of its own, as 127.0.0.1"
    if error.errno == errno.EADDRINUSE:
        why = "another dashboard listens there, or another program; end it, or choose another --port"
    else:
        why = f"cannot listen there: {error.strerror}; choose another --port"
    return f"port {port} of {host}: {why}"
