"""Two agents across a network, with Linux's TCP and ours: what is sent arrives, and what is reported is true."""

import re
import signal
import socket
from collections.abc import Callable, Sequence
from dataclasses import replace
from ipaddress import IPv4Address
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from common.sequence import MASK
from hosts.engine.results import EndReport, TcpReceived, TcpSent, UdpReceived, UdpSent
from hosts.kernel.namespaces import run_in
from hosts.kernel.network import Network
from hosts.messages import Done, Error, FlowBroken, Pause, Stop
from hosts.workloads import Workload
from hosts.workloads.bulk import Bulk
from hosts.workloads.onoff_udp import OnOffUdp
from hosts.workloads.short import Short
from tcpip.segment import ACK, CWR, ECE, ECT0, FIN, NOT_ECT, RST, SYN, Flow, Segment
from tcpip.wire import emit, parse
from telemetry.records import FlowRecord, TcpRecord
from tests.harness.namespaces import interface_counters, tcp_counters
from tests.harness.waiting import PATIENCE_S, wait_for
from tests.hosts.harness import (
    HOSTS,
    AgentProcess,
    Bridge,
    Direction,
    Pair,
    agents,
    configs,
    go,
    needs_network,
    of,
    run,
    socket_at,
)

pytestmark = [*needs_network, pytest.mark.patient]

#: of the 710 segments of a megabyte none is lost once in 2e9 times, no more than two once in 5e6
LOSS = 0.03
LINUX: Pair = ("cubic", "cubic")
OURS: Pair = ("user:sack", "user:sack")


def by_tcp(*pairs: Pair) -> pytest.MarkDecorator:
    """Run a test with each of these, the TCPs of h1 and h2."""
    return pytest.mark.parametrize("pair", pairs, ids="-".join)


def is_ours(tcp: str) -> bool:
    return tcp.startswith("user:")


def segments(bridge: Bridge) -> list[tuple[Direction, Segment]]:
    """What TCP has put on the link; `parse` refuses what has a wrong checksum."""
    return [(way, parse(packet)) for way, packet in bridge.passed if packet[9] == socket.IPPROTO_TCP]


def again(data: Sequence[Segment]) -> list[Segment]:
    """Those whose octets had all been sent before."""
    found, first, highest = [], data[0].seq, 0
    for segment in data:
        end = (segment.seq - first & MASK) + segment.length
        if end <= highest:
            found.append(segment)
        highest = max(highest, end)
    return found


Lose = Callable[[Direction, bytes], bool]


def loses(share: float, seed: int) -> Lose:
    """Loses a share of all packets but SYNs: one that is sent again asks for no ECN (RFC 3168 section 6.1.1.1).

    Which packet a draw is for depends on the hosts' timing, so tests count with any seed.
    """
    rng = Random(seed)

    def lose(direction: Direction, packet: bytes) -> bool:
        syn = packet[9] == socket.IPPROTO_TCP and parse(packet).flags & SYN
        return not syn and rng.random() < share

    return lose


def dies_after(survivors: int) -> Lose:
    """Loses all but the first packets."""
    left = iter(range(survivors))
    return lambda direction, packet: next(left, None) is None


def dies_with_data(survivors: int) -> Lose:
    """Loses all from the first segment of new data after so many packets: that segment never arrives."""
    late = dies_after(survivors)
    sent: set[int] = set()
    dead = False

    def lose(direction: Direction, packet: bytes) -> bool:
        nonlocal dead
        segment, is_late = parse(packet), late(direction, packet)
        new = direction == "up" and segment.length > 0 and segment.seq not in sent
        if new:
            sent.add(segment.seq)
        dead |= new and is_late
        return dead

    return lose


def answers_a_repeated_fin(way: Direction, reset: Segment, passed: Sequence[tuple[Direction, Segment]]) -> bool:
    """Whether a reset is what RFC 9293 has for what a FIN sent again brings to an end that has closed by then.

    The end that closes last is gone once its own FIN is acknowledged (section 3.10.7.1). Then come the other's FIN
    again, where the acknowledgement of the first was late or lost, and a second acknowledgement of its own, where it
    was sent twice.
    """
    fins = [(other, segment) for other, segment in passed if segment.flags & FIN]
    theirs = [segment for other, segment in fins if other != way and segment.ack == reset.seq]
    if any(first.seq == again.seq and first.flow == again.flow for first, again in pairwise(theirs)):
        return True
    own = [segment for other, segment in fins if other == way and segment.flow == reset.flow]
    return sum((segment.seq + segment.length + 1) % (1 << 32) == reset.seq for segment in own) > 1


@by_tcp(("user:sack-ecn", "cubic-ecn"), ("cubic-ecn", "user:sack-ecn"), ("user:sack-ecn", "user:sack-ecn"))
@pytest.mark.parametrize("loss", [0, LOSS])
def test_both_ways_intact_with_every_option_agreed(net: Network, pair: Pair, loss: float) -> None:
    size = 1_000_000
    work: list[Workload] = [
        Bulk(flow="up", bytes=size, port=5001),
        Bulk(flow="down", bytes=size, port=6001, direction="down"),
    ]
    with Bridge(net, loses(loss, seed=1)) as bridge, agents(*configs(net, pair, work)) as started:
        go(started)
        for agent in started:
            agent.wait_for(Done)
        # what the peer says to a host that is gone comes later
        passed = segments(bridge)
    results = [report for agent in started for report in agent.all(EndReport)]
    for flow, sender in zip(("up", "down"), pair, strict=True):
        [sent], [received] = of(results, TcpSent, flow), of(results, TcpReceived, flow)
        assert (sent.complete, received.complete, received.intact) == (True, True, True)
        assert sent.sha256 == received.sha256
        assert sent.bytes == received.bytes == sent.bytes_acked == size
        assert (sent.retransmits > 0) == (sent.bytes_sent > size)
        # without loss the kernel may probe on a busy machine, two round trips after the last ACK (RFC 8985 section 7)
        if loss or is_ours(sender):
            assert (sent.retransmits > 0) == (loss > 0)
    # nobody found anything that belongs to no connection
    assert not [
        segment for way, segment in passed if segment.flags & RST and not answers_a_repeated_fin(way, segment, passed)
    ]
    for port in (5001, 6001):
        ours = [segment for _, segment in passed if port in (segment.flow.source_port, segment.flow.destination_port)]
        syns = [segment for segment in ours if segment.flags & SYN]
        asked, agreed = syns[0], next(segment for segment in syns if segment.flags & ACK)
        for syn in (asked, agreed):
            assert syn.syn is not None
            assert (syn.syn.mss, syn.syn.sack_permitted) == (1410, True)
            assert syn.syn.window_scale is not None
            assert syn.syn.window_scale > 0
        assert asked.flags & (ECE | CWR) == ECE | CWR
        assert agreed.flags & (ECE | CWR) == ECE
        assert all(segment.timestamps is not None for segment in ours)
        data = [segment for segment in ours if segment.length]
        assert max(segment.length for segment in data) == 1410 - 12
        # what is sent again is not ECN-capable (RFC 3168 section 6.1.5)
        assert {segment.ecn for segment in data if segment not in again(data)} == {ECT0}
        assert {segment.ecn for segment in again(data)} <= {NOT_ECT}
        assert any(segment.sack for segment in ours) == (loss > 0)


@by_tcp(LINUX, ("user:enhanced", "user:enhanced"), ("user:reference", "reference"))
def test_all_workloads_arrive_intact(net: Network, pair: Pair) -> None:
    work: list[Workload] = [
        Bulk(bytes=300_000),
        Bulk(flow="par", bytes=100_000, flows=3, direction="down", port=6000),
        Short(bytes=20_000, count=3, gap_ms=5),
        OnOffUdp(rate_bps=400_000, on_ms=40, off_ms=20, packet_bytes=500, duration_s=0.5, drain_s=1),
    ]
    with Bridge(net) as bridge:
        started, results = run(net, pair, work)
    for flow, connections, size in (
        ("bulk", 1, 300_000),
        ("par-1", 1, 100_000),
        ("par-2", 1, 100_000),
        ("par-3", 1, 100_000),
        ("short", 3, 20_000),
    ):
        sent, received = of(results, TcpSent, flow), of(results, TcpReceived, flow)
        assert len(sent) == len(received) == connections
        for a, b in zip(sent, received, strict=True):
            assert a.bytes == b.bytes == a.bytes_acked == size
            assert a.sha256 == b.sha256
            assert (a.complete, b.complete, b.intact) == (True, True, True)
            assert 0 <= a.started_ns < a.connected_ns < b.last_byte_ns <= b.finished_ns < a.finished_ns
    shorts = of(results, TcpSent, "short")
    assert len({result.sha256 for result in shorts}) == 3
    for before, after in pairwise(shorts):
        assert after.started_ns >= before.finished_ns + 5_000_000
    last = {record.flow: record.bytes_received for agent in started for record in agent.all(FlowRecord)}
    assert (last["bulk"], last["short"]) == (300_000, 60_000)
    # no bundle reached the radio, and no packet exceeded the MTU
    assert max(len(packet) for _, packet in bridge.passed) == 1450

    # UDP is the kernel's business
    [sent_udp], [received_udp] = of(results, UdpSent, "udp"), of(results, UdpReceived, "udp")
    assert received_udp.packets == sent_udp.packets == received_udp.highest_sequence + 1 > 0
    assert received_udp.bytes == sent_udp.packets * (500 - 28)
    assert sum(len(packet) == 500 for _, packet in bridge.passed) == sent_udp.packets


def test_the_receive_buffer_can_be_given(net: Network) -> None:
    with Bridge(net) as bridge:
        _, results = run(net, OURS, [Bulk(bytes=100_000)], receive_buffer_bytes=8192)
    [sent] = of(results, TcpSent, "bulk")
    assert (sent.complete, sent.bytes_sent) == (True, 100_000)
    assert {segment.window for way, segment in segments(bridge) if segment.flags & SYN} == {8192}
    assert max(segment.window for _, segment in segments(bridge)) == 8192


@by_tcp(("enhanced", "enhanced"), ("user:sack", "cubic"))
def test_the_probe_sees_a_loss_and_the_duration_is_kept(net: Network, pair: Pair) -> None:
    lost: list[int] = []

    def lose_one(direction: Direction, packet: bytes) -> bool:
        if direction == "up" and len(packet) == 1450 and len(lost) < 40:
            lost.append(parse(packet).seq)
            return len(lost) == 40
        return False

    before = tcp_counters(net.namespaces["h1"])["RetransSegs"]
    with Bridge(net, lose_one) as bridge:
        started, results = run(net, pair, [Bulk(duration_s=0.6)], probe_interval_ms=50)
    records: list[Any] = started[0].all(TcpRecord)
    # Twice the rate asked of the probe, so that a busy machine may miss half of them.
    assert len(records) >= 6
    for earlier, later in pairwise(records):
        assert earlier.time_ns < later.time_ns
        assert earlier.bytes_acked <= later.bytes_acked
        assert earlier.retransmits <= later.retransmits
    min_rto_ms = 1000 if is_ours(pair[0]) else 200
    assert all(record.cwnd_bytes >= 1398 and record.rto_ms >= min_rto_ms for record in records)
    assert all(record.srtt_ms > 0 and record.timeouts == 0 for record in records)
    final = records[-1]
    [sent], [received] = of(results, TcpSent, "bulk"), of(results, TcpReceived, "bulk")
    assert final.ssthresh_bytes is not None
    if is_ours(pair[0]):
        resent = len(again([segment for way, segment in segments(bridge) if way == "up" and segment.length]))
    else:
        resent = tcp_counters(net.namespaces["h1"])["RetransSegs"] - before
    assert 1 <= final.retransmits == sent.retransmits == resent
    assert final.bytes_acked == sent.bytes == received.bytes
    assert received.intact
    assert 0 < received.bytes_at_duration <= received.bytes
    assert sent.finished_ns >= 600_000_000


@pytest.mark.parametrize(("profile", "count"), [("reference", 1), ("enhanced", 4), ("cubic", 10)])
def test_the_initial_window_is_the_profiles(net: Network, profile: str, count: int) -> None:
    """No ACK passes until a segment comes twice: what came once before it is the first flight."""
    flight: list[int] = []
    retransmitted = False

    def hold_acks(direction: Direction, packet: bytes) -> bool:
        nonlocal retransmitted
        segment = parse(packet)
        if direction == "down":
            return not retransmitted and not segment.flags & SYN
        if segment.length and not retransmitted:
            retransmitted = segment.seq in flight
            if not retransmitted:
                flight.append(segment.seq)
        return False

    both = configs(net, (profile, profile), [Bulk(bytes=40_000)])
    # Tail loss probes would send new data while no ACK comes.
    run_in(net.namespaces["h1"], lambda: Path("/proc/sys/net/ipv4/tcp_early_retrans").write_text("0"))
    with Bridge(net, hold_acks), agents(*both) as started:
        go(started)
        assert started[0].wait_for(EndReport).result.complete
        assert of([started[1].wait_for(EndReport)], TcpReceived, "bulk")[0].intact
    assert len(flight) == count


# -- ends ----------------------------------------------------------------------------------------------------


@by_tcp(LINUX, OURS)
def test_a_dead_link_ends_in_bounded_time(net: Network, pair: Pair) -> None:
    work = [Bulk(duration_s=0.2, drain_s=0.1)]
    # an initial window is more than that: even a slow machine sends it in time
    with Bridge(net, dies_with_data(10)), agents(*configs(net, pair, work)) as started:
        go(started)
        wait_for(lambda: started[1].all(FlowRecord))
        sent = started[0].wait_for(EndReport).result
        started[1].send(Stop())
        [received] = of([started[1].wait_for(EndReport)], TcpReceived, "bulk")
    assert (sent.complete, sent.error) == (False, "not drained in time")
    assert (received.complete, received.error) == (False, "stopped")
    assert received.intact
    assert 0 < received.bytes < sent.bytes
    assert received.bytes_at_duration <= received.bytes


@by_tcp(LINUX, OURS)
@pytest.mark.parametrize(("survivors", "error"), [(10, "the sender's end was not heard"), (0, "never connected")])
def test_a_receiver_ends_when_the_senders_end_is_lost(net: Network, pair: Pair, survivors: int, error: str) -> None:
    with Bridge(net, dies_after(survivors)):
        _, results = run(net, pair, [Bulk(duration_s=0.2, drain_s=0.1)])
    [received] = of(results, TcpReceived, "bulk")
    assert (received.complete, received.error, received.intact) == (False, error, True)
    assert (received.bytes > 0) == (survivors > 0)


@by_tcp(LINUX, ("user:sack", "cubic"), ("cubic", "user:sack"), OURS)
def test_a_refused_connection_is_a_result(net: Network, pair: Pair) -> None:
    """Nobody listens at h2: where its TCP is ours, a stack without the port answers."""
    there = configs(net, pair, [])
    here = configs(net, pair, [Short(count=2)])
    with Bridge(net) as bridge, agents(here[0], there[1]) as started:
        go(started)
        started[0].wait_for(Done)
    errors = [report.result.error for report in started[0].all(EndReport)]
    assert errors == ["refused" if is_ours(pair[0]) else "Connection refused"] * 2
    assert [segment.flags & RST for way, segment in segments(bridge) if way == "down"] == [RST, RST]


@by_tcp(LINUX, ("user:sack", "cubic"), ("cubic", "user:sack"), OURS)
def test_closing_stdin_in_the_middle_resets_the_peer(net: Network, pair: Pair) -> None:
    with Bridge(net) as bridge, agents(*configs(net, pair, [Bulk(duration_s=100)])) as [sender, receiver]:
        go([sender, receiver])
        wait_for(lambda: len(receiver.all(FlowRecord)) > 1)
        assert sender.close() == 0
        [received] = of([receiver.wait_for(EndReport)], TcpReceived, "bulk")
        assert receiver.close() == 0
    assert sender.all(EndReport)[0].result.error == "stopped"
    assert (received.complete, received.intact) == (False, True)
    assert received.error in ("reset by the peer", "Connection reset by peer")
    assert any(segment.flags & RST for way, segment in segments(bridge) if way == "up")


def test_a_broken_connection_of_a_standalone_host_begins_again(net: Network) -> None:
    config = configs(net, OURS, [Bulk(duration_s=100)], again_s=0.05, probe_interval_ms=20)
    with Bridge(net), agents(config[0]) as [sender]:
        go([sender])
        assert sender.wait_for(FlowBroken) == FlowBroken(flow="bulk", error="refused")
        with agents(config[1]) as [receiver]:
            go([receiver])
            wait_for(lambda: len(receiver.all(FlowRecord)) > 1)
        wait_for(lambda: FlowBroken(flow="bulk", error="reset by the peer") in sender.all(FlowBroken))


# -- pauses --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("pair", "size"), [(LINUX, 30_000_000), (OURS, 5_000_000)], ids=["linux", "ours"])
def test_paused_senders_send_nothing_new_and_go_on_where_they_stopped(net: Network, pair: Pair, size: int) -> None:
    work: list[Workload] = [
        Bulk(bytes=size, flow="tcp", port=5101),
        OnOffUdp(rate_bps=800_000, on_ms=1000, off_ms=0, duration_s=60, flow="udp", port=5102),
    ]

    def received(agent: AgentProcess, flow: str) -> list[int]:
        """Bytes at each report so far; a flow that has not begun has 0."""
        return [0, *(row.bytes_received for row in agent.all(FlowRecord) if row.flow == flow)]

    with Bridge(net), agents(*configs(net, pair, work, probe_interval_ms=20)) as [sender, receiver]:
        # a transfer too fast to be caught is paused before its first octet
        sender.send(Pause(paused=True))
        go([sender, receiver])
        wait_for(lambda: len(sender.all(TcpRecord)) > 5)
        assert {*received(receiver, "tcp"), *received(receiver, "udp")} == {0}
        sender.send(Pause(paused=False))
        wait_for(lambda: received(receiver, "udp")[-1] > 10_000)
        [result] = of([receiver.wait_for(EndReport)], TcpReceived, "tcp")
        assert (result.bytes, result.intact) == (size, True)
        sender.send(Pause(paused=True))
        wait_for(lambda: received(receiver, "udp")[-8:].count(received(receiver, "udp")[-1]) == 8)


def test_a_socket_that_is_reset_while_paused_is_a_result(net: Network) -> None:
    with Bridge(net), agents(*configs(net, LINUX, [Bulk(duration_s=60)])) as [sender, receiver]:
        go([sender, receiver])
        wait_for(lambda: receiver.all(FlowRecord))
        sender.send(Pause(paused=True))
        receiver.send(Stop())
        sender.send(Pause(paused=False))
        assert sender.wait_for(EndReport).result.complete is False


# -- errors --------------------------------------------------------------------------------------------------


def test_a_host_that_did_not_keep_up_says_so(net: Network) -> None:
    h1, h2 = (int(IPv4Address(net.address(host))) for host in HOSTS)
    stray = emit(Segment(Flow(h2, 5000, h1, 5000), 1, 0, RST, 0))
    [config, _] = configs(net, ("user:sack", "cubic"), [Bulk(duration_s=100)])
    with Bridge(net), agents(config) as [agent], socket_at(net, "h2", socket.SOCK_RAW, socket.IPPROTO_RAW) as theirs:

        def flood() -> int:
            for _ in range(500):
                theirs.sendto(stray, (net.address("h1"), 0))
            return interface_counters(net.namespaces["h1"])["tcp0"]["tx_dropped"]

        go([agent])
        agent.process.send_signal(signal.SIGSTOP)
        try:
            wait_for(flood)
        finally:
            agent.process.send_signal(signal.SIGCONT)
        agent.send(Stop())
        said = agent.wait_for(Error).text
        assert re.fullmatch(r"\d+ packets were lost at tcp0: this machine is too slow for our TCP at such rates", said)
        assert agent.process.wait(PATIENCE_S) == 2


def test_a_port_in_use_is_one_line(net: Network) -> None:
    with run_in(net.namespaces["h2"], lambda: socket.create_server(("0.0.0.0", 5001))):
        agent = AgentProcess(configs(net, LINUX, [Bulk(bytes=1)])[1])
        assert agent.wait_for(Error) == Error(text="port 5001 is already in use on host h2")
        assert agent.close() == 2


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"namespace": "fadelab-none-h1"}, "no network namespace fadelab-none-h1: start its run first"),
        ({"tcp": "user:cubic"}, "no userspace TCP 'user:cubic': choose from user:bbr3, user:bsd"),
        ({"tcp": "user:sack-cubic", "tcp_changes": {"growth": {"beta": 2.0}}}, "beta is 2.0: must be below 1"),
        ({"tcp": "user:sack", "peer": "10.77.1.2"}, "10.77.1.2 is an address of this host: the peer must be another"),
    ],
)
def test_a_wrong_configuration_is_one_line(net: Network, change: dict[str, Any], complaint: str) -> None:
    agent = AgentProcess(replace(configs(net, LINUX, [])[0], **change))
    assert agent.wait_for(Error).text.startswith(complaint)
    assert agent.close() == 2
