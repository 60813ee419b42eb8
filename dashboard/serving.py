"""The web server: waitress, configured for event streams.

Each stream occupies a thread. With these settings waitress notices at once when a browser disconnects, buffers little
for a browser that does not read, and closes its connection after half a minute.
"""

import errno
import logging
import socket
import threading
from collections.abc import Callable
from typing import Any

from flask import Flask
from waitress.server import create_server

from common.closing import Closing

#: streams, and some more for all other requests
STREAMS = 24
_THREADS = STREAMS + 8
_BUFFERED_BYTES = 1 << 18
_STALLED_MS = 30_000
_MAX_BODY = 1 << 16
_BACKLOG = 128


class ServerError(RuntimeError):
    """The dashboard cannot be served; one line."""


class Served(Closing):
    """A dashboard being served, in threads of its own; a context manager, which ends it."""

    def __init__(self, app: Flask, listening: socket.socket, ending: Callable[[], None]) -> None:
        self._ending = ending
        # accepted sockets inherit these
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _STALLED_MS)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFERED_BYTES)
        # a page requests all its files at once
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)
        self._channels: dict[int, Any] = {}
        # the type allows several ports
        self._server: Any = create_server(
            app,
            map=self._channels,
            sockets=[listening],
            threads=_THREADS,
            ident="fadelab",
            # reads while a stream is written, so that it notices a disconnect
            channel_request_lookahead=1,
            outbuf_high_watermark=_BUFFERED_BYTES,
            max_request_body_size=_MAX_BODY,
            # a disconnect within a stream is no error
            log_socket_errors=False,
            # the application knows which proxies there are
            clear_untrusted_proxy_headers=False,
        )
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
        return Served(app, listening, app.extensions["fadelab"].end)
    except BaseException:
        listening.close()
        raise


def _reason(host: str, port: int, error: OSError) -> str:
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return f"{host}: not an address of this machine; bind to one of its own, as 127.0.0.1"
    if error.errno == errno.EADDRINUSE:
        why = "another dashboard listens there, or another program; end it, or choose another --port"
    else:
        why = f"cannot listen there: {error.strerror}; choose another --port"
    return f"port {port} of {host}: {why}"
