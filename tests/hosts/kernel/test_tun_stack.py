"""The stack without a kernel: two of them on one loop, joined by a pair of sockets in place of TUNs."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address
from typing import cast

import pytest

from common.units import MS
from hosts.engine.stack import Application, Socket, Stack
from hosts.kernel.tun import Tun
from hosts.kernel.tun_stack import TunStack
from hosts.loop import Loop
from hosts.tcp.config import TcpConfig
from hosts.tcp.connection import State
from tcpip.segment import ACK, RST, SYN, Flow, Segment
from tcpip.wire import emit, parse

pytestmark = pytest.mark.slow

HERE, THERE = "10.0.0.1", "10.0.0.2"
PATIENCE_NS = 20_000_000_000
CONFIG = TcpConfig(mss=1000, time_wait_ns=20 * MS, delayed_ack_ns=5 * MS, initial_rto_ns=50 * MS, min_rto_ns=50 * MS)


class FakeTun:
    """What a stack needs of a TUN; `lose` says whether a packet written is lost."""

    def __init__(self, end: socket.socket, address: str | None) -> None:
        self._end, self.address, self.mtu = end, address, 1040
        self.written: list[Segment] = []
        self.lose: Callable[[Segment], bool] = lambda segment: False
        end.setblocking(False)

    def fileno(self) -> int:
        return self._end.fileno()

    def read(self) -> bytes | None:
        try:
            return self._end.recv(65535)
        except BlockingIOError:
            return None

    def write(self, packet: bytes) -> bool:
        segment = parse(packet)
        self.written.append(segment)
        if not self.lose(segment):
            self._end.send(packet)
        return True


class Hosts:
    """Two stacks and what joins them."""

    def __init__(self, ends: tuple[socket.socket, socket.socket], there: str | None = THERE) -> None:
        self.loop = Loop()
        self.ends = ends
        self.here_tun, self.there_tun = FakeTun(ends[0], HERE), FakeTun(ends[1], there)
        self._drivers = [TunStack(self.loop, cast(Tun, tun)) for tun in (self.here_tun, self.there_tun)]
        self.here, self.there = (driver.stack for driver in self._drivers)

    @property
    def rejected(self) -> int:
        return self._drivers[1].rejected

    def run_until(self, what: Callable[[], bool]) -> None:
        """Serve the loop until `what` holds, which is asked every millisecond."""
        give_up_at = self.loop.refresh() + PATIENCE_NS
        held = False

        def look(_: object = None) -> None:
            nonlocal held
            held = what()
            if held or self.loop.now > give_up_at:
                self.loop.stop()
            else:
                self.loop.at(self.loop.now + MS, look)

        look()
        self.loop.run()
        assert held, "nothing came of it"


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with two_hosts() as made:
        yield made


@contextmanager
def two_hosts(there: str | None = THERE) -> Iterator[Hosts]:
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        yield Hosts(ends, there)
    finally:
        for end in ends:
            end.close()


def flow_to(port: int) -> Flow:
    return Flow(int(IPv4Address(HERE)), 4000, int(IPv4Address(THERE)), port)


class Echo(Application):
    """Sends back what comes, and closes when the peer has."""

    def __init__(self, socket: Socket) -> None:
        self.socket = socket

    def handle(self, now: int) -> None:
        connection = self.socket.connection
        while connection.readable:
            connection.write(connection.read(1 << 16))
        if connection.at_end:
            connection.close(now)


class Reader(Application):
    """Keeps what comes."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.socket: Socket | None = None

    def handle(self, now: int) -> None:
        if self.socket is not None:
            self.data.extend(self.socket.connection.read(1 << 16))


def connect(stack: Stack, address: str, port: int) -> tuple[Socket, Reader]:
    reader = Reader()
    reader.socket = stack.connect(CONFIG, int(IPv4Address(address)), port, reader)
    return reader.socket, reader


def test_octets_go_there_and_back_and_nothing_is_left(hosts: Hosts) -> None:
    hosts.there.listen(CONFIG, 80, Echo)
    client, reader = connect(hosts.here, THERE, 80)
    data = bytes(range(256)) * 400
    assert client.connection.write(data) == len(data)
    client.close()
    hosts.run_until(lambda: client.connection.closed and hosts.there.connections == 0)
    assert bytes(reader.data) == data
    assert (client.connection.error, hosts.here.connections) == (None, 0)


def test_timers_repair_what_was_lost(hosts: Hosts) -> None:
    hosts.there.listen(CONFIG, 80, Echo)
    lost: list[Segment] = []

    def lose_first_syn_and_fin(segment: Segment) -> bool:
        kind = segment.flags & (SYN | 1)
        if kind and kind not in [other.flags & (SYN | 1) for other in lost]:
            lost.append(segment)
            return True
        return False

    hosts.here_tun.lose = lose_first_syn_and_fin
    client, _ = connect(hosts.here, THERE, 80)
    client.connection.write(b"x" * 100)
    client.close()
    hosts.run_until(lambda: client.connection.closed)
    assert len(lost) == 2
    assert client.connection.error is None
    assert client.connection.bytes_received == 100


def test_a_connection_that_comes_between_two_listeners_goes_to_the_second(hosts: Hosts) -> None:
    """The SYN came while the port was only taken; who accepts by the end of the handshake has the connection."""
    early: list[Socket] = []
    late: list[Socket] = []

    def accept_after_syn(segment: Segment) -> bool:
        hosts.there.listen(CONFIG, 80, late.append)
        return False

    hosts.there.listen(CONFIG, 80, early.append)
    hosts.there_tun.lose = accept_after_syn
    connect(hosts.here, THERE, 80)
    hosts.run_until(lambda: len(early) + len(late) == 1)
    assert early == []
    assert late[0].connection.state is State.ESTABLISHED


@pytest.mark.parametrize(
    ("segment", "answer"),
    [
        (Segment(flow_to(81), 100, 0, SYN, 5000), (RST | ACK, 0, 101)),
        (Segment(flow_to(80), 100, 7, ACK, 5000, 3, b"abc"), (RST, 7, 0)),
        (Segment(flow_to(80), 100, 7, SYN | ACK, 5000), (RST, 7, 0)),
        (Segment(flow_to(80), 100, 0, RST, 5000), None),
        (Segment(flow_to(80)._replace(destination=5), 100, 0, SYN, 5000), None),
    ],
    ids=["no listener", "data", "SYN-ACK", "RST", "another host"],
)
def test_what_belongs_to_no_connection_is_answered_with_rst(
    hosts: Hosts, segment: Segment, answer: tuple[int, int, int] | None
) -> None:
    hosts.there.listen(CONFIG, 80, lambda socket: None)
    hosts.ends[0].send(emit(segment))
    # octets that are no segment, behind it: once they are counted, the segment has been dealt with
    for octets in (b"", b"\x45\x00", b"\x60" * 60, emit(segment)[:-1] + b"\xff"):
        hosts.ends[0].send(octets)
    strangers = segment.flow.destination != int(IPv4Address(THERE))
    hosts.run_until(lambda: hosts.rejected == 4 + strangers)
    assert [(sent.flags, sent.seq, sent.ack) for sent in hosts.there_tun.written] == [answer] * (answer is not None)
    assert hosts.there.connections == 0


def test_connections_have_ports_and_numbers_of_their_own(hosts: Hosts) -> None:
    clients = [connect(hosts.here, THERE, 80)[0] for _ in range(50)]
    assert hosts.here.connections == 50
    flows = {client.connection.flow for client in clients}
    assert len(flows) == 50
    assert all(32768 <= flow.source_port <= 60999 for flow in flows)
    # drawn from 2^32: two of 50 are equal with 3e-7
    assert len({segment.seq for segment in hosts.here_tun.written}) == 50
    for client in clients:
        client.abort()
    assert hosts.here.connections == 0


def test_a_stack_without_an_address_takes_connections_to_all_of_them() -> None:
    with two_hosts(there=None) as hosts:
        came: list[Flow] = []

        def accept(socket: Socket) -> Echo:
            came.append(socket.connection.flow)
            return Echo(socket)

        hosts.there.listen_to_all(CONFIG, accept, most=10)
        clients = [connect(hosts.here, address, port)[0] for address, port in (("10.9.9.9", 80), ("10.8.8.8", 443))]
        hosts.run_until(lambda: all(client.connection.connected for client in clients) and len(came) == 2)
        assert came == [client.connection.flow.reversed() for client in clients]


def test_a_stack_connects_as_anybody() -> None:
    with two_hosts(there=None) as hosts:
        hosts.here.listen(CONFIG, 80, Echo)
        flow = Flow(int(IPv4Address("10.9.9.9")), 5, int(IPv4Address(HERE)), 80)
        client = hosts.there.open(CONFIG, flow)
        assert hosts.there.has(flow)
        hosts.run_until(lambda: client.connection.connected)
        assert hosts.here_tun.written[0].flow == flow.reversed()


def test_a_flood_of_syns_takes_no_more_than_so_many_connections() -> None:
    with two_hosts(there=None) as hosts:
        hosts.there.listen_to_all(CONFIG, lambda socket: None, most=3)
        # nobody answers a SYN-ACK with RST
        hosts.here_tun.lose = lambda segment: True
        for port in range(1, 9):
            hosts.ends[0].send(emit(Segment(flow_to(port), 0, 0, SYN, 5000)))
        hosts.run_until(lambda: hosts.there.connections + hosts.there.refusals == 8)
        assert (hosts.there.connections, hosts.there.refusals) == (3, 5)
