"""The stack over a TUN without a kernel: two of them on one loop, joined by a pair of sockets in place of TUNs."""

import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from ipaddress import IPv4Address
from typing import cast

import pytest

from common.units import MS, SECOND
from hosts.engine.content import Octets
from hosts.engine.own_tcp import OwnTcp
from hosts.engine.probe import FlowCounter
from hosts.engine.results import TcpReceived, TcpSent
from hosts.engine.streams import Transfer
from hosts.kernel.tun import Tun
from hosts.kernel.tun_stack import TunStack
from hosts.loop import Loop
from hosts.tcp.config import TcpConfig
from tcpip.segment import ACK, FIN, RST, SYN, Flow, Segment
from tcpip.wire import emit, parse
from testbed.model import transfers

pytestmark = pytest.mark.slow

HERE, THERE = "10.0.0.1", "10.0.0.2"
CONFIG = TcpConfig().but(
    mss=1000, time_wait_ns=20 * MS, delayed_ack_ns=5 * MS, initial_rto_ns=50 * MS, min_rto_ns=50 * MS
)


class FakeTun:
    """What a stack needs of a TUN; `lose` says whether a packet written is lost."""

    def __init__(self, end: socket.socket, address: str) -> None:
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

    def __init__(self, ends: tuple[socket.socket, socket.socket]) -> None:
        self.loop = Loop()
        self.ends = ends
        self.tuns = FakeTun(ends[0], HERE), FakeTun(ends[1], THERE)
        self.here, self.there = (TunStack(self.loop, cast(Tun, tun)) for tun in self.tuns)

    def run_until(self, what: Callable[[], bool]) -> None:
        """Serve the loop until `what` holds, which is asked every millisecond."""
        give_up_at = self.loop.refresh() + 20 * SECOND

        def look(_: object = None) -> None:
            if what() or self.loop.now > give_up_at:
                self.loop.stop()
            else:
                self.loop.at(self.loop.now + MS, look)

        look()
        self.loop.run()
        assert what(), "nothing came of it"


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ends[0], ends[1]:
        yield Hosts(ends)


def tcp(driver: TunStack) -> OwnTcp:
    return OwnTcp(replace(transfers._context(driver.stack), contents=Octets(1)), driver.stack, CONFIG)


@pytest.mark.parametrize("lost", [0, SYN, FIN])
def test_octets_cross_and_nothing_is_left(hosts: Hosts, lost: int) -> None:
    first = iter([True])
    hosts.tuns[0].lose = lambda segment: bool(segment.flags & lost) and next(first, False)
    sent, received = list[TcpSent](), list[TcpReceived]()
    content, counter = Octets(1).incoming("flow/0"), FlowCounter("there", "flow")
    tcp(hosts.there).accept(80, lambda receive: receive(content, counter, received.append))
    transfer = Transfer(flow="flow", index=0, address=(THERE, 80), limit=100_000, end_at=None, drain_ns=None)
    tcp(hosts.here).send(transfer, paused=False, done=sent.append)
    hosts.run_until(lambda: len(hosts.here.stack._receivers) == len(hosts.there.stack._receivers) == 0)
    [there], [here] = sent, received
    assert (there.complete, here.complete, here.intact, counter.nbytes) == (True, True, True, 100_000)
    assert there.sha256 == here.sha256
    assert sum(bool(segment.flags & lost) for segment in hosts.tuns[0].written) == (2 if lost else 0)


def test_what_is_no_segment_or_for_another_host_is_counted_and_not_answered(hosts: Hosts) -> None:
    flow = Flow(int(IPv4Address(HERE)), 4000, int(IPv4Address(THERE)), 80)
    stray = emit(Segment(flow, 100, 7, ACK, 5000, 3, b"abc"))
    for octets in (b"", b"\x45\x00", b"\x60" * 60, stray[:-1] + b"\xff"):
        hosts.ends[0].send(octets)
    hosts.ends[0].send(emit(Segment(flow._replace(destination=5), 100, 0, SYN, 5000)))
    hosts.ends[0].send(stray)
    hosts.run_until(lambda: len(hosts.tuns[1].written) == 1)
    assert hosts.there.rejected == 5
    assert hosts.tuns[1].written[0].flags == RST
