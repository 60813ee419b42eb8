"""What `Influx` asks and understands, and its one line when something is wrong."""

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from telemetry.influx import Influx, InfluxError, InfluxServer, read_token
from telemetry.influx.client import identifier
from telemetry.influx.errors import AwayError, RefusedError, TooLargeError
from tests.harness.influxd import count, free_port, influxd
from tests.harness.web import Stub, serving

NOW_NS = time.time_ns()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server that demands a password, with a user who may not write."""
    with influxd(
        tmp_path_factory.mktemp("guarded"),
        free_port(),
        INFLUXDB_HTTP_AUTH_ENABLED="true",
        INFLUXDB_HTTP_MAX_BODY_SIZE="1000",
    ) as url:
        Influx(url).query("CREATE USER admin WITH PASSWORD 'se:cret' WITH ALL PRIVILEGES")
        Influx(url, "admin:se:cret").create_database(30)
        Influx(url, "admin:se:cret").query("CREATE USER reader WITH PASSWORD 'r'; GRANT READ ON fadelab TO reader")
        yield url


def complaint(influx: Influx) -> str:
    with pytest.raises(AwayError) as caught:
        influx.check()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_is_written_is_found(influx: Influx) -> None:
    influx.write(f'm,who=a,where=x v=1.5,n=3i,s="t" {NOW_NS}\nm,who=b v=2 {NOW_NS + 1}\n'.encode())
    a, b = influx.query("SELECT * FROM m GROUP BY who; SELECT * FROM nothing")
    assert (a.name, a.tags, a.columns) == ("m", {"who": "a"}, ("time", "n", "s", "v", "where"))
    assert a.values == [[NOW_NS, 3, "t", 1.5, "x"]]
    assert (b.tags, b.values) == ({"who": "b"}, [[NOW_NS + 1, None, None, 2, None]])


def test_every_row_of_a_long_answer_comes(influx: Influx) -> None:
    influx.write("".join(f"m v={n} {NOW_NS + n}\n" for n in range(12_000)).encode())
    (series,) = influx.query("SELECT v FROM m")
    assert [row[1] for row in series.values] == list(range(12_000))


@pytest.mark.parametrize("run", ["plain", "it's", 'say "so"', "back\\slash", "' OR 1=1; DROP DATABASE fadelab --"])
def test_values_are_bound(influx: Influx, run: str) -> None:
    escaped = run.replace(" ", "\\ ").replace("=", "\\=")
    influx.write(f"m,run={escaped} v=1 {NOW_NS}\nm,run=other v=2 {NOW_NS}\n".encode())
    (series,) = influx.query("SELECT v, run FROM m WHERE run = $run AND time <= $until", {"run": run, "until": NOW_NS})
    assert series.values == [[NOW_NS, 1, run]]


@pytest.mark.parametrize("name", ["plain", 'say "so"', "back\\slash", "two words; DROP", "näme"])
def test_names_are_quoted(influx: Influx, name: str) -> None:
    escaped = name.replace(" ", "\\ ")
    influx.write(f"{escaped} v=1 {NOW_NS}\n".encode())
    (series,) = influx.query(f"SELECT v FROM {identifier(name)}")
    assert (series.name, series.values) == (name, [[NOW_NS, 1]])


def test_a_bad_query(influx: Influx) -> None:
    with pytest.raises(InfluxError, match="error parsing query: found nonsense"):
        influx.query("nonsense")
    with pytest.raises(InfluxError, match="database not found: other"):
        influx.query("SHOW DATABASES; SELECT v FROM other..m")
    influx.query(f"DROP DATABASE {influx.database}")
    with pytest.raises(InfluxError, match=f"not executed; is there a database {influx.database}"):
        influx.query("SELECT v FROM m; SELECT v FROM m")


def test_points_of_which_some_are_refused(influx: Influx) -> None:
    influx.write(f"m v=1 {NOW_NS}\n".encode())
    with pytest.raises(RefusedError, match="field type conflict") as caught:
        influx.write(f'm v="text" {NOW_NS + 1}\nm v=2 {NOW_NS + 2}\nm v=true {NOW_NS + 3}\n'.encode())
    assert caught.value.points == 2
    assert count(influx, "m", "v") == 2
    with pytest.raises(RefusedError, match="unable to parse") as caught:
        influx.write(b"m v\n")
    assert caught.value.points is None


def test_nothing_listens_and_no_such_host() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    assert complaint(Influx(url)) == f"InfluxDB at {url}: Connection refused; check that it runs, and the URL"
    assert "http://fadelab.invalid:8086: " in complaint(Influx("http://fadelab.invalid:8086"))


def test_no_influxdb() -> None:
    with serving(Stub(404)) as web:
        line = f"{web.url}: the server there is not InfluxDB; check the URL"
        assert complaint(Influx(web.url)) == line
        with pytest.raises(AwayError) as caught:
            Influx(web.url).write(b"m v=1\n")
    assert str(caught.value) == line


def test_an_answer_cut_short() -> None:
    def hang_up(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        connection.recv(1000)
        connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=hang_up, args=(listener,))
        thread.start()
        assert "check that it runs" in complaint(Influx(f"http://127.0.0.1:{listener.getsockname()[1]}"))
        thread.join()


def test_no_such_database(server: InfluxServer) -> None:
    line = complaint(Influx(server.url, database="n/a"))
    assert line == (
        f'InfluxDB at {server.url}: no database n/a (database not found: "n/a"); create it, or name another'
    )


def test_tokens(guarded: str) -> None:
    Influx(guarded, "admin:se:cret").check()
    assert "demands a token (unable to parse authentication credentials)" in complaint(Influx(guarded))
    assert "the token is not accepted (authorization failed)" in complaint(Influx(guarded, "admin:wrong"))
    assert "the token is not accepted" in complaint(Influx(guarded, "reader:r"))
    assert "the token is not accepted" in complaint(Influx(guarded, "a-token-of-2.x=="))
    with pytest.raises(AwayError, match="the token is not accepted"):
        Influx(guarded, "admin:wrong").query("SHOW DATABASES")


def test_a_token_goes_as_2x_and_3x_want_it() -> None:
    with serving(Stub()) as web:
        Influx(web.url, "abc==").write(b"m v=1\n")
    [request] = web.answered[204]
    assert request[:3] == ("/write?db=fadelab&precision=ns", "Token abc==", "gzip")


def test_too_much_at_once(guarded: str) -> None:
    influx = Influx(guarded, "admin:se:cret")
    influx.write(b"m v=1\n")
    with pytest.raises(TooLargeError, match="Request Entity Too Large"):
        influx.write(b"".join(b"m,tag=%d v=%d\n" % (n * 7919 % 1000003, n) for n in range(2000)))


def test_what_an_old_password_hides_is_not_shown(guarded: str) -> None:
    for influx in (Influx(guarded, "admin:hidden"), Influx(guarded, "hidden")):
        assert "hidden" not in complaint(influx)


@pytest.mark.parametrize(
    ("url", "label"),
    [
        ("http://127.0.0.1:8086", "fadelab@127.0.0.1:8086"),
        ("https://db.example/", "fadelab@db.example"),
        ("http://db.example:80/influx/", "fadelab@db.example:80_influx"),
        ("http://[::1]:8086", "fadelab@[::1]:8086"),
    ],
)
def test_labels(url: str, label: str) -> None:
    assert Influx(url).label == label


@pytest.mark.parametrize("url", ["", "127.0.0.1:8086", "ftp://a", "http://", "http://a:b:c", "http://a/?db=x"])
def test_urls_that_are_none_or_have_a_password(url: str) -> None:
    with pytest.raises(InfluxError, match="it must look like http://127"):
        Influx(url)
    with pytest.raises(InfluxError, match="token file") as caught:
        Influx("http://user:hidden@127.0.0.1:8086")
    assert "hidden" not in str(caught.value)


def test_retention(influx: Influx) -> None:
    def policies() -> list[list[object]]:
        (series,) = influx.query(f"SHOW RETENTION POLICIES ON {influx.database}")
        return [row[:3] for row in series.values]

    assert policies() == [["autogen", "720h0m0s", "24h0m0s"]]
    influx.create_database(retention_days=7)
    assert policies() == [["autogen", "168h0m0s", "24h0m0s"]]


def test_create_is_refused_by_later_influxdb_versions() -> None:
    refused = pytest.raises(InfluxError, match=r"version v2\.7\.1, where the administrator makes databases")
    with serving(Stub(headers={"X-Influxdb-Version": "v2.7.1"})) as web, refused:
        Influx(web.url).create_database(30)


def test_token_files(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("  admin:secret \n\n")
    assert read_token(path) == "admin:secret"
    for content in (b"", b"\n", b"one\ntwo\n", b"\n\nlate\n"):
        path.write_bytes(content)
        with pytest.raises(InfluxError, match="must hold one line"):
            read_token(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InfluxError, match="not text"):
        read_token(path)
    with pytest.raises(InfluxError, match=r"token file .*none: No such file"):
        read_token(tmp_path / "none")
    with pytest.raises(InfluxError, match="characters that no token has"):
        Influx("http://127.0.0.1:8086", "tökén")
