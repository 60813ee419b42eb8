"""Secrets stay where they were put: not in what is printed, in run folders or spools, nor where all see processes."""

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from telemetry.influx import Influx
from tests.harness.dashboards import FREE, running
from tests.harness.influxd import free_port, influxd
from tests.harness.live_runs import Capture, finish, refused
from tests.harness.waiting import wait_for
from tests.hosts.harness import needs_network

pytestmark = pytest.mark.patient

TOKEN = "a-token-that-nobody-guesses"
USER, PASSWORD = "writer", "a-password-that-nobody-guesses"
#: also as in the header of a request
SECRETS = [secret.encode() for secret in (TOKEN, PASSWORD)] + [b64encode(f"{USER}:{PASSWORD}".encode())]
GUARDED = {"INFLUXDB_HTTP_AUTH_ENABLED": "true"}


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """The files with the page's token and the database's password."""
    page, database = tmp_path / "page-token", tmp_path / "database-token"
    page.write_text(f"{TOKEN}\n")
    database.write_text(f"{USER}:{PASSWORD}\n")
    return page, database


def told(octets: bytes) -> list[bytes]:
    return [secret for secret in SECRETS if secret in octets]


def family(pid: int) -> Iterator[int]:
    """The process and all that it has begun."""
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from family(int(child))


def seen(pid: int) -> dict[str, bytes]:
    """What others see of a process and its children: command lines and environments."""
    return {
        str(path): path.read_bytes()
        for each in family(pid)
        for path in (Path(f"/proc/{each}/cmdline"), Path(f"/proc/{each}/environ"))
    }


@pytest.mark.net
@needs_network[1]
def test_a_dashboard_and_its_run_tell_no_secret(tmp_path: Path, files: tuple[Path, Path]) -> None:
    page_token, database_token = files
    store, runs, port = tmp_path / "influxdb", tmp_path / "runs", free_port()
    store.mkdir()
    with influxd(store, port, **GUARDED) as url:
        Influx(url).query("CREATE USER admin WITH PASSWORD 'admin' WITH ALL PRIVILEGES")
        admin = Influx(url, "admin:admin")
        admin.create_database(30)
        admin.query(f"CREATE USER {USER} WITH PASSWORD '{PASSWORD}'; GRANT ALL ON fadelab TO {USER}")
        given = ("--influx", url, "--token-file", database_token, "--page-token-file", page_token, "--out", runs)
        with running(*FREE[:2], *given) as dashboard:
            assert dashboard.token == ""
            dashboard.token = TOKEN
            order = {"scenario": "lossy-link", "tier": "emulated", "schemes": ["slacp"], "seconds": 600, "seed": 5}
            dashboard.ask("/api/start", order)
            run = wait_for(dashboard.live)["name"]
            wait_for(lambda: admin.query("SELECT COUNT(cwnd_bytes) FROM tcp"))
            processes = seen(dashboard.process.pid)
            # the dashboard, two stations and two hosts
            assert len(processes) >= 2 * 5
            assert {name: told(octets) for name, octets in processes.items() if told(octets)} == {}
            admin.query("DROP DATABASE fadelab")
            spool = runs / ".influx-spool"
            wait_for(lambda: [path for path in spool.rglob("*.gz") if path.is_file()])
            dashboard.ask(f"/api/runs/{run}/stop", {})
            wait_for(lambda: dashboard.live() is None)
            dashboard.process.terminate()
            status, out, err = finish(dashboard.process)
    assert status == 0, err
    assert f"the token in {page_token}" in err.replace("\n", " ")
    assert told((out + err).encode()) == []
    kept = {path: path.read_bytes() for path in runs.rglob("*") if path.is_file()}
    assert {path.name for path in kept} >= {"manifest.json", "summary.json", "scenario.yaml", "tcp.parquet"}
    assert {path: told(octets) for path, octets in kept.items() if told(octets)} == {}
    # influxd has them hashed, and its log without
    assert told((store / "log").read_bytes()) == []


def test_a_password_that_is_not_accepted_is_not_repeated(
    tmp_path: Path, files: tuple[Path, Path], capsys: Capture
) -> None:
    with influxd(tmp_path, free_port(), **GUARDED) as url:
        Influx(url).query("CREATE USER admin WITH PASSWORD 'admin' WITH ALL PRIVILEGES")
        given = ("--influx", url, "--token-file", files[1], "--out", tmp_path / "runs")
        line = refused(capsys, "dashboard", *FREE[:2], *given)
    assert "the token is not accepted" in line
    assert told(line.encode()) == []


def test_a_password_in_an_address_is_refused_and_not_repeated(tmp_path: Path, capsys: Capture) -> None:
    given = ("--influx", f"http://{USER}:{PASSWORD}@127.0.0.1:8086", "--out", tmp_path / "runs")
    line = refused(capsys, "dashboard", *FREE[:2], *given)
    assert "put user:password into the token file" in line
    assert told(line.encode()) == []
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
