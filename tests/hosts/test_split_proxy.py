"""The proxy that splits connections: kernel TCP at both hosts, and between them the kernel's or our own."""

import hashlib
import itertools
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from random import Random
from typing import NamedTuple

import pytest

from common.sides import Host
from hosts.engine.split_pairs import SplitCounters
from hosts.errors import HostError
from hosts.kernel.namespaces import run_in
from hosts.kernel.network import Network
from hosts.kernel.split_routes import SplitRoutes
from hosts.messages import Error, Ready, SplitConfig, Stop
from tests.harness.waiting import PATIENCE_S, wait_for
from tests.hosts.harness import HOSTS, AgentProcess, Bridge, Direction, inside, needs_network, socket_at

pytestmark = [*needs_network, pytest.mark.patient]

LIMIT = 65_536
CHUNK = 65_536
#: only packets with data are larger
FULL_BYTES = 1000
#: of a socket whose connection has ended, TIME-WAIT included (include/net/tcp_states.h)
TCP_CLOSE = 7
_ports = itertools.count(6001)

#: which of our TCPs is on the wireless side; None: the kernel's
WIRELESS = (None, "smart")


class Split(NamedTuple):
    """A network whose base station splits connections."""

    net: Network
    proxy: AgentProcess
    bridge: Bridge

    def counters(self) -> SplitCounters:
        """What the proxy says at its end."""
        self.proxy.send(Stop())
        return self.proxy.wait_for(SplitCounters)


def config_of(net: Network, wireless: str | None) -> SplitConfig:
    return SplitConfig(namespace=net.namespaces["bas"], mobile=net.address("h1"), buffer_bytes=LIMIT, wireless=wireless)


@contextmanager
def splitting(
    net: Network,
    wireless: str | None,
    lose: Callable[[Direction, bytes], bool] | None = None,
) -> Iterator[Split]:
    with Bridge(net, lose) as bridge:
        proxy = AgentProcess(config_of(net, wireless), "hosts.split_proxy")
        try:
            proxy.wait_for(Ready)
            yield Split(net, proxy, bridge)
        finally:
            status = proxy.close()
    assert status == 0
    assert_nothing_left(net)


@pytest.fixture(params=WIRELESS, ids=lambda wireless: wireless or "kernel")
def split(request: pytest.FixtureRequest, net: Network) -> Iterator[Split]:
    with splitting(net, request.param) as made:
        yield made


def losing(every: int) -> Callable[[Direction, bytes], bool]:
    """Lose one packet in so many: of full ones, which are data, and of others, in either direction."""
    came: Counter[tuple[Direction, bool]] = Counter()

    def lose(direction: Direction, packet: bytes) -> bool:
        kind = direction, len(packet) > FULL_BYTES
        came[kind] += 1
        return came[kind] % every == 0

    return lose


def assert_nothing_left(net: Network) -> None:
    """The base station is a router as before."""
    assert inside(net, "bas", "nft", "list", "ruleset") == ""
    rules = [line.split(":")[0] for line in inside(net, "bas", "ip", "rule").splitlines()]
    assert rules == ["0", "32766", "32767"]
    assert "tcp0" not in inside(net, "bas", "ip", "link")


def peer_of(host: Host) -> Host:
    return "h2" if host == "h1" else "h1"


@contextmanager
def connected(net: Network, client: Host, receive_buffer: int = 0) -> Iterator[tuple[socket.socket, socket.socket]]:
    """A connection from one host to the other: the client's socket and the server's."""
    server, port = peer_of(client), next(_ports)
    with socket_at(net, server) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if receive_buffer:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        listener.bind(("0.0.0.0", port))
        listener.listen()
        near = socket_at(net, client)
        near.connect((net.address(server), port))
        far, _ = listener.accept()
    far.settimeout(PATIENCE_S)
    with near, far:
        yield near, far


def send(sock: socket.socket, data: bytes) -> None:
    sock.sendall(data)
    sock.shutdown(socket.SHUT_WR)


def receive(sock: socket.socket) -> str:
    """The hash of all that comes until FIN."""
    digest = hashlib.sha256()
    while data := sock.recv(CHUNK):
        digest.update(data)
    return digest.hexdigest()


def octets(count: int, seed: int = 1) -> bytes:
    return Random(seed).randbytes(count)


# -- streams -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wireless", WIRELESS)
@pytest.mark.parametrize("client", ["h1", "h2"])
def test_streams_arrive_whole_both_ways_at_once_over_a_lossy_link(
    net: Network, wireless: str | None, client: Host
) -> None:
    one, other = octets(400_000), octets(300_000, seed=2)
    with (
        splitting(net, wireless, losing(30)) as made,
        connected(net, client) as (near, far),
        ThreadPoolExecutor(4) as pool,
    ):
        for sock, data in ((near, one), (far, other)):
            pool.submit(send, sock, data)
        hashes = [pool.submit(receive, sock) for sock in (far, near)]
        assert [future.result(60) for future in hashes] == [hashlib.sha256(data).hexdigest() for data in (one, other)]
        counters = made.counters()
    assert (counters.connections, counters.refusals) == (1, 0)
    assert counters.retransmissions > 0


def test_each_end_sees_the_other_ones_address_and_port(split: Split) -> None:
    for client in HOSTS:
        with connected(split.net, client) as (near, far):
            assert near.getpeername() == far.getsockname()
            assert far.getpeername() == near.getsockname()
            assert far.getpeername()[0] == split.net.address(client)
    addresses = {split.net.address("h1"), split.net.address("h2")}
    passed = [packet for _, packet in split.bridge.passed]
    assert all({*map(socket.inet_ntoa, (packet[12:16], packet[16:20]))} == addresses for packet in passed)
    assert split.counters().connections == 2


def test_many_connections_at_once(split: Split) -> None:
    data = [octets(20_000, seed) for seed in range(20)]
    with ExitStack() as stack, ThreadPoolExecutor(40) as pool:
        pairs = [stack.enter_context(connected(split.net, client)) for client in HOSTS * 10]
        for (near, _), sent in zip(pairs, data, strict=True):
            pool.submit(send, near, sent)
        hashes = list(pool.map(receive, [far for _, far in pairs]))
    assert hashes == [hashlib.sha256(sent).hexdigest() for sent in data]
    assert split.counters().connections == 20


def test_what_is_no_tcp_passes(split: Split) -> None:
    with socket_at(split.net, "h1", socket.SOCK_DGRAM) as one, socket_at(split.net, "h2", socket.SOCK_DGRAM) as other:
        other.bind(("0.0.0.0", 9))
        one.sendto(b"there", (split.net.address("h2"), 9))
        data, back = other.recvfrom(100)
        other.sendto(b"and back", back)
        assert (data, one.recv(100)) == (b"there", b"and back")
        assert back[0] == split.net.address("h1")


# -- ends ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", ["h1", "h2"])
def test_half_closed_a_connection_still_carries_the_other_direction(split: Split, client: Host) -> None:
    data = octets(200_000)
    with connected(split.net, client) as (near, far), ThreadPoolExecutor(1) as pool:
        near.shutdown(socket.SHUT_WR)
        assert far.recv(10) == b""
        pool.submit(send, far, data)
        assert receive(near) == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("resetting", ["client", "server"])
@pytest.mark.parametrize("client", ["h1", "h2"])
def test_a_reset_goes_on_to_the_other_end(split: Split, client: Host, resetting: str) -> None:
    with connected(split.net, client) as (near, far):
        near.sendall(b"hello")
        assert far.recv(10) == b"hello"
        one, other = (near, far) if resetting == "client" else (far, near)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        one.close()
        with pytest.raises(ConnectionResetError):
            other.recv(10)


def test_a_reset_goes_on_while_the_other_side_takes_nothing(split: Split) -> None:
    with connected(split.net, "h2", receive_buffer=4096) as (near, far):
        near.settimeout(1)
        with pytest.raises(TimeoutError):
            near.sendall(bytes(10_000_000))
        near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        near.close()
        # what had come before it can still be read
        with pytest.raises(ConnectionResetError):
            receive(far)


def test_an_end_of_both_streams_is_no_reset_while_the_other_side_takes_nothing(split: Split) -> None:
    data = octets(40_000)
    with connected(split.net, "h2", receive_buffer=4096) as (near, far):
        far.shutdown(socket.SHUT_WR)
        assert near.recv(1) == b""
        send(near, data)
        # then the base station has it all, and has acknowledged the FIN behind it
        wait_for(lambda: near.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == TCP_CLOSE)
        # it looks at connections that it waits for ten times a second
        threading.Event().wait(0.5)
        assert receive(far) == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("client", ["h1", "h2"])
def test_a_connection_nobody_takes_is_reset(split: Split, client: Host) -> None:
    with socket_at(split.net, client) as sock:

        def reach() -> None:
            # the base station accepts, since it does not know yet
            sock.connect((split.net.address(peer_of(client)), 9999))
            sock.recv(10)

        with pytest.raises(ConnectionResetError):
            reach()
    assert split.counters().connections == 1


# -- the buffer ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", ["h1", "h2"])
def test_a_sender_waits_while_the_other_side_takes_nothing(split: Split, client: Host) -> None:
    data = octets(3_000_000)
    with connected(split.net, client, receive_buffer=4096) as (near, far), ThreadPoolExecutor(1) as pool:
        sending = pool.submit(send, near, data)
        threading.Event().wait(1)
        # its socket may hold much, but not all
        assert not sending.done()
        assert receive(far) == hashlib.sha256(data).hexdigest()
        sending.result(PATIENCE_S)
    counters = split.counters()
    assert LIMIT / 4 < counters.peak_bytes <= LIMIT * 1.1


# -- what is left --------------------------------------------------------------------------------------------


def test_what_is_under_way_at_the_end_is_reset_and_nothing_is_left(split: Split) -> None:
    with connected(split.net, "h2") as (near, far):
        near.sendall(b"hello")
        assert far.recv(10) == b"hello"
        split.counters()
        with pytest.raises(ConnectionResetError):
            near.recv(10)
        with pytest.raises(ConnectionResetError):
            far.recv(10)


@pytest.mark.parametrize("wireless", WIRELESS)
def test_a_killed_proxy_leaves_what_the_next_one_replaces(net: Network, wireless: str | None) -> None:
    killed = AgentProcess(config_of(net, wireless), "hosts.split_proxy")
    killed.wait_for(Ready)
    killed.process.kill()
    assert killed.close() != 0
    with splitting(net, wireless), connected(net, "h1") as (near, far):
        near.sendall(b"hello")
        assert far.recv(10) == b"hello"


def test_a_proxy_that_cannot_be_is_one_line(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    config = SplitConfig(namespace="fadelab-none-bas", mobile="10.0.0.1", buffer_bytes=1, wireless=None)
    proxy = AgentProcess(config, "hosts.split_proxy")
    assert "no network namespace" in proxy.wait_for(Error).text
    assert proxy.close() == 2
    monkeypatch.setattr("hosts.kernel.split_routes._PATH", "/nowhere")
    with pytest.raises(HostError, match=r"^nft is missing: apt-get install nftables$"):
        run_in(net.namespaces["bas"], lambda: SplitRoutes(["eth0"], 1))
