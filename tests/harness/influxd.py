"""influxd as somebody else has set it up."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from telemetry.influx import Influx, InfluxError
from tests.harness.waiting import wait_for


@contextmanager
def influxd(folder: Path, port: int, **settings: str) -> Iterator[str]:
    """A server on loopback with its data in `folder`; `settings` are influxd's variables. Yields its URL.

    It ends by SIGKILL, and can be started again on the same folder.
    """
    process = started(folder, port, **settings)
    try:
        yield url_at(port)
    finally:
        process.kill()
        process.wait()


def url_at(port: int) -> str:
    return f"http://127.0.0.1:{port}"


def started(folder: Path, port: int, **settings: str) -> "subprocess.Popen[bytes]":
    """Start such a server and return it once it answers. It does not outlive this process."""
    environment = {
        "INFLUXDB_REPORTING_DISABLED": "true",
        "INFLUXDB_BIND_ADDRESS": "127.0.0.1:0",
        "INFLUXDB_META_DIR": str(folder / "meta"),
        "INFLUXDB_DATA_DIR": str(folder / "data"),
        "INFLUXDB_DATA_WAL_DIR": str(folder / "wal"),
        "INFLUXDB_HTTP_BIND_ADDRESS": f"127.0.0.1:{port}",
        "INFLUXDB_MONITOR_STORE_ENABLED": "false",
        **settings,
    }
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "influxd", "-config", os.devnull],
            env={**os.environ, **environment},
            stdout=log,
            stderr=log,
        )
    try:
        wait_for(lambda: answers(url_at(port)))
    except BaseException:
        process.kill()
        process.wait()
        raise
    return process


def answers(url: str) -> bool:
    try:
        Influx(url).version()
    except InfluxError:
        return False
    return True


_held: list[socket.socket] = []


def free_port() -> int:
    """A port at which nobody listens. It stays this process's: the kernel gives it to none that asks for any port.

    As both set SO_REUSEADDR, a server that asks for this very port has it.
    """
    probe = socket.socket()
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    probe.bind(("127.0.0.1", 0))
    _held.append(probe)
    return int(probe.getsockname()[1])


def count(influx: Influx, measurement: str, field: str) -> int:
    found = influx.query(f'SELECT count("{field}") FROM "{measurement}"')
    return int(found[0].values[0][1]) if found else 0
