"""The embedded server: its folder and port, its life and its end."""

import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from telemetry.influx import Influx, InfluxError, InfluxServer
from tests.harness.influxd import answers, count
from tests.harness.processes import saying
from tests.harness.waiting import wait_for

pytestmark = pytest.mark.slow

OWNER = """
import sys
from pathlib import Path
from telemetry.influx import InfluxServer
with InfluxServer(Path(sys.argv[1]), 0) as server:
    print(server.pid, server.url, flush=True)
    sys.stdin.read()
"""


def alive(pid: int) -> bool:
    try:
        # a zombie's ends in ") Z …"
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def listening(pid: int) -> list[str]:
    """Local addresses on which a process accepts TCP connections, as `ss` shows them."""
    shown = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=True).stdout
    return [line.split()[3] for line in shown.splitlines() if f"pid={pid}," in line]


def complaint(server: InfluxServer) -> str:
    with pytest.raises(InfluxError) as caught:
        server.start()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_server_runs_within_its_context(tmp_path: Path) -> None:
    with InfluxServer(tmp_path / 'new \\ "näme"' / "folder", port=0, retention_days=7) as server:
        influx = Influx(server.url)
        influx.check()
        influx.write(b"m v=1\n")
        (policies,) = influx.query("SHOW RETENTION POLICIES ON fadelab")
        assert policies.values == [["autogen", "168h0m0s", "24h0m0s", 1, True]]
        pid = server.pid
        assert pid is not None
    assert not alive(pid)
    assert server.pid is None
    assert not answers(server.url)


def test_only_loopback_is_listened_on(server: InfluxServer) -> None:
    assert server.pid is not None
    addresses = listening(server.pid)
    assert f"127.0.0.1:{server.port}" in addresses
    assert all(address.startswith("127.0.0.1:") for address in addresses)


def test_two_on_one_port(server: InfluxServer, tmp_path: Path) -> None:
    assert complaint(InfluxServer(tmp_path, port=server.port)) == (
        f"port {server.port} of 127.0.0.1: an InfluxDB 1.6.7~rc0 is there already; "
        f"use it (its URL is {server.url}) or stop it, or choose another port"
    )
    Influx(server.url).check()


def test_a_port_that_something_else_has(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        other.settimeout(0)
        line = complaint(InfluxServer(tmp_path, port=port))
    assert (
        line
        == f"port {port} of 127.0.0.1: Address already in use; stop the program that uses it, or choose another port"
    )


def test_no_port(tmp_path: Path) -> None:
    assert complaint(InfluxServer(tmp_path, port=70_000)) == "port 70000: ports end at 65535"


def test_two_on_one_folder(tmp_path: Path) -> None:
    with InfluxServer(tmp_path, port=0) as server:
        assert complaint(InfluxServer(tmp_path, port=0)) == (
            f"InfluxDB's folder {tmp_path} is in use by process {os.getpid()}, whose database is at {server.url}; "
            "use that one, or another folder"
        )
        Influx(server.url).check()
    with InfluxServer(tmp_path, port=0) as server:
        Influx(server.url).check()


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    line = f"InfluxDB's folder {tmp_path / 'file' / 'db'}: Not a directory"
    assert complaint(InfluxServer(tmp_path / "file" / "db", port=0)) == line


def test_no_influxd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    line = complaint(InfluxServer(tmp_path / "db", port=0))
    assert line == "influxd is missing: apt-get install influxdb, or use another server"
    assert not (tmp_path / "db").exists()


def test_data_it_cannot_read(tmp_path: Path) -> None:
    (tmp_path / "meta").mkdir()
    (tmp_path / "meta" / "meta.db").write_bytes(b"not what influxd writes")
    line = complaint(InfluxServer(tmp_path, port=0))
    assert line.startswith("influxd does not start: run: ")
    assert line.endswith(f"(all of it: {tmp_path / 'influxd.log'})")


def test_settings_of_the_systems_influxdb_play_no_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFLUXDB_DATA_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("INFLUXDB_HTTP_BIND_ADDRESS", ":1")
    with InfluxServer(tmp_path / "db", port=0) as server:
        Influx(server.url).check()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["db"]


def test_it_is_started_again_when_killed(tmp_path: Path) -> None:
    with InfluxServer(tmp_path, port=0) as server:
        influx = Influx(server.url)
        influx.write(b"m v=1\n")
        first = server.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: server.pid not in (None, first) and answers(server.url))
        assert server.restarts == 1
        assert count(influx, "m", "v") == 1


def test_it_dies_with_the_process_that_owns_it(tmp_path: Path) -> None:
    with saying(OWNER, tmp_path) as (_, said):
        pid, url = said.split()
        assert alive(int(pid))
        assert answers(url)
    wait_for(lambda: not alive(int(pid)))
    with InfluxServer(tmp_path, port=0) as server:
        Influx(server.url).check()


def test_ctrl_c_does_not_reach_it(server: InfluxServer) -> None:
    """What a terminal sends goes to a process group."""
    assert server.pid is not None
    assert os.getpgid(server.pid) != os.getpgid(0)


def test_closing_one_that_is_down(tmp_path: Path) -> None:
    with InfluxServer(tmp_path, port=0) as server:
        (tmp_path / "meta" / "meta.db").write_bytes(b"damaged")
        pid = server.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: server.restarts >= 2)
    assert server.pid is None


def test_one_that_does_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("telemetry.influx.server._STOP_S", 0.1)
    with InfluxServer(tmp_path, port=0) as server:
        pid = server.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
    assert not alive(pid)
