"""A web server of a test's own: for faults that cannot be had from a real database, and for the order of requests."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Request(NamedTuple):
    """One request that came."""

    path: str
    authorization: str | None
    encoding: str | None
    body: bytes


class Stub:
    """Answers every request with `status` and `headers`, and remembers the requests by status."""

    def __init__(self, status: int = 204, headers: dict[str, str] | None = None) -> None:
        self.status = status
        self.headers = headers or {}
        self.requests: dict[int, list[Request]] = {}
        self.url = ""

    def answered(self, status: int) -> list[Request]:
        """The requests that got this status."""
        return self.requests.setdefault(status, [])


@contextmanager
def serving(stub: Stub) -> Iterator[Stub]:
    """Serve on a free port of loopback."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            status = stub.status
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            authorization, encoding = (self.headers[name] for name in ("Authorization", "Content-Encoding"))
            stub.answered(status).append(Request(self.path, authorization, encoding, body))
            self.send_response(status)
            for name, value in {"Content-Length": "0", **stub.headers}.items():
                self.send_header(name, value)
            self.end_headers()

        def do_GET(self) -> None:
            self.do_POST()

        def log_message(self, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        # A connection that is kept alive would keep its thread.
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as web:
        stub.url = f"http://127.0.0.1:{web.server_port}"
        threading.Thread(target=web.serve_forever, args=(0.01,), daemon=True).start()
        yield stub
        web.shutdown()
