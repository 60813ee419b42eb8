"""A web server of a test's own: for faults that cannot be had from a real database, and for the order of requests."""

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import NamedTuple

from werkzeug import Request as Asked
from werkzeug import Response
from werkzeug.serving import WSGIRequestHandler, make_server


class Request(NamedTuple):
    path: str
    authorization: str | None
    encoding: str | None
    body: bytes


class Stub:
    """Answers every request with `status` and `headers`, and remembers the requests by status."""

    def __init__(self, status: int = 204, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        self.status = status
        self.headers = headers
        self.answered: defaultdict[int, list[Request]] = defaultdict(list)
        self.url = ""

    def answer(self, asked: Asked) -> Response:
        authorization, encoding = (asked.headers.get(name) for name in ("Authorization", "Content-Encoding"))
        status = self.status
        self.answered[status].append(Request(asked.full_path, authorization, encoding, asked.get_data()))
        return Response(status=status, headers=dict(self.headers))


class _Quiet(WSGIRequestHandler):
    def log(self, *args: object) -> None:
        pass


@contextmanager
def serving(stub: Stub) -> Iterator[Stub]:
    web = make_server("127.0.0.1", 0, Asked.application(stub.answer), threaded=True, request_handler=_Quiet)
    stub.url = f"http://127.0.0.1:{web.port}"
    threading.Thread(target=web.serve_forever, args=(0.01,), daemon=True).start()
    yield stub
    web.shutdown()
    web.server_close()
