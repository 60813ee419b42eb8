"""The dashboard on a real port, as an attacker without the token meets it.

Octets that no browser sends, clients that are slow, and as many of them as there is room for: meanwhile the dashboard
answers others, and its owner steers.
"""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from dashboard import serving
from dashboard.app import Served, serve
from tests.harness.dashboard_runs import TOKEN, Stage, keep, records
from tests.harness.waiting import PATIENCE_S, wait_for

pytestmark = pytest.mark.slow

#: another one than the tests' own: each address has a part of the connections
ATTACKER = "127.0.0.2"
OWNER = {"Authorization": f"Bearer {TOKEN}"}


@contextmanager
def served(runs: Path, **options: Any) -> Iterator[tuple[Stage, Served]]:
    stage = Stage(runs, **options)
    with serve(stage.app, "127.0.0.1", 0) as opened:
        yield stage, opened


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with more than a connection buffers, and a file beside the runs."""
    folder = tmp_path_factory.mktemp("kept")
    keep(folder / "runs", "past-run", records(1, 120.0))
    (folder / "secret").write_text("not for the network")
    return folder / "runs"


@pytest.fixture
def at(kept: Path) -> Iterator[Served]:
    with served(kept) as (_, opened):
        yield opened


def connect(at: Served, source: str = ATTACKER, receive: int | None = None) -> socket.socket:
    """A connection; `receive`: the octets that it takes in before it is read."""
    made = socket.socket()
    made.settimeout(PATIENCE_S)
    made.bind((source, 0))
    if receive is not None:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    made.connect(("127.0.0.1", at.port))
    return made


def said(at: Served, *octets: bytes) -> bytes:
    """What is answered to octets, until the connection is closed."""
    with closing(connect(at)) as made:
        for each in octets:
            try:
                made.sendall(each)
            except (BrokenPipeError, ConnectionResetError):
                break
        found = b""
        try:
            while data := made.recv(1 << 16):
                found += data
        except ConnectionResetError:
            pass
        return found


def head(path: str, method: str = "GET", *lines: str, host: str | None = "127.0.0.1") -> bytes:
    named = [] if host is None else [f"Host: {host}"]
    return "\r\n".join([f"{method} {path} HTTP/1.1", *named, "Connection: close", *lines, "", ""]).encode()


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def asked(at: Served, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    """What another client is told."""
    with closing(HTTPConnection("127.0.0.1", at.port, timeout=PATIENCE_S)) as made:
        sent = None if body is None else json.dumps(body)
        made.request("GET" if body is None else "POST", path, sent, {"Content-Type": "application/json", **headers})
        with made.getresponse() as answer:
            return answer.status, json.loads(answer.read())


# -- octets ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/../secret",
            "/../../secret",
            "/static/../../secret",
            "/static/..%2f..%2fsecret",
            "/static/%2e%2e/%2e%2e/secret",
        ),
        *(
            "/assets/dygraphs/../../../../etc/passwd",
            "/assets/dygraphs/%2fetc/passwd",
            "//etc/passwd",
            "/%2e%2e/secret",
        ),
        *("/api/runs/../secret", "/api/runs/..%2fsecret", "/api/runs/..", "/api/runs/%2e%2e/series", "/api/runs/..%00"),
        *("/api/runs/past-run/export/../../../secret.csv", "/api/runs/past-run/export/..%2f..%2f..%2fsecret.csv"),
        "/api/compare?a=../secret&b=..%2fsecret",
    ],
)
def test_no_path_leads_out_of_the_runs(at: Served, path: str) -> None:
    answer = said(at, head(path))
    assert status(answer) in (400, 404)
    assert b"not for the network" not in answer
    assert b"root:" not in answer


@pytest.mark.parametrize(
    "octets",
    [
        head("/api/state", host="evil.example"),
        head("/api/state", host=None),
        head("/api/state", "GET", "Host: evil.example"),
        head("/api/state", host="127.0.0.1@evil.example"),
        head("http://evil.example/api/state", host="evil.example"),
        b"GET /api/state HTTP/1.0\r\nHost: evil.example\r\nX-Forwarded-Host: 127.0.0.1\r\n\r\n",
    ],
)
def test_other_names_are_refused_however_they_come(at: Served, octets: bytes) -> None:
    """A page whose name has been made to resolve to this machine (DNS rebinding) reads nothing."""
    answer = said(at, octets)
    assert status(answer) == 400
    assert b"past-run" not in answer
    assert b"live-run" not in answer


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_no_form_of_another_site_changes_anything(kept: Path, kind: str) -> None:
    body = '{"name": "snr_db", "value": 1}'
    with served(kept) as (stage, opened):
        session = stage.client.post("/api/login", json={"token": TOKEN}, headers={"Origin": "http://localhost"})
        cookie = session.headers["Set-Cookie"].split(";")[0].replace("fadelab=", f"fadelab-{opened.port}=")
        about = (f"Content-Length: {len(body)}", f"Cookie: {cookie}", f"Host: 127.0.0.1:{opened.port}")
        for path in ("/api/runs/live-run/controls", "/api/runs/live-run/stop", "/api/start"):
            foreign = (f"Content-Type: {kind}", "Origin: http://evil.example")
            assert status(said(opened, head(path, "POST", *about, *foreign, host=None) + body.encode())) == 403
            old = (f"Content-Type: {kind}", f"Origin: http://127.0.0.1:{opened.port}")
            assert status(said(opened, head(path, "POST", *about, *old, host=None) + body.encode())) == 415
        assert (stage.controls.changes, stage.controls.stopped, stage.starter.requests) == ([], False, [])
        # the same by the page itself
        ours = ("Content-Type: application/json", f"Origin: http://127.0.0.1:{opened.port}")
        answer = said(opened, head("/api/runs/live-run/controls", "POST", *about, *ours, host=None) + body.encode())
        assert status(answer) == 200
        assert stage.controls.changes == [("snr_db", 1)]


CHUNK = b"10000\r\n" + b"[" * 65_536 + b"\r\n"


@pytest.mark.parametrize(
    ("octets", "expected"),
    [
        ((head("/api/login", "POST", "Content-Length: 99999999999999"),), 413),
        ((head("/api/login", "POST", "Content-Length: 65536"), b"[" * 65_536), 413),
        ((head("/api/login", "POST", "Transfer-Encoding: chunked"), *[CHUNK] * 64), 413),
        ((head("/api/login", "POST", "Content-Length: -1"),), 400),
        ((head("/api/login", "POST", "Content-Length: 5", "Transfer-Encoding: chunked"), b"0\r\n\r\n"), 403),
        ((head("/api/login", "POST", "Transfer-Encoding: gzip, chunked"), b"0\r\n\r\n"), 501),
        ((head("/" + "a" * 40_000),), 431),
        ((head("/", "GET", *[f"X-{n}: {'a' * 1000}" for n in range(40)]),), 431),
        ((b"GET / HTTP/1.1\r\n", *[b"X-A: " + b"a" * 1000 + b"\r\n"] * 1000), 431),
    ],
    ids=["length", "body", "chunks", "negative", "both", "gzip", "path", "headers", "endless"],
)
def test_what_is_too_large_is_not_read(at: Served, octets: tuple[bytes, ...], expected: int) -> None:
    assert status(said(at, *octets)) == expected


@pytest.mark.parametrize(
    "octets", [b"\0" * 1000, b"\x16\x03\x01\x02\x00\x01", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\nA\r\n\r\n"]
)
def test_what_is_no_request_is_no_fault(at: Served, octets: bytes) -> None:
    answer = said(at, octets, b"\r\n\r\n")
    assert status(answer) in (400, 505)
    assert b"Traceback" not in answer
    assert asked(at, "/api/state")[0] == 200


@pytest.fixture
def patient(kept: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A server that waits no more than a second for the slow, where nothing else ends a connection."""
    for name, value in (("_REQUEST_S", 1.0), ("_READ_S", 1.0), ("_IDLE_S", 3600), ("_STALLED_MS", 3_600_000)):
        monkeypatch.setattr(serving, name, value)
    with served(kept) as (_, opened):
        yield opened


# -- clients that take their time ------------------------------------------------------------------------------------


def closed(made: socket.socket) -> bool:
    """Whether the other side has closed a connection; what it has sent is thrown away."""
    made.setblocking(False)
    try:
        while made.recv(1 << 16):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


@pytest.mark.parametrize("begun", [b"", b"GET /", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "])
def test_a_request_a_few_octets_at_a_time_is_not_waited_for(patient: Served, begun: bytes) -> None:
    with closing(connect(patient)) as made:
        made.sendall(begun)

        def drip() -> bool:
            if begun:
                try:
                    made.send(b"a")
                except OSError:
                    return True
            return closed(made)

        wait_for(drip)
    # a request that is served takes as long as it does
    with closing(connect(patient)) as made:
        made.sendall(head("/api/stream"))
        time.sleep(3)
        assert not closed(made)


def test_an_answer_that_is_read_a_few_octets_at_a_time_is_given_up(patient: Served) -> None:
    with closing(connect(patient, receive=4096)) as made:
        made.sendall(head("/api/runs/past-run/series"))
        wait_for(lambda: patient._server.active_channels)
        began = time.monotonic()

        def given_up() -> bool:
            # 2 KB/s
            made.recv(200)
            time.sleep(0.1)
            return not patient._server.active_channels

        wait_for(given_up)
        assert time.monotonic() > began + 1
    # at once, it is sent whole, in whatever time that takes
    assert asked(patient, "/api/runs/past-run/series")[0] == 200


# -- as many as there is room for ---------------------------------------------------------------------------------


def steers(at: Served, stage: Stage) -> bool:
    """Whether others still read, and the owner steers."""
    changes = len(stage.controls.changes)
    assert asked(at, "/api/state")[0] == 200
    body = {"name": "snr_db", "value": changes}
    assert asked(at, "/api/runs/live-run/controls", body, **OWNER) == (200, {"ok": True})
    return len(stage.controls.changes) == changes + 1


def test_idle_connections_of_one_address_leave_room(kept: Path) -> None:
    with served(kept) as (stage, opened), ExitStack() as stack:
        made = [stack.enter_context(closing(connect(opened))) for _ in range(serving._CONNECTIONS + 50)]
        wait_for(lambda: sum(map(closed, made)) == len(made) - serving._OF_ONE)
        assert steers(opened, stage)


def test_streams_of_others_leave_the_owner_places(kept: Path) -> None:
    with served(kept) as (stage, opened), ExitStack() as stack:

        def stream(**headers: str) -> int:
            made = HTTPConnection("127.0.0.1", opened.port, timeout=PATIENCE_S)
            stack.callback(made.close)
            made.request("GET", "/api/stream?run=live-run", headers=headers)
            return stack.enter_context(made.getresponse()).status

        assert [stream() for _ in range(serving.STREAMS)] == [200] * (serving.STREAMS - 4) + [503] * 4
        assert [stream(**OWNER) for _ in range(5)] == [200] * 4 + [503]
        assert steers(opened, stage)


def test_long_answers_that_nobody_reads_leave_the_owner_places(kept: Path) -> None:
    """Each keeps a thread for as long as its client does not read."""
    with served(kept) as (stage, opened), ExitStack() as stack:
        for _ in range(2 * serving.LONG):
            made = stack.enter_context(closing(connect(opened, receive=4096)))
            made.sendall(head("/api/runs/past-run/series"))
        busy = "/api/runs/past-run/series"
        wait_for(lambda: asked(opened, busy)[0] == 503)
        assert "ask again" in asked(opened, busy)[1]["error"]
        assert asked(opened, busy, **OWNER)[0] == 200
        assert steers(opened, stage)
    with served(kept) as (_, opened):
        assert asked(opened, busy)[0] == 200


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("path", ["past-run/series", "past-run/export/tcp.csv", "past-run/export/x.csv", "nothing"])
def test_a_long_answer_gives_its_place_back(at: Served, method: str, path: str) -> None:
    answers = [said(at, head(f"/api/runs/{path}", method)) for _ in range(2 * serving.LONG)]
    assert {status(answer) for answer in answers} == {404 if "x.csv" in path or path == "nothing" else 200}


def test_wrong_tokens_leave_the_owner_in(kept: Path) -> None:
    with served(kept) as (stage, opened):
        wrong = [
            asked(opened, "/api/login", {"token": f"guess {number}"}, Origin=opened.url)[0] for number in range(30)
        ]
        assert wrong == [403] * 10 + [429] * 20
        assert steers(opened, stage)
