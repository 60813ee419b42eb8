"""Namespaces, TAPs and profiles in the kernel."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from hosts.errors import HostError
from hosts.kernel import profiles as kernel_profiles
from hosts.kernel.bpf.eln import Eln, needs_eln
from hosts.kernel.namespaces import NETNS_DIR, run_in
from hosts.kernel.network import Network
from hosts.kernel.ownership import RUN_DIR, Registry
from hosts.kernel.profiles import PROFILES
from hosts.kernel.tap import Tap
from tests.harness.namespaces import interface_counters, read_back
from tests.hosts.harness import ROOT, inside, needs_network, program, run_name

pytestmark = [*needs_network, pytest.mark.patient]


def traces(run: str) -> list[str]:
    """Whatever still carries a run's name."""
    named = [path.name for path in NETNS_DIR.iterdir() if f"-{run}-" in path.name] if NETNS_DIR.exists() else []
    return named + [path.name for path in RUN_DIR.glob(f"{run}.*")]


def test_up_and_down_leaves_nothing() -> None:
    network = Network(run_name())
    network.up()
    assert len(traces(network.run)) == 5
    network.close()
    network.close()
    assert traces(network.run) == []


def test_a_failure_half_way_leaves_nothing() -> None:
    network = Network(run_name(), mtu=100_000)
    with pytest.raises(HostError, match="cannot set up network"):
        network.up()
    assert traces(network.run) == []


#: Ctrl-C in the hooks of the forks by which namespaces are made, where exceptions are lost
INTERRUPTED_IN_FORK = """
import os, signal, sys
from hosts.kernel.network import Network

os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIGINT))
network = Network(sys.argv[1])
try:
    network.up()
except KeyboardInterrupt:
    sys.exit(5)
finally:
    network.close()
"""


def test_ctrl_c_while_a_process_forks_is_not_lost() -> None:
    run = run_name()
    ended = subprocess.run([sys.executable, "-P", "-c", INTERRUPTED_IN_FORK, run], capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (5, b"")
    assert traces(run) == []


def test_a_name_is_taken_once(net: Network) -> None:
    with pytest.raises(HostError, match="exists already"):
        Network(net.run).up()
    assert len(traces(net.run)) == 5


def test_the_caller_stays_in_its_own_namespace(net: Network) -> None:
    mine = Path("/proc/thread-self/ns/net")
    here = mine.stat().st_ino
    there = run_in(net.namespaces["h1"], lambda: mine.stat().st_ino)
    assert there == (NETNS_DIR / net.namespaces["h1"]).stat().st_ino
    assert mine.stat().st_ino == here != there


SCRIPT = """
import subprocess, sys
from hosts.kernel.network import Network
network = Network(sys.argv[1])
network.up()
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
network.add_child(child.pid)
print(child.pid, flush=True)
sys.stdin.read()
"""


def test_a_killed_run_is_found_and_cleaned_and_a_live_one_left_alone(net: Network) -> None:
    run = run_name()
    with program(SCRIPT, run) as (owner, child):
        assert run not in [leftover.run for leftover in Registry().leftovers()]
        assert Registry().clean(run) == []
        assert len(traces(run)) == 5
        owner.send_signal(signal.SIGKILL)
    try:
        (found,) = [leftover for leftover in Registry().leftovers() if leftover.run == run]
        assert len(found.namespaces) == 4
        assert [process.pid for process in found.processes] == [int(child)]
    finally:
        cleaned = Registry().clean(run)
    assert cleaned == [found]
    assert not found.processes[0].alive()
    assert traces(run) == []
    assert len(traces(net.run)) == 5


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_is_applied_and_read_back(net: Network, name: str) -> None:
    with closing(Eln(ROOT / ".build" / "bpf")) as eln:
        if needs_eln(PROFILES[name]):
            eln.load(net.run)
        profile = eln.of(PROFILES[name])
        kernel_profiles.apply(net.namespaces["h1"], profile)
        values = read_back(net.namespaces["h1"])
    assert profile.sysctls.items() <= values.items()
    assert values["cc_algo"] == profile.congestion_control
    assert values.get("initcwnd") == (None if profile.initcwnd is None else str(profile.initcwnd))
    assert values.get("quickack") == ("1" if profile.quickack else None)


def test_a_receive_buffer_is_applied_and_goes_with_the_next_profile(net: Network) -> None:
    kernel_profiles.apply(net.namespaces["h1"], kernel_profiles.kernel_profile("reno", 32_768))
    values = read_back(net.namespaces["h1"])
    assert (values["tcp_rmem"], values["tcp_moderate_rcvbuf"]) == ("4096 65536 65536", "0")
    kernel_profiles.apply(net.namespaces["h1"], kernel_profiles.kernel_profile("reno"))
    assert read_back(net.namespaces["h1"])["tcp_rmem"].endswith(" 16777216")


def test_what_the_kernel_lacks_is_named(net: Network) -> None:
    cubic = PROFILES["cubic"]
    with pytest.raises(HostError, match=r"no congestion control nonesuch \(it has .*reno.*\)"):
        kernel_profiles.apply(net.namespaces["h1"], replace(cubic, congestion_control="nonesuch"))
    with pytest.raises(HostError, match=r"no sysctl net.ipv4.tcp_warp; cubic needs it"):
        kernel_profiles.apply(net.namespaces["h1"], replace(cubic, sysctls=MappingProxyType({"tcp_warp": "9"})))


@pytest.fixture
def quiet() -> Iterator[Network]:
    """A network on which nobody else has anything to say."""
    with Network(run_name(), mtu=1450) as network:
        yield network


def test_a_burst_waits_in_the_tap_in_order(quiet: Network) -> None:
    with run_in(quiet.namespaces["st"], lambda: Tap("fl0")) as tap:
        assert tap.mtu == 1450
        sender = run_in(quiet.namespaces["st"], lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        with sender:
            for number in range(900):
                sender.sendto(number.to_bytes(2) + bytes(1400), (str(quiet.addresses.bas_radio.ip), 9))
        packets = list(iter(tap.read, None))
        assert [int.from_bytes(packet[28:30]) for packet in packets] == list(range(900))
        assert tap.non_ip_dropped == 0


def test_the_tap_takes_ip_only(quiet: Network) -> None:
    with run_in(quiet.namespaces["st"], lambda: Tap("fl0")) as tap:
        raw = run_in(quiet.namespaces["st"], lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
        with raw:
            raw.bind(("fl0", 0))
            raw.send(bytes(12) + b"\x08\x06" + bytes(46))
        assert tap.read() is None
        assert tap.non_ip_dropped == 1
        assert not tap.write(b"")
        assert not tap.write(b"\x00nonsense")
        assert tap.refused == 2
        before = interface_counters(quiet.namespaces["st"])["fl0"]["rx_packets"]
        assert tap.write(bytes([0x45]) + bytes(27))
        assert interface_counters(quiet.namespaces["st"])["fl0"]["rx_packets"] == before + 1


def test_a_tap_is_opened_once(quiet: Network) -> None:
    with (
        run_in(quiet.namespaces["st"], lambda: Tap("fl0")) as tap,
        pytest.raises(HostError, match="TAP fl0 is already open"),
    ):
        run_in(quiet.namespaces["st"], lambda: Tap("fl0"))
    tap.close()


def test_tap_that_is_removed_is_named(quiet: Network) -> None:
    with run_in(quiet.namespaces["st"], lambda: Tap("fl0")) as tap:
        inside(quiet, "st", "ip", "link", "delete", "fl0")
        for act in (tap.read, lambda: tap.write(bytes([0x45]) + bytes(27))):
            with pytest.raises(HostError, match="TAP fl0 was removed while it was in use"):
                act()
