"""`host`: one host behind a station, as a program of its own."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from common.sides import Host
from testbed.cli import options
from testbed.errors import FadelabError

if TYPE_CHECKING:
    from hosts.messages import FromProcess
    from telemetry.records import TcpRecord


@click.command()
@click.option(
    "--as", "role", type=click.Choice(["h1", "h2"]), default="h1", show_default=True, help="Which host to be."
)
@click.option("--peer", required=True, metavar="ADDRESS", help="The other host.")
@click.option("--scenario", type=options.PATH, help="Workloads and TCP; default: the demo's.")
@options.settings("Change a value of the scenario.")
@options.seconds
@options.out
@options.influx
@options.run_name
def host(
    role: Host,
    peer: str,
    scenario: Path | None,
    settings: tuple[str, ...],
    seconds: float | None,
    out: Path,
    influx: str | None,
    token_file: Path | None,
    run_name: str | None,
) -> None:
    """Be one host behind a station: send and receive a scenario's workloads, with its TCP.

    Start the other host, with the other --as, behind the other station. Workloads limited by time alone go on until
    the host ends. While it runs, the TCP settings of this network namespace are the scenario's.
    """
    import ipaddress

    from rich.console import Console

    from testbed.live.standalone import run_host
    from testbed.observers import database_or_none, open_influx
    from testbed.results.store import start_stamp
    from testbed.scenario.file import load
    from testbed.scenario.resolver import resolve

    try:
        ipaddress.IPv4Address(peer)
    except ValueError:
        raise FadelabError(f"--peer {peer}: must be the other host's IPv4 address, as in 10.77.2.2") from None
    loaded = load(scenario or options.DEMO_SCENARIOS[options.DEMO_TIER], settings)
    options.require_one_link(loaded)
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    name = run_name or f"{start_stamp()}-host-{role}"

    def complain(line: str) -> None:
        console.print(line, markup=False)

    # the sender lists the run, for all four programs that make it
    sink = database_or_none(open_influx(influx, token_file), loaded, name, out, complain, lists=role == "h1")
    console.print(f"host {role}: TCP {loaded.tcp_of(role)}, peer {peer}; Ctrl-C ends it")
    meter = Meter()
    run_host(resolve(loaded), role, peer, seconds=seconds, sink=sink, report=meter.report, tick=meter.tick)


COMMAND = host


class Meter:
    """Prints once a second how much all flows together carried in that second."""

    def __init__(self) -> None:
        self._began_at = self._told_at = time.monotonic()
        #: payload bytes by flow: acknowledged of what we send, received
        self._sent: dict[str, int] = {}
        self._received: dict[str, int] = {}
        self._before = (0, 0)
        self._latest_tcp: TcpRecord | None = None
        self._broken = ""

    def report(self, message: "FromProcess") -> None:
        """Take a message of the host's agent."""
        from hosts.messages import FlowBroken
        from telemetry.records import FlowRecord, TcpRecord

        match message:
            case TcpRecord():
                self._sent[message.flow] = message.bytes_acked
                self._latest_tcp = message
            case FlowRecord():
                self._received[message.flow] = message.bytes_received
            case FlowBroken():
                self._broken = f"{message.flow}: {message.error}"

    def tick(self) -> None:
        """Print a line when it is time."""
        now = time.monotonic()
        elapsed_s = now - self._told_at
        if elapsed_s < 1:
            return
        from testbed.results.show import rate

        sent, received = sum(self._sent.values()), sum(self._received.values())
        notes = []
        if (tcp := self._latest_tcp) is not None:
            notes.append(f"sent {rate((sent - self._before[0]) * 8 / elapsed_s)}, cwnd {tcp.cwnd_bytes / 1e3:.0f} kB")
            notes.append("no RTT yet" if tcp.srtt_ms is None else f"RTT {tcp.srtt_ms:.0f} ms")
        if self._received:
            notes.append(f"received {rate((received - self._before[1]) * 8 / elapsed_s)}")
        if self._broken:
            notes.append(f"{self._broken}, trying again")
        print(f"{now - self._began_at:6.0f} s  {', '.join(notes) or 'no connection yet'}", flush=True)
        self._told_at, self._before, self._broken = now, (sent, received), ""
