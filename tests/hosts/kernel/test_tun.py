"""The TUN of our TCP: what the peer's TCP does to it, what the kernel keeps, and what is left behind."""

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from ipaddress import IPv4Address
from pathlib import Path
from select import select

import pytest

from hosts.errors import HostError
from hosts.kernel.namespaces import run_in
from hosts.kernel.network import Network
from hosts.kernel.tun import TUN_NAME, Tun
from tcpip.segment import ACK, PSH, RST, SYN, Flow, Segment
from tcpip.wire import emit, parse
from tests.harness.namespaces import tcp_counters
from tests.harness.octets import with_checksums
from tests.harness.waiting import PATIENCE_S, wait_for
from tests.hosts.harness import Bridge, inside, needs_network, socket_at

pytestmark = [*needs_network, pytest.mark.patient]


@contextmanager
def tun_at_h1(net: Network) -> Iterator[Tun]:
    tun = run_in(net.namespaces["h1"], lambda: Tun(net.address("h2")))
    try:
        yield tun
    finally:
        run_in(net.namespaces["h1"], tun.close)


def next_packet(tun: Tun) -> bytes:
    assert select([tun], [], [], PATIENCE_S)[0], "no packet has come"
    packet = tun.read()
    assert packet is not None
    return packet


def routing(net: Network) -> str:
    """Rules, routes, interfaces and settings of IPv4 at h1."""
    shown = [inside(net, "h1", "ip", *what.split()) for what in ("rule", "route show table all", "-br link")]
    ipv4 = Path("/proc/sys/net/ipv4")
    values = run_in(
        net.namespaces["h1"],
        lambda: {
            str(path): path.read_text()
            for path in (*ipv4.glob("conf/*/*"), ipv4 / "tcp_early_demux")
            if path.parent.name != TUN_NAME
        },
    )
    return "".join(shown) + str(values)


def connecting(net: Network, port: int) -> socket.socket:
    """A socket at h2 that has sent a SYN to h1."""
    made = socket_at(net, "h2")
    made.setblocking(False)
    made.connect_ex((net.address("h1"), port))
    return made


def test_the_peers_tcp_comes_to_us_and_the_kernel_says_nothing(net: Network) -> None:
    # a kernel socket of the host's own listens on the same port: it must not hear of it either
    with (
        Bridge(net) as bridge,
        run_in(net.namespaces["h1"], lambda: socket.create_server(("0.0.0.0", 5001))),
        tun_at_h1(net) as tun,
    ):
        assert (tun.address, tun.mtu) == (net.address("h1"), 1450)
        before = tcp_counters(net.namespaces["h1"])
        for port in (5001, 5002):
            with connecting(net, port):
                syn = parse(next_packet(tun))
                assert (syn.flags & (SYN | ACK), syn.flow.destination_port) == (SYN, port)
                # an answer that belongs to no connection at h2 is answered with RST, which again is ours alone
                lost = Segment(syn.flow.reversed(), 77, syn.seq + 100, ACK | PSH, 1000, 3, b"abc")
                assert tun.write(emit(lost))
                while not (answer := parse(next_packet(tun))).flags & RST:
                    pass
                assert answer.seq == syn.seq + 100
        after = tcp_counters(net.namespaces["h1"])
        assert {name: after[name] for name in ("InSegs", "OutSegs", "OutRsts")} == {
            name: before[name] for name in ("InSegs", "OutSegs", "OutRsts")
        }
        assert not any(packet[9] == 6 and parse(packet).flags & RST for way, packet in bridge.passed if way == "up")


@pytest.mark.parametrize("left", ["open", "in TIME-WAIT"])
def test_a_port_that_the_kernel_has_used_is_as_good_as_any(net: Network, left: str) -> None:
    # for a minute after a connection, or as long as it lasts, the kernel has a socket with these addresses and ports
    with (
        Bridge(net),
        run_in(net.namespaces["h2"], lambda: socket.create_server((net.address("h2"), 5007))) as server,
        socket_at(net, "h1") as kernels,
    ):
        kernels.connect((net.address("h2"), 5007))
        accepted, (address, port) = server.accept()
        accepted.settimeout(PATIENCE_S)
        for each in (kernels, accepted):
            # ends with a RST, so that no FIN is sent again in a later test
            each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        flow = Flow(int(IPv4Address(address)), port, int(IPv4Address(net.address("h2"))), 5007)
        if left == "in TIME-WAIT":
            kernels.shutdown(socket.SHUT_WR)
            assert accepted.recv(1) == b""
            accepted.shutdown(socket.SHUT_WR)
            assert kernels.recv(1) == b""
            wait_for(lambda: "TIME-WAIT" in inside(net, "h1", "ss", "-tan", "sport", f"= :{port}"))
        with accepted, tun_at_h1(net) as tun:
            tun.write(emit(Segment(flow, 1, 0, SYN, 1000)))
            answer = parse(next_packet(tun))
            assert (answer.flow, answer.flags & ACK) == (flow.reversed(), ACK)


def test_what_is_not_the_peers_tcp_stays_with_the_kernel(net: Network) -> None:
    h1, h2 = net.address("h1"), net.address("h2")
    with (
        Bridge(net),
        tun_at_h1(net) as tun,
        socket_at(net, "h1", socket.SOCK_DGRAM) as ours,
        socket_at(net, "h2", socket.SOCK_DGRAM) as theirs,
    ):
        ours.bind((h1, 5003))
        theirs.bind((h2, 5003))
        ours.sendto(b"there", (h2, 5003))
        assert theirs.recv(100) == b"there"
        theirs.sendto(b"back", (h1, 5003))
        assert ours.recv(100) == b"back"
        with socket_at(net, "h2", socket.SOCK_RAW, socket.IPPROTO_ICMP) as echo:
            # echo request, its checksum, identifier 0, number 0; type 0 is the reply
            echo.sendto(b"\x08\x00\xf7\xff\x00\x00\x00\x00", (h1, 0))
            assert echo.recv(100)[20] == 0
        # and the host's TCP with itself
        with run_in(net.namespaces["h1"], lambda: socket.create_server((h1, 5004))) as server:
            run_in(net.namespaces["h1"], lambda: socket.create_connection((h1, 5004), PATIENCE_S)).close()
            server.accept()[0].close()
        assert tun.read() is None


@pytest.mark.parametrize("traffic_class", [0, 1, 2, 3, 0xB8, 0xBB])
def test_dscp_and_ecn_cross_unchanged_both_ways(net: Network, traffic_class: int) -> None:
    def packet(flow: Flow, number: int) -> bytes:
        octets = bytearray(emit(Segment(flow, 1, 2, ACK | PSH, 3, 5, b"hello", number=number)))
        octets[1] = traffic_class
        return with_checksums(bytes(octets))

    flow = Flow(int(IPv4Address(net.address("h1"))), 5005, int(IPv4Address(net.address("h2"))), 5005)
    with (
        Bridge(net) as bridge,
        tun_at_h1(net) as tun,
        socket_at(net, "h2", socket.SOCK_RAW, socket.IPPROTO_RAW) as theirs,
    ):
        down = packet(flow.reversed(), 7)
        theirs.sendto(down, (net.address("h1"), 0))
        came = next_packet(tun)
        assert (came[:8], came[12:]) == (down[:8], down[12:])
        up = packet(flow, 8)
        assert tun.write(up)
        # h2 has no such connection
        assert parse(next_packet(tun)).flags & RST
        [crossed] = [octets for way, octets in bridge.passed if way == "up"]
        assert (crossed[:8], crossed[12:]) == (up[:8], up[12:])


def test_everything_is_taken_back(net: Network) -> None:
    before = routing(net)
    with tun_at_h1(net) as tun:
        assert routing(net) != before
        run_in(net.namespaces["h1"], tun.close)
        assert routing(net) == before
    assert routing(net) == before


def test_what_a_killed_process_leaves_does_nothing_and_is_taken_over(net: Network) -> None:
    before = routing(net)

    def kill() -> None:
        tun = Tun(net.address("h2"))
        os.close(tun.fileno())

    run_in(net.namespaces["h1"], kill)
    # the kernel's TCP is back, and answers
    with Bridge(net), pytest.raises(ConnectionRefusedError):
        run_in(net.namespaces["h2"], lambda: socket.create_connection((net.address("h1"), 5006), PATIENCE_S))
    with Bridge(net), tun_at_h1(net) as tun, connecting(net, 5006):
        assert parse(next_packet(tun)).flags & SYN
    # what remains of the killed one is a host that forwards, and that looks for sockets after the route
    now = routing(net)
    for setting, value in (("forwarding", 0), ("tcp_early_demux", 1)):
        changed = f"{setting}': '{1 - value}"
        assert changed in now
        now = now.replace(changed, f"{setting}': '{value}")
    assert now == before


def test_what_the_ring_could_not_hold_is_counted(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hosts.kernel.tun._RING_PACKETS", 4)
    with Bridge(net), tun_at_h1(net) as tun, ExitStack() as stack:
        assert run_in(net.namespaces["h1"], lambda: tun.lost) == 0
        for port in range(6000, 6010):
            stack.enter_context(connecting(net, port))
        wait_for(lambda: run_in(net.namespaces["h1"], lambda: tun.lost) >= 6)


def test_a_tun_is_opened_once(net: Network) -> None:
    with tun_at_h1(net), pytest.raises(HostError, match=f"TUN {TUN_NAME} is already open: end the other host on it"):
        run_in(net.namespaces["h1"], lambda: Tun(net.address("h2")))


def test_tun_that_is_removed_is_named_and_everything_is_taken_back(net: Network) -> None:
    before = routing(net)
    with tun_at_h1(net) as tun:
        inside(net, "h1", "ip", "link", "delete", TUN_NAME)
        for act in (tun.read, lambda: tun.write(bytes([0x45]) + bytes(39))):
            with pytest.raises(HostError, match=f"TUN {TUN_NAME} was removed while it was in use"):
                act()
    assert routing(net) == before


@pytest.mark.parametrize(
    ("peer", "complaint"),
    [
        ("10.77.1.2", "10.77.1.2 is an address of this host: the peer must be another one"),
        ("127.0.0.9", "127.0.0.9 is an address of this host"),
        ("10.250.1", "peer '10.250.1' is no IPv4 address"),
    ],
)
def test_a_peer_that_cannot_be_one_is_one_line_and_leaves_nothing(net: Network, peer: str, complaint: str) -> None:
    before = routing(net)
    with pytest.raises(HostError, match=complaint) as caught:
        run_in(net.namespaces["h1"], lambda: Tun(peer))
    assert "\n" not in str(caught.value)
    assert routing(net) == before
