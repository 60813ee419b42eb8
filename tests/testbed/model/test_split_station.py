"""A base station that splits TCP connections, in virtual time."""

from collections.abc import Callable
from dataclasses import asdict
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from channel.errors import ERASED, INTACT, ErrorModel, Verdict
from channel.errors.bernoulli import Bernoulli
from common.units import MS, SECOND
from hosts.engine.own_tcp import OwnSender
from hosts.engine.probe import FlowCounter
from hosts.engine.results import TcpReceived, TcpSent
from hosts.engine.stack import Application, Socket, Stack
from hosts.tcp.config import TcpConfig
from tcpip.segment import SYN, Flow, Segment, SynOptions
from testbed.model import split_station, transfers
from testbed.model.link_network import LinkNetwork
from testbed.model.split_station import Splitter
from testbed.model.virtual_clock import VirtualClock
from testbed.model.wired_link import Wire
from testbed.scenario.resolver import resolve
from testbed.simulation import simulate
from tests.harness.model_runs import model

MOBILE, FIXED = 1, 2
PORT = 80
PLAIN = TcpConfig().but(
    mss=1000, initial_window=10, delayed_ack_ns=0, window_scaling=False, timestamps=False, recovery="newreno"
)
LIMIT = 20_000
DELAY_NS = 10 * MS


class Gap(ErrorModel):
    """A link that loses everything from one time to another."""

    def __init__(self, start: int, end: int) -> None:
        self._start, self._end = start, end

    def judge(self, start: int, end: int, nbytes: int) -> Verdict:
        return ERASED if self._start <= start < self._end else INTACT


class Path:
    """The mobile host 1, the base station and the fixed host 2; `errors` are made for each direction of the radio."""

    def __init__(
        self,
        errors: Callable[[], ErrorModel | None] = lambda: None,
        *,
        limit: int = LIMIT,
        config: TcpConfig = PLAIN,
        wireless_bps: int = 1_000_000,
    ) -> None:
        clock = self.clock = VirtualClock()
        wired: Any = {"rate_bps": 10_000_000, "delay_ns": DELAY_NS}
        self.to_base = Wire(clock, lambda packet: self.splitter.handle_wired(packet), **wired)
        self.to_fixed = Wire(clock, self._to_fixed, **wired)
        wireless: Any = {"rate_bps": wireless_bps, "delay_ns": DELAY_NS}
        self.down = Wire(clock, self._to_mobile, errors=errors(), **wireless)
        self.up = Wire(clock, lambda packet: self.splitter.handle_wireless(packet), errors=errors(), **wireless)
        self.mobile = Stack(clock, MOBILE, self.up, Random(1))
        self.fixed = Stack(clock, FIXED, self.to_base, Random(2))
        at_base = config.but(receive_buffer=min(limit, 65_535))
        self.splitter = Splitter(
            clock,
            wired=at_base,
            wireless=at_base,
            buffer_bytes=limit,
            send_wired=self.to_fixed,
            send_wireless=self.down,
            rng=Random(3),
        )
        self.came_to_fixed: list[Any] = []
        self.came_to_mobile: list[Any] = []
        self.sent: list[TcpSent] = []
        self.received: list[TcpReceived] = []
        self.counters: list[FlowCounter] = []
        self.config = config

    def _to_fixed(self, packet: Any) -> None:
        self.came_to_fixed.append(packet)
        self.fixed.take(packet)

    def _to_mobile(self, packet: Any) -> None:
        self.came_to_mobile.append(packet)
        self.mobile.take(packet)

    @property
    def nbytes(self) -> int:
        """What applications have read."""
        return sum(counter.nbytes for counter in self.counters)

    def listen(self, host: Stack, port: int = PORT) -> None:
        self.counters.append(transfers.receive(host, port, self.config, self.received.append))

    def send(self, host: Stack, nbytes: int | None, port: int = PORT) -> OwnSender:
        to = FIXED if host is self.mobile else MOBILE
        return transfers.send(host, to, port, self.config, limit=nbytes, done=self.sent.append)

    def run(self, until: int | None = None) -> None:
        self.clock.run(until=until)

    def assert_nothing_left(self) -> None:
        """All connections are over, and no part holds anything."""
        hosts = [self.mobile, self.fixed, *self.splitter._hosts.values()]
        assert [host._receivers for host in hosts] == [{}] * 4
        assert not self.splitter._pairs


class Talker(Application):
    """An application that does as it is told when it is called, and keeps what it has seen."""

    #: set when it connects or accepts
    socket: Socket

    def __init__(self, do: Callable[["Talker", int], None] = lambda talker, now: None) -> None:
        self.do = do
        self.read = 0
        self.ended_at: int | None = None

    def handle(self, now: int) -> None:
        if not hasattr(self, "socket"):
            return
        self.read += self.socket.connection.discard()
        if self.ended_at is None and self.socket.connection.at_end:
            self.ended_at = now
        self.do(self, now)

    def write(self, nbytes: int) -> None:
        self.socket.connection.write(nbytes)
        self.socket.pump()


def talk(path: Path, there: Talker, here: Talker) -> None:
    """Let `here` at the fixed host connect to `there` at the mobile host."""

    def accept(socket: Socket) -> Talker:
        there.socket = socket
        return there

    path.mobile.listen(PLAIN, PORT, accept)
    here.socket = path.fixed.connect(PLAIN, MOBILE, PORT, here)


def test_losses_on_the_air_are_repaired_there_and_the_wired_sender_sees_none() -> None:
    rng = Random(7)
    path = Path(lambda: Bernoulli(0.05, rng))
    path.listen(path.mobile)
    sender = path.send(path.fixed, 500_000)
    path.run()
    assert path.received[0].bytes == 500_000
    assert (sender.connection.counters.fast_retransmits, sender.connection.counters.timeouts) == (0, 0)
    assert path.splitter.counters().retransmissions >= path.down.corrupted > 10
    path.assert_nothing_left()


@settings(max_examples=40, deadline=None)
@example(1, 0.0, LIMIT, [(True, 300_000), (False, 300_000), (True, 0), (False, 0)], "newreno", False)
@given(
    seed=st.integers(0, 2**32),
    per=st.sampled_from([0.0, 0.01, 0.1, 0.3]),
    limit=st.sampled_from([300, 4000, 20_000, 200_000]),
    sizes=st.lists(st.tuples(st.booleans(), st.integers(0, 60_000)), min_size=1, max_size=4),
    recovery=st.sampled_from(["reno", "newreno", "sack"]),
    modern=st.booleans(),
)
def test_whatever_is_lost_streams_arrive_whole_and_the_buffer_keeps_its_bound(
    seed: int, per: float, limit: int, sizes: list[tuple[bool, int]], recovery: Any, modern: bool
) -> None:
    rng = Random(seed)
    config = PLAIN.but(recovery=recovery, window_scaling=modern, timestamps=modern, delayed_ack_ns=100 * MS)
    path = Path(lambda: Bernoulli(per, rng), limit=limit, config=config)
    for i, (down, nbytes) in enumerate(sizes):
        path.listen(path.mobile if down else path.fixed, PORT + i)
        path.send(path.fixed if down else path.mobile, nbytes, PORT + i)
    path.run()
    assert sorted(result.bytes for result in path.received) == sorted(nbytes for _, nbytes in sizes)
    # where a last ACK is lost for ever, only the side that knows less complains
    counters = path.splitter.counters()
    assert counters.connections == len(sizes)
    assert counters.peak_bytes <= limit
    if not per:
        assert all(result.complete for result in path.sent + path.received)
    path.assert_nothing_left()


@pytest.mark.parametrize("limit", [4000, 65_536, 200_000])
@pytest.mark.parametrize("sender", ["mobile", "fixed"])
def test_a_sender_waits_while_the_other_side_stalls(sender: str, limit: int) -> None:
    stall, end = 1 * SECOND, 5 * SECOND
    path = Path(limit=limit, wireless_bps=10_000_000)
    stalling = path.down if sender == "fixed" else path.to_fixed
    stalling._errors = Gap(stall, end)
    host, peer = (path.mobile, path.fixed) if sender == "mobile" else (path.fixed, path.mobile)
    path.listen(peer)
    stream = path.send(host, 2_000_000)
    path.run(until=end - 1)
    held = stream.connection.bytes_acked - path.nbytes
    # full to the last segment: one that does not fit is not sent
    assert limit - 1000 < held <= limit
    assert path.splitter.counters().peak_bytes == held
    assert not path.sent
    path.run()
    assert path.received[0].bytes == 2_000_000
    assert path.splitter.counters().peak_bytes <= limit
    assert stream.connection.counters.timeouts == 0
    path.assert_nothing_left()


def test_the_buffer_counts_each_direction_and_connection_by_itself() -> None:
    path = Path()
    path.down._errors = Gap(1 * SECOND, 4 * SECOND)
    path.listen(path.mobile, PORT)
    path.listen(path.mobile, PORT + 1)
    one, other = path.send(path.fixed, 800_000, PORT), path.send(path.fixed, 800_000, PORT + 1)
    path.run(until=4 * SECOND - 1)
    assert one.connection.bytes_acked + other.connection.bytes_acked - path.nbytes > 2 * (LIMIT - 1000)
    assert path.splitter.counters().peak_bytes <= LIMIT
    path.run()
    assert [result.bytes for result in path.received] == [800_000] * 2


def test_half_closed_a_connection_still_carries_the_other_direction() -> None:
    path = Path()

    def answer(talker: Talker, now: int) -> None:
        if talker.ended_at == now:
            talker.socket.connection.write(50_000)
            talker.socket.connection.close(now)

    def ask(talker: Talker, now: int) -> None:
        if talker.socket.connection.connected and not talker.socket.connection.bytes_acked:
            talker.socket.connection.write(3000)
            talker.socket.connection.close(now)
            talker.do = lambda talker, now: None

    there, here = Talker(answer), Talker(ask)
    talk(path, there, here)
    path.run()
    assert (there.read, here.read) == (3000, 50_000)
    assert (here.ended_at or 0) > (there.ended_at or 0) > 0
    path.assert_nothing_left()


@pytest.mark.parametrize("who", ["mobile", "fixed"])
def test_a_reset_goes_on_to_the_other_end(who: str) -> None:
    path = Path()
    there, here = Talker(), Talker()
    talk(path, there, here)
    path.run(until=SECOND)
    here.write(5000)
    path.run(until=2 * SECOND)
    assert there.read == 5000
    resetting, other = (there, here) if who == "mobile" else (here, there)
    resetting.socket.abort()
    path.run()
    assert other.socket.connection.error == "reset by the peer"
    path.assert_nothing_left()


def test_a_mobile_host_that_does_not_answer_ends_the_connection() -> None:
    path = Path(lambda: Gap(0, 10_000 * SECOND), config=PLAIN.but(syn_retries=2))
    path.send(path.fixed, 100_000)
    path.run()
    # 1, 2 and 4 s
    assert path.sent[0].error == "reset by the peer"
    assert 7 * SECOND <= path.sent[0].finished_ns < 8 * SECOND
    path.assert_nothing_left()


def test_a_mobile_host_that_is_gone_ends_the_connection() -> None:
    path = Path(lambda: Gap(2 * SECOND, 10_000 * SECOND), config=PLAIN.but(data_retries=3))
    path.listen(path.mobile)
    path.send(path.fixed, 5_000_000)
    path.run(until=200 * SECOND)
    assert path.sent[0].error == "reset by the peer"
    assert not path.splitter._pairs


def test_what_is_acknowledged_may_never_arrive() -> None:
    # the semantics that are lost: the sender has closed and knows of no failure when the last hop fails
    path = Path(config=PLAIN.but(data_retries=3))
    path.down._errors = Gap(1 * SECOND, 10_000 * SECOND)
    there, here = Talker(), Talker()
    talk(path, there, here)
    path.run(until=SECOND)
    here.write(10_000)
    path.run(until=2 * SECOND)
    assert (here.socket.connection.bytes_acked, there.read) == (10_000, 0)


@pytest.mark.interpreted
def test_a_flood_of_syns_takes_no_more_than_so_many_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_station, "MOST_CONNECTIONS", 10)
    path = Path()
    for port in range(1000, 1100):
        path.fixed.out.take(Segment(Flow(FIXED, port, MOBILE, PORT), 0, 0, SYN, 1000, syn=SynOptions(1000)))
    path.run(until=SECOND)
    counters = path.splitter.counters()
    assert len(path.splitter._hosts["wired"]._receivers) <= 10
    assert counters.refusals == 90


def test_the_same_ports_again_while_the_last_connection_is_not_over_are_refused() -> None:
    path = Path()
    path.listen(path.mobile)
    path.send(path.fixed, 1000)
    # the base station has closed first towards the mobile host: TIME-WAIT there
    path.run(until=2 * SECOND)
    assert path.sent[0].complete
    again = Stack(path.clock, FIXED, path.to_base, Random(4))
    path.fixed = again
    sender = transfers.send(again, MOBILE, PORT, PLAIN, limit=1000, done=path.sent.append)
    path.run()
    assert sender.connected
    assert path.sent[1].error == "reset by the peer"
    path.assert_nothing_left()


LOSSY = {"rate_bps": 1_600_000, "delay_ms": 5, "errors": {"model": "exponential", "mean_spacing_bytes": 32_000}}


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_scenario_with_split_connections(direction: str) -> None:
    run = model(
        tcp="newreno",
        link={"scheme": "split", "split_buffer_bytes": 30_000},
        channel=LOSSY,
        wired={"rate_bps": 10_000_000, "delay_ms": 5},
        workloads=[
            {"kind": "bulk", "bytes": 1_000_000, "direction": direction},
            {"kind": "short", "bytes": 3000, "count": 5, "gap_ms": 100, "direction": direction},
            {"kind": "onoff-udp", "rate_bps": 50_000, "packet_bytes": 200, "duration_s": 3, "direction": direction},
        ],
    )
    one, again = simulate(run), simulate(run)
    assert asdict(one) == asdict(again)
    assert (one.finished, one.intact, one.end_to_end_acks) == (True, True, False)
    assert [flow.bytes for flow in one.flows[:2]] == [1_000_000, 15_000]
    # datagrams pass by
    assert one.flows[2].bytes > 0
    assert one.split is not None
    assert (one.split.connections, one.split.refusals) == (6, 0)
    assert 10_000 < one.split.peak_bytes <= 30_000
    assert one.link[direction].corruption_losses > 10
    if direction == "down":
        # the base station repairs what the air loses, and h2 does not notice
        assert one.split.retransmissions > 10
        assert one.timeouts == 0


def test_the_wireless_side_speaks_the_wired_ones_tcp_with_the_schemes_recovery() -> None:
    run = model(tcp="sack", tcp_h2="reference", mtu=1000, link={"scheme": "split", "split_buffer_bytes": 100_000})
    plan = resolve(run)
    split: Any = plan.split
    wired, wireless = split.wired, split.wireless
    assert (wired.recovery.name, wireless.recovery.name) == ("newreno", "reno")
    assert wireless == wired.but(recovery="reno")
    assert wired.handshake.mss == 960
    # without window scaling a window has 16 bits
    assert wired.buffers.receive_buffer == 65_535
    network = LinkNetwork(plan)
    assert network.splitter is not None
    assert network.splitter.buffer_bytes == 100_000
