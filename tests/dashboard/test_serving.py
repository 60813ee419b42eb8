"""The dashboard on a real port: streams as they come, browsers that go, a port that is taken."""

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pytest

from dashboard.app import Served, ServerError, serve
from dashboard.hub import Hub
from dashboard.serving import STREAMS
from telemetry.views import PhyView
from tests.harness.dashboard_runs import EPOCH_NS, TCP, TOKEN, application, info
from tests.harness.waiting import PATIENCE_S, wait_for

pytestmark = pytest.mark.slow

S = 1_000_000_000


class Stage:
    def __init__(self, runs: Path, port: int = 0, **options: Any) -> None:
        self.hub = Hub()
        self.feed = self.hub.open(info())
        self.feed.begin(EPOCH_NS)
        self.served: Served = serve(application(runs, self.hub, **options), "127.0.0.1", port)

    def write(self, time_s: int) -> None:
        self.feed.write(replace(TCP, time_ns=time_s * S))


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    with stage.served:
        yield stage


class Stream:
    def __init__(self, response: HTTPResponse) -> None:
        self.response = response
        self.last_id = ""

    def event(self) -> tuple[str, Any]:
        fields: dict[str, str] = {}
        while True:
            line = self.response.readline().decode()
            assert line, "the stream ended"
            if line == "\n" and "event" in fields:
                self.last_id = fields.get("id", self.last_id)
                return fields["event"], json.loads(fields["data"])
            name, _, value = line.strip().partition(": ")
            fields[name] = value

    def frame(self) -> dict[str, Any]:
        name = ""
        while name != "frame":
            name, data = self.event()
        part: dict[str, Any] = data["runs"]["a-run"]
        return part

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while not wanted(part := self.frame()):
            pass
        return part


@contextmanager
def streaming(served: Served, path: str = "/api/stream?run=a-run", **headers: str) -> Iterator[Stream]:
    with closing(HTTPConnection("127.0.0.1", served.port, timeout=PATIENCE_S)) as connection:
        connection.request("GET", path, headers=headers)
        with connection.getresponse() as response:
            assert response.status == 200, response.read()
            assert response.headers["Content-Type"] == "text/event-stream; charset=utf-8"
            yield Stream(response)


def asked(
    port: int, path: str, method: str = "GET", host: str = "127.0.0.1", headers: Mapping[str, str] | None = None
) -> tuple[int, bytes]:
    """Status and body of an answer; of a stream, which has no end, no body."""
    with closing(HTTPConnection(host, port, timeout=PATIENCE_S)) as connection:
        connection.request(method, path, headers=headers or {})
        with connection.getresponse() as response:
            streams = response.headers["Content-Type"].startswith("text/event-stream")
            return response.status, b"" if streams else response.read()


def times(part: dict[str, Any]) -> list[float]:
    found: list[float] = part.get("series", {}).get("cwnd", {}).get("bulk", {"t": []})["t"]
    return found


# -- streams ------------------------------------------------------------------------------------------------------


def test_each_frame_comes_when_it_is_made(stage: Stage) -> None:
    """What is written is read before the next is written: nothing waits in a buffer for more to come."""
    with streaming(stage.served) as stream:
        assert stream.event()[0] == "runs"
        assert stream.frame()["info"]["name"] == "a-run"
        for number in range(5):
            stage.write(number)
            assert times(stream.until(lambda part: bool(times(part)))) == [number]


def test_a_stream_without_runs_tells_of_those_that_begin_and_end(stage: Stage) -> None:
    with streaming(stage.served, "/api/stream") as stream:
        assert [run["name"] for run in stream.event()[1]["runs"]] == ["a-run"]
        other = stage.hub.open(info("b-run"))
        assert [run["name"] for run in stream.event()[1]["runs"]] == ["b-run", "a-run"]
        other.close()
        assert [run["live"] for run in stream.event()[1]["runs"]] == [False, True]


def test_a_silent_run_is_pinged(stage: Stage) -> None:
    with streaming(stage.served) as stream:
        names = [stream.event()[0] for _ in range(4)]
    assert names == ["runs", "frame", "ping", "ping"]


def test_a_browser_that_reconnects_goes_on_where_it_was(stage: Stage) -> None:
    stage.write(1)
    with streaming(stage.served) as stream:
        stream.until(lambda part: times(part) == [1])
        last_id = stream.last_id
    stage.write(2)
    with streaming(stage.served, **{"Last-Event-ID": last_id}) as stream:
        part = stream.frame()
    assert times(part) == [2]
    assert "fresh" not in part


NOT_GIVEN_OUT = [f"{{nonce}}/a-run={batch}" for batch in ("999999", "9" * 400, "-1", "0")]


@pytest.mark.parametrize(
    "last_id", ["", "x", "deadbeef/a-run=7", "/a-run=", "a" * 5000, "/" * 500, "9" * 5000, *NOT_GIVEN_OUT]
)
def test_ids_of_others_and_numbers_nobody_gave_out_begin_anew(stage: Stage, last_id: str) -> None:
    stage.write(1)
    with streaming(stage.served, **{"Last-Event-ID": last_id.format(nonce=stage.hub.nonce)}) as stream:
        assert times(stream.until(lambda part: bool(times(part)))) == [1]


def test_a_closed_browser_is_noticed(stage: Stage) -> None:
    with streaming(stage.served) as stream:
        stream.frame()
        assert stage.feed.watched
    wait_for(lambda: not stage.feed.watched)


def test_a_browser_that_reads_nothing_stalls_nobody(stage: Stage) -> None:
    """It asks, and never reads the megabytes it gets; the run writes on, and another page sees everything."""
    view = PhyView(0, "up", 2.4e9, 2.5e6, (-90.5,) * 200_000, (), "")
    with closing(socket.create_connection(("127.0.0.1", stage.served.port))) as deaf:
        deaf.sendall(b"GET /api/stream?run=a-run HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        wait_for(lambda: stage.feed.watched)
        with streaming(stage.served, "/api/stream?run=a-run&views=0") as stream:
            seen: list[float] = []
            for number in range(100):
                stage.write(number)
                if number % 10 == 0:
                    stage.feed.show(replace(view, time_ns=number))
                    seen += times(stream.until(lambda part: bool(times(part))))
            while seen[-1] < 99:
                seen += times(stream.frame())
        assert seen == list(range(100))
        assert stage.feed.watched
    wait_for(lambda: not stage.feed.watched)


def test_a_stream_too_many_is_refused_and_the_rest_still_answers(stage: Stage) -> None:
    with ExitStack() as stack:
        # the last places are for the token (test_attacks.py)
        for number in range(STREAMS):
            token = {"Authorization": f"Bearer {TOKEN}"} if number >= STREAMS - 4 else {}
            stack.enter_context(streaming(stage.served, **token)).event()
        found, body = asked(stage.served.port, "/api/stream")
        assert found == 503
        assert "close one" in json.loads(body)["error"]
        assert asked(stage.served.port, "/api/state")[0] == 200
    wait_for(lambda: asked(stage.served.port, "/api/stream")[0] == 200)


def test_a_stream_that_is_not_read_at_all_takes_no_place(stage: Stage) -> None:
    for _ in range(STREAMS + 1):
        assert asked(stage.served.port, "/api/stream", "HEAD")[0] == 200


def test_a_stream_can_take_the_token(tmp_path: Path) -> None:
    stage = Stage(tmp_path, require_token_to_read=True)
    with stage.served:
        assert asked(stage.served.port, "/api/stream?run=a-run")[0] == 401
        with streaming(stage.served, Authorization=f"Bearer {TOKEN}") as stream:
            assert stream.event()[0] == "runs"


@pytest.mark.parametrize(("proxies", "answers"), [(0, [403] * 10 + [429]), (1, [403] * 11)])
def test_clients_behind_a_proxy_are_told_apart_where_it_is_known(
    tmp_path: Path, proxies: int, answers: list[int]
) -> None:
    with Stage(tmp_path, proxies=proxies).served as served:
        assert [
            asked(served.port, "/?token=wrong", headers={"X-Forwarded-For": f"192.0.2.{number}"})[0]
            for number in range(11)
        ] == answers


# -- the server -----------------------------------------------------------------------------------------------------


def test_it_ends_with_its_streams_and_leaves_the_port(tmp_path: Path) -> None:
    threads = set(threading.enumerate())
    stage = Stage(tmp_path)
    with streaming(stage.served) as stream:
        stream.frame()
        stage.served.close()
        stage.served.close()
        stage.served.wait()
        assert not stage.feed.watched
    wait_for(lambda: set(threading.enumerate()) <= threads)
    again = Stage(tmp_path, stage.served.port)
    with again.served:
        assert again.served.port == stage.served.port


def test_a_server_may_have_ended_before_it_is_woken_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread wakes it, it finds that it has to end, and then comes the one that has asked for the end."""
    stage = Stage(tmp_path)
    wake = stage.served._server.trigger._physical_pull

    def wake_twice() -> None:
        wake()
        wait_for(lambda: not stage.served._thread.is_alive())
        wake()

    monkeypatch.setattr(stage.served._server.trigger, "_physical_pull", wake_twice)
    stage.served.close()


def test_two_dashboards_do_not_fit_on_one_port(stage: Stage, tmp_path: Path) -> None:
    threads = set(threading.enumerate())
    with pytest.raises(ServerError) as caught:
        serve(application(tmp_path), "127.0.0.1", stage.served.port)
    assert str(caught.value) == (
        f"port {stage.served.port} of 127.0.0.1: another dashboard listens there, or another program; "
        "end it, or choose another --port"
    )
    # those of earlier tests may end meanwhile
    assert set(threading.enumerate()) <= threads
    assert asked(stage.served.port, "/api/state")[0] == 200


@pytest.mark.parametrize(
    ("host", "port", "line"),
    [
        ("192.0.2.1", 0, "not an address of this machine"),
        ("no such host", 0, "not an address of this machine"),
        ("127.0.0.1", 99_999, "port"),
    ],
)
def test_addresses_that_cannot_be_bound(tmp_path: Path, host: str, port: int, line: str) -> None:
    with pytest.raises(ServerError, match=line) as caught:
        serve(application(tmp_path), host, port)
    assert "\n" not in str(caught.value)


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.skipif(not has_ipv6(), reason="loopback has no IPv6: sysctl net.ipv6.conf.lo.disable_ipv6=0")
def test_ipv6(tmp_path: Path) -> None:
    with serve(application(tmp_path), "::1", 0) as served:
        assert served.url == f"http://[::1]:{served.port}"
        assert asked(served.port, "/api/state", host="::1")[0] == 200
