"""Hosts of virtual time and what runs on them, joined by plain wires."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random
from statistics import median
from typing import Any

import pytest

from channel.errors import ERASED, INTACT
from common.units import MS, SECOND
from hosts.engine.clock import Clock
from hosts.engine.datagrams import DatagramReceiver, DatagramSender, UdpReceiver, UdpSender
from hosts.engine.own_tcp import OwnSender
from hosts.engine.probe import FlowCounter
from hosts.engine.results import TcpReceived, TcpSent, UdpReceived, UdpSent
from hosts.engine.stack import Application, Socket, Stack, Tap
from hosts.tcp.config import TcpConfig
from hosts.tcp.connection import State
from tcpip.segment import ACK, RST, SYN, Flow, Segment
from testbed.model import transfers
from testbed.model.virtual_clock import VirtualClock
from testbed.model.wired_link import Wire
from tests.harness.scripted_hop import Script

#: an octet a microsecond
RATE_BPS = 8_000_000
DELAY_NS = 10 * MS
#: nothing that would make a time hard to compute
PLAIN = TcpConfig().but(
    mss=1000, initial_window=10, delayed_ack_ns=0, window_scaling=False, timestamps=False, recovery="newreno"
)
PORT = 80


class Two:
    """Two hosts, 1 and 2, and the wires between them; `lost` says of the first packets of host 1 whether each is."""

    def __init__(self, lost: Sequence[bool] = ()) -> None:
        errors = Script([ERASED if each else INTACT for each in lost])
        self.clock = VirtualClock()
        self.there = Wire(self.clock, self._to_h2, rate_bps=RATE_BPS, delay_ns=DELAY_NS, errors=errors)
        self.back = Wire(self.clock, self._to_h1, rate_bps=RATE_BPS, delay_ns=DELAY_NS)
        self.h1 = Stack(self.clock, 1, self.there, Random(1))
        self.h2 = Stack(self.clock, 2, self.back, Random(2))
        self.received: list[TcpReceived] = []
        self.sent: list[TcpSent] = []
        self.came_to_h1: list[Any] = []
        self.came_to_h2: list[Any] = []

    def _to_h1(self, packet: Any) -> None:
        self.came_to_h1.append(packet)
        self.h1.take(packet)

    def _to_h2(self, packet: Any) -> None:
        self.came_to_h2.append(packet)
        self.h2.take(packet)

    def listen(self, config: TcpConfig = PLAIN) -> None:
        self.counter = transfers.receive(self.h2, PORT, config, self.received.append)

    def send(self, config: TcpConfig = PLAIN, **options: Any) -> OwnSender:
        return transfers.send(self.h1, 2, PORT, config, done=self.sent.append, **options)


def test_a_transfer_on_a_clean_path_takes_the_time_it_must() -> None:
    two = Two()
    two.listen()
    two.send(limit=10_000)
    two.clock.run()
    # SYN and SYN-ACK with the MSS option, ten segments back to back, FIN, and the FIN that answers it
    octets = 44 + 44 + 10 * 1040 + 40 + 40
    [sent], [received] = two.sent, two.received
    assert sent.finished_ns == octets * 1000 + 4 * DELAY_NS
    assert sent.connected_ns == 2 * (44 * 1000 + DELAY_NS)
    assert received.first_byte_ns == (44 + 44 + 1040) * 1000 + 3 * DELAY_NS
    assert (sent.complete, received.complete) == (True, True)
    assert (sent.bytes, received.bytes, two.counter.nbytes) == (10_000, 10_000, 10_000)


def test_connections_are_forgotten_once_they_are_over() -> None:
    two = Two()
    two.listen()
    for _ in range(3):
        two.send(limit=1000)
        two.clock.run()
    assert len(two.sent) == 3
    # TIME-WAIT is over, too
    assert two.clock.now > 60 * SECOND
    assert two.h1._receivers == two.h2._receivers == {}


def test_a_port_where_nobody_listens_refuses() -> None:
    two = Two()
    two.send(limit=1000)
    two.clock.run(until=SECOND)
    [sent] = two.sent
    assert sent.complete is False
    assert sent.error
    assert two.came_to_h1[0].flags & RST
    assert sent.finished_ns == 44_000 + 40_000 + 2 * DELAY_NS


@pytest.mark.parametrize(("flags", "resets"), [(ACK, 1), (SYN | ACK, 1), (RST, 0)], ids=["data", "SYN-ACK", "RST"])
def test_a_segment_of_no_connection_is_reset(flags: int, resets: int) -> None:
    two = Two()
    two.listen()
    two.h2.take(Segment(Flow(1, 5, 2, PORT), 100, 7, flags, 5000))
    two.clock.run(until=SECOND)
    assert [(answer.flags, answer.seq) for answer in two.came_to_h1] == [(RST, 7)] * resets
    assert len(two.h2._receivers) == 0


def test_the_listener_at_the_end_of_the_handshake_has_the_connection() -> None:
    two = Two()
    early: list[Socket] = []
    late: list[Socket] = []
    two.h2.listen(PLAIN, PORT, early.append)
    two.h1.open(PLAIN, Flow(1, 5, 2, PORT))
    two.clock.run(until=2 * DELAY_NS)
    two.h2.listen(PLAIN, PORT, late.append)
    two.clock.run(until=SECOND)
    assert early == []
    assert [socket.connection.state for socket in late] == [State.ESTABLISHED]


class Idle(Application):
    """Does nothing."""

    def handle(self, now: int) -> None:
        pass


def test_connections_have_ports_and_numbers_of_their_own() -> None:
    syns: list[Segment] = []
    stack = Stack(VirtualClock(), 1, syns.append, Random(1), random_ports=True)
    sockets = [stack.connect(PLAIN, 2, PORT, Idle()) for _ in range(50)]
    assert len(stack._receivers) == 50
    assert all(32_768 <= syn.flow.source_port <= 60_999 for syn in syns)
    assert len({syn.flow for syn in syns}) == len({syn.seq for syn in syns}) == 50
    for socket in sockets:
        socket.abort()
    assert len(stack._receivers) == 0


# -- in a router ---------------------------------------------------------------------------------------------


def test_a_stack_connects_as_anybody_and_takes_connections_to_all_addresses() -> None:
    two = Two()
    came: list[Socket] = []
    two.h2.listen_to_all(PLAIN, came.append, most=10)
    flows = [Flow(7, 5, 9, PORT), Flow(7, 5, 8, 443)]
    for flow in flows:
        two.h1.open(PLAIN, flow)
        assert two.h1.has(flow)
    two.clock.run(until=SECOND)
    assert [socket.connection.flow.reversed() for socket in came] == flows


def test_a_flood_of_syns_takes_no_more_than_so_many_connections() -> None:
    two = Two()
    two.h2.listen_to_all(PLAIN, lambda socket: None, most=3)
    for port in range(1, 9):
        two.h2.take(Segment(Flow(1, port, 2, PORT), 0, 0, SYN, 5000))
    assert (len(two.h2._receivers), two.h2.refusals) == (3, 5)


# -- flows with a duration -----------------------------------------------------------------------------------


def test_a_sender_stops_when_its_time_is_over_and_drains() -> None:
    two = Two()
    two.listen()
    two.send(end_at=2 * SECOND, drain_ns=10 * SECOND)
    two.clock.run()
    [sent], [received] = two.sent, two.received
    assert (sent.complete, sent.bytes) == (True, received.bytes)
    assert 2 * SECOND < sent.finished_ns < 5 * SECOND
    assert received.bytes > 1_000_000


def test_a_sender_without_a_drain_time_waits_until_all_is_read() -> None:
    two = Two()
    two.listen()
    two.send(end_at=SECOND)
    two.clock.run()
    [sent], [received] = two.sent, two.received
    # the send buffer was full when the time was over, and no timer cut it short
    assert sent.finished_ns > SECOND + 100 * MS
    assert (sent.error, sent.bytes, received.bytes) == (None, received.bytes, two.counter.nbytes)


def test_what_is_not_drained_in_time_is_thrown_away() -> None:
    two = Two()
    two.listen()
    two.send(end_at=2 * SECOND, drain_ns=100 * MS)
    two.clock.run(until=10 * SECOND)
    [sent], [received] = two.sent, two.received
    assert (sent.error, sent.finished_ns) == ("not drained in time", 2_100 * MS)
    assert received.complete is False
    assert received.error
    assert received.bytes < sent.bytes


def test_a_sender_that_never_connected_says_so() -> None:
    two = Two(lost=[True] * 1000)
    two.send(end_at=2 * SECOND, drain_ns=0)
    two.clock.run(until=10 * SECOND)
    [sent] = two.sent
    assert (sent.error, sent.finished_ns) == ("not connected within the duration", 2 * SECOND)


def test_sender_writes_two_windows_ahead_and_no_less_than_it_is_told_to() -> None:
    for windows, ahead in ((20, 1000), (20, 20_000), (25, 25_000)):
        two = Two()
        two.listen()
        config = PLAIN.but(written_ahead=ahead)
        sender = two.send(config, limit=1_000_000)
        two.clock.run(until=30 * MS)
        assert (sender.connection.cwnd, sender.connection.bytes_acked) == (10_000, 0)
        assert sender._content.taken == windows * 1000
        two.clock.run(until=SECOND)
        taken = sender.connection.bytes_acked + max(2 * sender.connection.cwnd, ahead)
        assert sender._content.taken == min(taken, 1_000_000)


# -- looking on ----------------------------------------------------------------------------------------------


class Log(Tap):
    """Keeps what a tap sees."""

    def __init__(self) -> None:
        self.out: list[tuple[int, int]] = []
        self.back: list[tuple[int, int]] = []

    def sent(self, segment: Segment, now: int) -> None:
        self.out.append((now, segment.length))

    def received(self, segment: Segment, now: int) -> None:
        self.back.append((now, segment.flags))


def test_a_tap_sees_every_segment_and_changes_nothing() -> None:
    bare, tapped, log = Two(), Two(), Log()
    for two in (bare, tapped):
        two.listen()
    bare.send(limit=50_000)
    tapped.send(limit=50_000, tap=log)
    for two in (bare, tapped):
        two.clock.run()
    assert bare.sent == tapped.sent
    assert len(log.out) == tapped.there.packets
    assert sum(length for _, length in log.out) == 50_000
    assert len(log.back) == tapped.back.packets


# -- UDP -----------------------------------------------------------------------------------------------------


class StoppedClock(Clock):
    """A clock that the test moves; it keeps the times that it was asked for."""

    def __init__(self) -> None:
        self.now = 5 * SECOND
        self.calls: list[tuple[int, Callable[[Any], object]]] = []

    def at(self, time: int, call: Callable[[Any], object], argument: Any = None, priority: int = 0) -> None:
        self.calls.append((time, call))


class Sending(DatagramSender):
    """Refuses the numbers given."""

    def __init__(self, *refused: int) -> None:
        self.refused, self.sent = refused, list[tuple[int, int]]()

    def send(self, sequence: int, now: int) -> bool:
        self.sent.append((sequence, now))
        return len(self.sent) - 1 not in self.refused

    def close(self) -> None:
        self.sent.append((-1, -1))


def test_udp_always_on_is_a_packet_per_interval_and_on_and_off_follows_the_seed() -> None:
    def times(off_ms: float) -> list[int]:
        two, sending = Two(), Sending()
        UdpSender(
            transfers._context(two.h1), sending, list[UdpSent]().append, flow="udp", rate_bps=1_000_000, on_ms=100,
            off_ms=off_ms, packet_bytes=500, end_at=30 * SECOND,
        )  # fmt: skip
        two.clock.run()
        return [at for sequence, at in sending.sent if sequence >= 0]

    assert times(0) == [4 * MS * number for number in range(7500)]
    first = times(100)
    assert median(after - before for before, after in pairwise(first)) == 4 * MS
    # half of the time on, within four standard deviations: 150 pairs of exponential periods
    assert abs(len(first) / 7500 - 0.5) < 4 * 0.25 * (2 / 150) ** 0.5
    assert times(100) == first


def test_udp_catches_up_with_a_tenth_of_a_second_and_counts_the_rest_as_unsent() -> None:
    clock, results, sending = StoppedClock(), list[UdpSent](), Sending(1)
    context = replace(transfers._context(Two().h1), clock=clock, epoch=SECOND)
    udp = UdpSender(
        context, sending, results.append, flow="f", rate_bps=800_000, on_ms=1e9, off_ms=0, packet_bytes=5000,
        end_at=6 * SECOND,
    )  # fmt: skip
    # a packet in 50 ms; the second one is refused, and those of 100 and 150 ms leave at 200 ms, with that of 200 ms
    for elapsed_ms in (50, 99, 200, 351):
        clock.now = 5 * SECOND + elapsed_ms * MS
        clock.calls[-1][1](None)
    assert sending.sent == [
        (0, 5 * SECOND),
        *((n, 5 * SECOND + at * MS) for n, at in ((1, 50), (1, 200), (2, 200), (3, 200), (4, 351), (5, 351))),
    ]
    assert [(at - 5 * SECOND) // MS for at, _ in clock.calls] == [50, 100, 100, 250, 400]
    udp.pause(True)
    clock.now = 5 * SECOND + 449 * MS
    clock.calls[-1][1](None)
    udp.abort("stopped")
    udp.abort("again")
    assert results == [
        UdpSent(packets=6, unsent=2, bytes=6 * 4972, started_ns=4 * SECOND, finished_ns=4449 * MS, error="stopped")
    ]
    assert sending.sent[-1] == (-1, -1)


class Receiving(DatagramReceiver):
    """Gives what the test gives."""

    def start(self, take: Callable[[int, int, int], None]) -> None:
        self.take = take

    def close(self) -> None:
        self.closed = True


def test_udp_receiver_counts_what_comes_until_it_ends() -> None:
    clock, results, receiving = StoppedClock(), list[UdpReceived](), Receiving()
    context = replace(transfers._context(Two().h1), clock=clock, epoch=SECOND)
    receiver = UdpReceiver(context, receiving, FlowCounter("h2", "f"), results.append)
    receiver.start()
    for sequence, nbytes, delay_ms in ((0, 100, 30), (3, 50, 70), (2, 7, 20)):
        receiving.take(nbytes, sequence, clock.now - delay_ms * MS)
        clock.now += 10 * MS
    receiver.abort(None)
    receiver.abort("again")
    receiving.take(9, 9, 0)
    assert receiving.closed
    expected = UdpReceived(
        packets=3, highest_sequence=3, bytes=157, first_byte_ns=4 * SECOND, last_byte_ns=4020 * MS,
        finished_ns=4030 * MS, delay_ms_mean=40.0, delay_ms_max=70.0, error=None,
        delays=((20_000, 1), (30_000, 1), (70_000, 1)),
    )  # fmt: skip
    assert results == [expected]
    nothing = UdpReceiver(context, Receiving(), FlowCounter("h2", "f"), results.append)
    nothing.abort("gone")
    assert (results[1].packets, results[1].highest_sequence, results[1].error) == (0, -1, "gone")
    assert (results[1].delay_ms_mean, results[1].delay_ms_max, results[1].first_byte_ns) == (None, None, None)
