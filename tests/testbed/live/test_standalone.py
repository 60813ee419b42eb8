"""Hosts and stations on their own: `fadelab host` over a bridge without loss, `fadelab station` started again."""

import json
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from channel.replay import Outcome
from channel.trace import read_trace
from common.sides import Host
from flowgraphs.air import Air
from flowgraphs.levels import path_gain_db
from flowgraphs.phys import make_phy
from hosts.kernel.namespaces import run_in
from hosts.kernel.network import Network, Role
from hosts.messages import FlowBroken
from linklayer.station_counts import StationCounts, StationReport
from telemetry.influx import Influx, InfluxServer
from telemetry.records import FlowRecord, TcpRecord
from testbed.cli.host import Meter
from testbed.cli.station import tier_of
from testbed.results.summary import link_record
from tests.harness.live_runs import Capture, complaint, fadelab, finish, start
from tests.harness.namespaces import read_back
from tests.harness.radios import air_name, needs_vusrp
from tests.harness.records import recorded
from tests.harness.waiting import PATIENCE_S, wait_for
from tests.hosts.harness import Bridge, needs_network, run_name

RECEIVES = r"\d s  received [1-9][0-9.]* .bit/s\n"
SENDS = r"\d s  sent [1-9][0-9.]* .bit/s, cwnd \d+ kB, RTT \d+ ms\n"


class HostProcess:
    """`fadelab host` in a network's namespace; what it says goes to a file."""

    def __init__(self, network: Network, role: Host, said: Path, *args: str | Path) -> None:
        self._said = said
        peer = network.address("h2" if role == "h1" else "h1")
        with said.open("wb") as out:
            command = partial(start, "host", "--as", role, "--peer", peer, *args, columns="200", stdout=out, stderr=out)
            self.process = run_in(network.namespaces[role], command)

    def wait_for(self, pattern: str) -> None:
        """Wait until it says something of this pattern that it has not said before."""
        before = len(self.said())
        wait_for(lambda: self.process.poll() is not None or re.search(pattern, self.said()[before:]))
        assert self.process.poll() is None, self.said()

    def said(self) -> str:
        return self._said.read_text()

    def end(self, how: signal.Signals) -> int:
        self.process.send_signal(how)
        return self.process.wait(20)


@contextmanager
def bridged() -> Iterator[tuple[Network, ExitStack]]:
    """A network whose radio link loses nothing, and what ends the processes in it."""
    with Network(run_name()) as network, Bridge(network), ExitStack() as stack:
        yield network, stack


def begin(stack: ExitStack, *args: Any) -> HostProcess:
    host = HostProcess(*args)
    stack.callback(host.process.wait)
    stack.callback(host.process.kill)
    return host


@pytest.mark.net
@pytest.mark.patient
@needs_network[1]
def test_hosts_connect_in_any_order_and_restore_settings(tmp_path: Path) -> None:
    with bridged() as (network, stack):
        settings = ("--set", "tcp=reference")
        before = read_back(network.namespaces["h1"])
        h1 = begin(stack, network, "h1", tmp_path / "h1", *settings)
        h1.wait_for("bulk: Connection refused, trying again")
        during = read_back(network.namespaces["h1"])
        assert (during["tcp_sack"], during["cc_algo"], during["initcwnd"]) == ("0", "reno", "1")

        h2 = begin(stack, network, "h2", tmp_path / "h2", *settings)
        h2.wait_for(RECEIVES)
        h1.wait_for(SENDS)
        assert h2.end(signal.SIGKILL) == -signal.SIGKILL
        h1.wait_for("bulk: Connection (refused|reset by peer), trying again")
        h2 = begin(stack, network, "h2", tmp_path / "h2-again", *settings)
        h2.wait_for(RECEIVES)
        h1.wait_for(SENDS)

        assert h1.end(signal.SIGTERM) == 0
        h2.wait_for("received 0 bit/s")
        assert h2.end(signal.SIGINT) == 0
        assert h1.said().startswith("host h1: TCP reference, peer 10.77.2.2; Ctrl-C ends it\n")
        assert read_back(network.namespaces["h1"]) == before


@pytest.mark.net
@pytest.mark.patient
@needs_network[1]
def test_host_with_own_tcp_keeps_the_kernels_settings(tmp_path: Path) -> None:
    def rules() -> str:
        # -N: names of protocols and tables would be those of the machine's /etc
        return run_in(network.namespaces["h1"], partial(subprocess.check_output, ["ip", "-N", "rule"], text=True))

    with bridged() as (network, stack):
        settings = ("--set", "tcp=user:sack", "--set", "tcp_h2=cubic")
        kernels, before = read_back(network.namespaces["h1"]), rules()
        h1 = begin(stack, network, "h1", tmp_path / "h1", *settings)
        h1.wait_for("bulk: refused, trying again")
        assert f"from 10.77.2.2 ipproto ipproto-{socket.IPPROTO_TCP} lookup" in rules()
        h2 = begin(stack, network, "h2", tmp_path / "h2", *settings)
        h2.wait_for(RECEIVES)
        h1.wait_for(SENDS)
        # the agent ends with its keeper
        assert h1.end(signal.SIGKILL) == -signal.SIGKILL
        wait_for(lambda: rules() == before)
        h1 = begin(stack, network, "h1", tmp_path / "h1-again", *settings)
        h2.wait_for(RECEIVES)
        h1.wait_for(SENDS)
        assert h1.end(signal.SIGTERM) == 0
        assert h2.end(signal.SIGINT) == 0
        assert h1.said().startswith("host h1: TCP user:sack, peer 10.77.2.2; Ctrl-C ends it\n")
        assert h2.said().startswith("host h2: TCP cubic, peer 10.77.1.2; Ctrl-C ends it\n")
        assert (read_back(network.namespaces["h1"]), rules()) == (kernels, before)


@pytest.mark.net
@pytest.mark.patient
@needs_network[1]
def test_host_writes_to_a_database_and_ends_with_its_work(tmp_path: Path) -> None:
    path = tmp_path / "both.yaml"
    path.write_text(
        "{name: both, channel: {rate_bps: 2000000, delay_ms: 1}, workloads: ["
        "{kind: bulk, bytes: 300000, direction: up}, {kind: bulk, bytes: 200000, direction: down, start_s: 0.5}]}"
    )
    with bridged() as (network, stack):
        inside = network.namespaces["h1"]
        server = InfluxServer(tmp_path / "influxdb", port=0)
        stack.callback(server.close)
        run_in(inside, server.start)
        h2 = begin(stack, network, "h2", tmp_path / "h2", "--scenario", path, "--out", tmp_path)
        database = ("--influx", server.url, "--run", "both-1")
        h1 = begin(stack, network, "h1", tmp_path / "h1", "--scenario", path, "--out", tmp_path, *database)
        assert (h1.process.wait(30), h2.process.wait(30)) == (0, 0), h1.said() + h2.said()

        found = run_in(inside, partial(Influx(server.url).query, "SELECT last(*) FROM tcp, flow GROUP BY *"))
        last = {series.name: dict(zip(series.columns, series.values[0], strict=True)) for series in found}
        assert {series.tags["flow"] for series in found} == {"bulk1", "bulk2"}
        for series in found:
            expected = {"run": "both-1", "tier": "emulated", "scenario": "both", "host": "h1"}
            assert expected.items() <= series.tags.items()
        assert last["tcp"]["last_bytes_acked"] == 300_000
        assert last["flow"]["last_bytes_received"] == 200_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--peer", "nobody"), "--peer nobody: must be the other host's IPv4 address, as in 10.77.2.2"),
        (("--peer", "10.77.2.2", "--scenario", "none.yaml"), "none.yaml: no such scenario"),
        (
            ("--peer", "10.77.2.2", "--influx", "http://127.0.0.1:9"),
            "InfluxDB at http://127.0.0.1:9: Connection refused",
        ),
        (("--as", "st"), "'st' is not one of 'h1', 'h2'"),
    ],
)
def test_a_host_that_cannot_be_is_one_line(args: tuple[str, ...], message: str) -> None:
    assert message in complaint(fadelab("host", *args))


def refused_in(network: Network, role: Role, *before: str, tcp: str = "cubic") -> str:
    """The last line of `fadelab host` in a namespace where it cannot be; `before` runs it."""
    command = partial(start, "host", "--peer", "10.77.2.2", "--set", f"tcp={tcp}", before=before, columns="200")
    status, out, err = finish(run_in(network.namespaces[role], command))
    assert (status, out) == (2, "")
    return err.splitlines()[-1]


@pytest.mark.net
@pytest.mark.patient
@needs_network[1]
def test_a_host_that_cannot_have_its_tcp_is_one_line() -> None:
    with Network(run_name()) as network:
        # stations have no default route
        assert refused_in(network, "st").startswith("fadelab: the namespace has no default route")
        # as in a container
        read_only = "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys"
        container = ("unshare", "--mount", "sh", "-c", f'{read_only} && exec "$@"', "sh")
        said = refused_in(network, "h1", *container)
        assert re.fullmatch(
            r"fadelab: cannot set net\.ipv4\.tcp_\w+ to [\d ]+: Read-only file system; "
            r"give it to the container as a sysctl",
            said,
        )
        for setting, value, given in (
            ("conf.tcp0.accept_local", 1, "conf.default.accept_local"),
            ("conf.tcp0.forwarding", 1, "ip_forward"),
            ("tcp_early_demux", 0, "tcp_early_demux"),
        ):
            assert refused_in(network, "h1", *container, tcp="user:sack") == (
                f"fadelab: host h1: cannot set net.ipv4.{setting} to {value}: Read-only file system; "
                f"give net.ipv4.{given}={value} to the container as a sysctl"
            )
            path = Path("/proc/sys/net/ipv4", *given.split("."))
            run_in(network.namespaces["h1"], partial(path.write_text, f"{value}\n"))


def test_a_meter_says_what_passed_since_it_spoke_last(capfd: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("testbed.cli.host.time.monotonic", lambda: now[0])
    meter = Meter()
    meter.tick()
    now[0] += 1
    meter.tick()
    for flow, nbytes in (("a", 100_000), ("b", 150_000), ("a", 125_000)):
        meter.report(recorded(FlowRecord, host="h1", flow=flow, bytes_received=nbytes))
    now[0] += 2
    meter.tick()
    meter.report(recorded(TcpRecord, host="h1", flow="c", cwnd_bytes=14480, bytes_acked=125))
    meter.report(FlowBroken(flow="c", error="No route to host"))
    now[0] += 1
    meter.tick()
    assert capfd.readouterr().out.splitlines() == [
        "     1 s  no connection yet",
        "     3 s  received 1.10 Mbit/s",
        "     4 s  sent 1.00 kbit/s, cwnd 14 kB, no RTT yet, received 0 bit/s, c: No route to host, trying again",
    ]


ADDRESSES = {"st": "10.9.0.1", "bas": "10.9.0.2"}


def alone(air: Air, role: str, out: Path) -> "subprocess.Popen[str]":
    """A station in a network namespace of its own, on the air; what it says goes to a file named by its role."""
    device = f"type=vusrp,air={air.name},serial={role}"
    args = ("station", "--as", role, "--device", device, "--address", f"{ADDRESSES[role]}/24", "--out", out)
    with (out / role).open("w") as said:
        station = start(*args, before=("unshare", "--net"), columns="200", stderr=said)
    wait_for(lambda: f"station {role}: {device}, TAP fl0; Ctrl-C ends it\n" in (out / role).read_text())
    return station


def bound(address: str) -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    bound.bind((address, 5000))
    bound.settimeout(0.2)
    return bound


def exchange(sender: socket.socket, receiver: socket.socket) -> None:
    """Send until it is heard: the link may not be up yet."""

    def heard() -> bytes | None:
        sender.sendto(b"hello", to)
        try:
            return receiver.recv(100)
        except TimeoutError:
            return None

    to = receiver.getsockname()
    assert wait_for(heard) == b"hello"


@pytest.mark.light
@pytest.mark.net
@needs_network[1]
@needs_vusrp
def test_stations_carry_packets_between_their_hosts_and_get_a_new_session_at_each_start(tmp_path: Path) -> None:
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare (util-linux)")
    with Air.create(air_name(), seed=1) as air, ExitStack() as stack:
        gain_db = path_gain_db(30, rate_sps=2.5e6, tx_gain_db=30, rms=make_phy("ofdm", rate_sps=2.5e6).rms)
        air.set_link("*", "*", gain_db=gain_db)

        def begin(role: str) -> "subprocess.Popen[str]":
            station = alone(air, role, tmp_path)
            stack.callback(finish, station)
            stack.callback(station.terminate)
            return station

        def end(role: str, how: signal.Signals) -> None:
            stations[role].send_signal(how)
            assert finish(stations[role])[:2] == (0, ""), (tmp_path / role).read_text()

        stations = {role: begin(role) for role in ADDRESSES}
        for start in range(2):
            if start:
                end("st", signal.SIGTERM)
                stations["st"] = begin("st")
            st, bas = (
                run_in(f"/proc/{stations[role].pid}/ns/net", partial(bound, address))
                for role, address in ADDRESSES.items()
            )
            with st, bas:
                exchange(st, bas)
                exchange(bas, st)
                # more than `exchange` sends while it waits: were these numbers used again, it would wait in vain
                bas.settimeout(PATIENCE_S)
                for _ in range(0 if start else 4):
                    for number in range(100):
                        st.sendto(b"more %d" % number, bas.getsockname())
                    while bas.recv(100) != b"more 99":
                        pass
        for role in ADDRESSES:
            end(role, signal.SIGINT)
        assert air.devices() == []
    assert air.name not in Air.names()
    for role, far, starts in (("st", "down", 2), ("bas", "up", 1)):
        folders = list(tmp_path.glob(f"*-station-{role}"))
        assert len(folders) == starts
        for folder in folders:
            final = json.loads((folder / "station.json").read_text())
            assert final["delivered"] > 0
            assert final["radio"]["rx"]["mboard_serial"] == role
            # while ST was away, BAS's kernel may have sent what it sends by itself
            assert role == "bas" or final["residual_losses"] == 0
            assert Outcome.OK in read_trace(folder / f"trace-{far}.parquet").outcome


@pytest.mark.parametrize(
    ("device", "tier"),
    [
        ("type=vusrp,air=lab,serial=V1", "vusrp"),
        ("air=lab, serial=V1", "vusrp"),
        ("type=b200,serial=31A1", "usrp"),
        ("addr=192.168.10.2", "usrp"),
        ("", "usrp"),
    ],
)
def test_the_tier_of_a_station_is_that_of_its_radio(device: str, tier: str) -> None:
    assert tier_of(device) == tier


@pytest.mark.parametrize(("scheme", "residual_losses"), [("slacp", 7), ("none", None)])
def test_station_alone_reports_no_counts_of_the_far_side(scheme: str, residual_losses: int | None) -> None:
    # what this station repaired and missed of the other direction: fec_repairs, unheard
    counts = StationCounts(packets=3, frames=3, residual_losses=7, fec_repairs=4, unheard=9, eln_marks=11)
    report = StationReport(
        time_ns=5, scheme=scheme, established=True, throughput_bps=2e6, goodput_bps=1e6, counts=counts
    )
    record = link_record("up", report)
    assert (record.link, record.frames, record.residual_losses, record.eln_marks) == ("up", 3, residual_losses, 11)
    assert (record.fec_repairs, record.corruption_losses) == (None, None)
