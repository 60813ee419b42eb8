"""Debian's influxd as a supervised child, on loopback, with a data folder of its own.

Read first: influxd's configuration reference (1.6); setpriv(1), flock(2).

Rules kept
- The server listens on 127.0.0.1 only and writes only to its folder; it does not use the system's influxdb service or
  settings.
- The server lives as long as this process: it is restarted when it dies or hangs, and the kernel kills it when this
  process is killed. Ctrl-C on the terminal does not reach it, so remaining records can still be written.
- One server per folder.

Left out: users and TLS. Every local user may read and write.
"""

import fcntl
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Self

import urllib3

from common.closing import Closing
from telemetry.influx.client import Influx
from telemetry.influx.errors import AwayError, InfluxError

_START_S = 30.0
_STOP_S = 10.0
_FIRST_RETRY_S = 0.1
_LAST_RETRY_S = 5.0
_POLL_S = 0.05
#: interval of checks of the running server, and free disk space necessary for a restart
_LOOK_S = 1.0
_ROOM = 1 << 20

_CONFIG = """\
reporting-enabled = false
bind-address = "127.0.0.1:0"

[meta]
dir = "{folder}/meta"
logging-enabled = false

[data]
dir = "{folder}/data"
wal-dir = "{folder}/wal"
query-log-enabled = false
# a laptop has other things to do with its memory and its cores
cache-max-memory-size = "256m"
max-concurrent-compactions = 1
# every run has series of its own: the other index has all of them in memory
index-version = "tsi1"

[http]
bind-address = "127.0.0.1:{port}"
log-enabled = false

[monitor]
store-enabled = false

[continuous_queries]
enabled = false

[logging]
level = "warn"
"""


class InfluxServer(Closing):
    """An InfluxDB server as a context manager; its database exists when the block begins.

    `port` 0: a free port. Records are kept for `retention_days`. Raises InfluxError when it cannot start.
    """

    def __init__(self, folder: Path, port: int = 8086, *, retention_days: int = 30) -> None:
        self.folder = folder.absolute()
        self.port = port
        self._retention_days = retention_days
        #: number of restarts since `start`
        self.restarts = 0
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._supervisor: threading.Thread | None = None
        self._owned = -1

    @property
    def url(self) -> str:
        """The server's URL."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int | None:
        """The process id of influxd, or None."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def start(self) -> None:
        """Start it and wait until it answers."""
        if shutil.which("influxd") is None:
            raise InfluxError("influxd is missing: apt-get install influxdb, or use another server")
        try:
            self._own_folder()
            self.port = _free_port(self.port)
            (self.folder / "owner.json").write_text(json.dumps({"pid": os.getpid(), "url": self.url}))
            (self.folder / "influxd.conf").write_text(self._config())
            self._log.write_bytes(b"")
        except OSError as error:
            self._disown_folder()
            raise InfluxError(f"InfluxDB's folder {self.folder}: {error.strerror or error}") from None
        except InfluxError:
            self._disown_folder()
            raise
        self._stopping.clear()
        self.restarts = 0
        # the parent-death signal refers to the parent thread, so the thread that starts influxd must live on
        self._supervisor = threading.Thread(target=self._supervise, name="influxd", daemon=True)
        self._supervisor.start()
        try:
            self._wait_until_ready()
            Influx(self.url).create_database(self._retention_days)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop the server; the data stay."""
        self._stopping.set()
        with self._lock:
            process = self._process
        if process is not None:
            process.terminate()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
        if self._supervisor is not None:
            self._supervisor.join()
            self._supervisor = None
        self._disown_folder()

    def __enter__(self) -> Self:
        self.start()
        return self

    def _config(self) -> str:
        # a string of JSON is one of TOML
        folder = json.dumps(str(self.folder), ensure_ascii=False)[1:-1]
        return _CONFIG.format(folder=folder, port=self.port)

    @property
    def _log(self) -> Path:
        return self.folder / "influxd.log"

    def _own_folder(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._owned = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(self._owned, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InfluxError(
                f"InfluxDB's folder {self.folder} is in use{self._by_whom()}; use that one, or another folder"
            ) from None

    def _by_whom(self) -> str:
        try:
            owner = json.loads((self.folder / "owner.json").read_text())
            return f" by process {owner['pid']}, whose database is at {owner['url']}"
        except (OSError, ValueError, KeyError, TypeError):
            return ""

    def _disown_folder(self) -> None:
        if self._owned >= 0:
            os.close(self._owned)
            self._owned = -1

    def _supervise(self) -> None:
        pause_s = _FIRST_RETRY_S
        while True:
            with self._lock:
                if self._stopping.is_set():
                    return
                self._process = process = self._spawn()
            started_at = time.monotonic()
            self._watch(process)
            if time.monotonic() - started_at > _START_S:
                pause_s = _FIRST_RETRY_S
            if self._stopping.wait(pause_s):
                return
            pause_s = min(2 * pause_s, _LAST_RETRY_S)
            self.restarts += 1

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """Wait for the server's end; end it when it hangs.

        After a full disk, influxd 1.6 fails every write until it is restarted, even with free space.
        """
        failures = 0
        while True:
            try:
                process.wait(_LOOK_S)
                return
            except subprocess.TimeoutExpired:
                before, failures = failures, self._failed_writes(failures)
            if failures > before and self._disk_has_room():
                process.kill()

    def _failed_writes(self, otherwise: int) -> int:
        """Return the number of failed disk writes, or `otherwise` when unknown."""
        try:
            answer = urllib3.request("GET", f"{self.url}/debug/vars", timeout=_LOOK_S, retries=False)
            wals = [group["values"] for name, group in answer.json().items() if name.startswith("tsm1_wal")]
            return sum(wal["writeErr"] for wal in wals)
        except (urllib3.exceptions.HTTPError, ValueError, KeyError, TypeError):
            return otherwise

    def _disk_has_room(self) -> bool:
        try:
            with tempfile.TemporaryFile(dir=self.folder) as probe:
                probe.write(bytes(_ROOM))
                probe.flush()
                os.fsync(probe.fileno())
            return True
        except OSError:
            return False

    def _spawn(self) -> subprocess.Popen[bytes]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("INFLUXDB_")}
        with self._log.open("ab") as log:
            return subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "influxd", "-config", str(self.folder / "influxd.conf")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                process_group=0,
            )

    def _wait_until_ready(self) -> None:
        influx = Influx(self.url)
        give_up_at = time.monotonic() + _START_S
        while True:
            try:
                influx.version()
                return
            except AwayError as error:
                if self.restarts:
                    raise InfluxError(
                        f"influxd does not start: {self._last_log_line()} (all of it: {self._log})"
                    ) from None
                if time.monotonic() > give_up_at:
                    raise InfluxError(
                        f"influxd does not answer in {_START_S:.0f} s: {error} (see {self._log})"
                    ) from None
            time.sleep(_POLL_S)

    def _last_log_line(self) -> str:
        lines = self._log.read_text(errors="replace").split("\n")
        return next((" ".join(line.split())[:300] for line in reversed(lines) if line.strip()), "it says nothing")


def _free_port(port: int) -> int:
    """Return `port`, or a free one for 0. Raises InfluxError when it is taken."""
    with socket.socket() as probe:
        # as in influxd: ended connections do not block the port
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            return int(probe.getsockname()[1])
        except OverflowError:
            raise InfluxError(f"port {port}: ports end at 65535") from None
        except OSError as error:
            reason = error.strerror
    url = f"http://127.0.0.1:{port}"
    try:
        version = Influx(url, timeout_s=1).version()
        reason = f"an InfluxDB {version} is there already; use it (its URL is {url}) or stop it"
    except InfluxError:
        reason = f"{reason}; stop the program that uses it"
    raise InfluxError(f"port {port} of 127.0.0.1: {reason}, or choose another port")
