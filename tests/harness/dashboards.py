"""The dashboard as a process of its own, and what its server answers."""

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.harness.live_runs import finish, start

#: any ports that are free
FREE = ("--port", "0", "--influx-port", "0")


class Dashboard:
    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        assert process.stdout is not None
        self.page = process.stdout.readline().strip()
        parts = urlsplit(self.page)
        self.url = f"{parts.scheme}://{parts.netloc}"
        self.port = parts.port
        self.token = parse_qs(parts.query).get("token", [""])[0]

    def ask(self, path: str, body: Any = None) -> Any:
        """What the server answers; a body is posted, with the token."""
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"}
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self.url + path, data, headers), timeout=60) as answer:
            return json.load(answer)

    def live(self) -> dict[str, Any] | None:
        """The run that goes on and has begun, if there is one."""
        return next((run for run in self.ask("/api/state")["live"] if run["live"] and run["epoch_ns"]), None)


@contextmanager
def running(*args: str | Path, **options: Any) -> Iterator[Dashboard]:
    """A dashboard with these arguments; `options` are Popen's."""
    process = start("dashboard", *args, **options)
    try:
        yield Dashboard(process)
    finally:
        if process.poll() is None:
            process.terminate()
        finish(process)
