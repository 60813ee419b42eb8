"""What `host` does, behind the command line: one host on its own, a line of goodput every second."""

import ipaddress
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from common.sides import Host
from testbed.cli.run import DEMO_SCENARIOS
from testbed.errors import FadelabError
from testbed.live.standalone import run_host
from testbed.observers import database_or_none, open_influx
from testbed.results.show import rate
from testbed.scenario.file import load

_HOSTS: Mapping[str, Host] = {"h1": "h1", "h2": "h2"}


def host(
    role: str,
    peer: str,
    path: Path | None,
    settings: Sequence[str],
    *,
    seconds: float | None,
    out: Path,
    influx: tuple[str | None, Path | None],
    run: str | None,
) -> None:
    """Be one host until Ctrl-C; `influx` is a URL and a token's file."""
    try:
        ipaddress.IPv4Address(peer)
    except ValueError:
        raise FadelabError(f"--peer {peer}: must be the other host's IPv4 address, as in 10.77.2.2") from None
    scenario = load(path or DEMO_SCENARIOS["vusrp"], settings)
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    name = run or f"{datetime.now(UTC):%Y%m%d-%H%M%S}-host-{role}"

    def complain(line: str) -> None:
        console.print(line, markup=False)

    # the sender lists the run, for all four programs that make it
    sink = database_or_none(open_influx(*influx), scenario, name, out, complain, lists=_HOSTS[role] == "h1")
    console.print(f"host {role}: TCP {scenario.tcp_of(_HOSTS[role])}, peer {peer}; Ctrl-C ends it")
    meter = Meter()
    run_host(scenario, _HOSTS[role], peer, seconds=seconds, sink=sink, report=meter.report, tick=meter.tick)


class Meter:
    """Prints once a second what went through in that second, all flows together."""

    def __init__(self) -> None:
        self._began_at = self._told_at = time.monotonic()
        #: payload bytes by flow: acknowledged of what we send, received
        self._sent: dict[str, int] = {}
        self._received: dict[str, int] = {}
        self._before = (0, 0)
        self._latest_tcp: Mapping[str, Any] = {}
        self._broken = ""

    def report(self, kind: str, body: Mapping[str, Any]) -> None:
        """Take what the host's agent says."""
        if kind == "tcp":
            self._sent[body["flow"]] = body["bytes_acked"]
            self._latest_tcp = body
        elif kind == "flow":
            self._received[body["flow"]] = body["bytes_received"]
        elif kind == "broken":
            self._broken = f"{body['flow']}: {body['error']}"

    def tick(self) -> None:
        """Print a line when it is time."""
        now = time.monotonic()
        elapsed_s = now - self._told_at
        if elapsed_s < 1:
            return
        sent, received = sum(self._sent.values()), sum(self._received.values())
        notes = []
        if self._sent:
            cwnd_bytes, srtt_ms = self._latest_tcp["cwnd_bytes"], self._latest_tcp["srtt_ms"]
            notes.append(f"sent {rate((sent - self._before[0]) * 8 / elapsed_s)}, cwnd {cwnd_bytes / 1e3:.0f} kB")
            notes.append("no RTT yet" if srtt_ms is None else f"RTT {srtt_ms:.0f} ms")
        if self._received:
            notes.append(f"received {rate((received - self._before[1]) * 8 / elapsed_s)}")
        if self._broken:
            notes.append(f"{self._broken}, trying again")
        print(f"{now - self._began_at:6.0f} s  {', '.join(notes) or 'no connection yet'}", flush=True)
        self._told_at, self._before, self._broken = now, (sent, received), ""
