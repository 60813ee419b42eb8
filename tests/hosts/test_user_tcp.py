"""Agents that speak our TCP, with each other and with Linux: what is sent arrives, and what is reported is true."""

import re
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from ipaddress import IPv4Address
from itertools import pairwise
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from common.sequence import MASK
from common.sides import Host
from hosts.kernel import profiles as kernel_profiles
from hosts.kernel.namespaces import run_in
from hosts.kernel.network import Network
from hosts.kernel.probes import interface_counters, tcp_counters
from hosts.kernel.profiles import kernel_profile
from hosts.kernel.tap import Tap
from hosts.workloads import Workload, agent_config
from hosts.workloads.bulk import Bulk
from hosts.workloads.onoff_udp import OnOffUdp
from hosts.workloads.short import Short
from tcpip.options import ELN, SMART_PERMITTED, smart_of
from tcpip.segment import ACK, CWR, ECE, ECT0, NOT_ECT, RST, SYN, Flow, Segment
from tcpip.wire import emit, parse
from tests.hosts.harness import (
    PATIENCE_S,
    AgentProcess,
    Bridge,
    Direction,
    agents,
    go,
    needs_network,
    of,
    run_agents,
    run_name,
    wait_until,
)
from tests.hosts.tcp.pair import with_options

pytestmark = [*needs_network, pytest.mark.patient]

HOSTS: tuple[Host, Host] = ("h1", "h2")
#: of the 710 segments of a megabyte none is lost once in 2e9 times, no more than two once in 5e6
LOSS = 0.03
#: what h1 and h2 speak
Pair = tuple[str, str]
PAIRS: tuple[Pair, ...] = (
    ("user:sack-ecn", "cubic-ecn"),
    ("cubic-ecn", "user:sack-ecn"),
    ("user:sack-ecn", "user:sack-ecn"),
)


@pytest.fixture(scope="module")
def net() -> Iterator[Network]:
    with Network(run_name(), mtu=1450) as network:
        yield network


def configs(net: Network, pair: Pair, work: Sequence[Workload], **more: Any) -> list[dict[str, Any]]:
    """Both hosts' configurations, after the kernels were given theirs."""
    made = []
    for host, peer, tcp in zip(HOSTS, reversed(HOSTS), pair, strict=True):
        kernels = kernel_profile(tcp)
        kernel_profiles.apply(net.namespaces[host], kernels)
        namespace, delayed_ack = net.namespaces[host], kernels.delayed_ack
        made.append(
            agent_config(
                host, work, peer=net.address(peer), namespace=namespace, tcp=tcp, delayed_ack=delayed_ack, **more
            )
        )
    return made


def run(
    net: Network, pair: Pair, work: Sequence[Workload], **more: Any
) -> tuple[list[AgentProcess], list[dict[str, Any]]]:
    """Run workloads to their end; the agents (ended) and all results."""
    return run_agents(*configs(net, pair, work, **more))


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


def loses(share: float, seed: int) -> Callable[[Direction, bytes], bool]:
    """Loses a share of all packets but SYNs: one that is sent again asks for no ECN (RFC 3168 section 6.1.1.1).

    Which packet a draw is for depends on the hosts' timing, so tests count with any seed.
    """
    rng = Random(seed)

    def lose(direction: Direction, packet: bytes) -> bool:
        syn = packet[9] == socket.IPPROTO_TCP and parse(packet).flags & SYN
        return not syn and rng.random() < share

    return lose


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@pytest.mark.parametrize("loss", [0, LOSS])
def test_both_ways_intact_with_every_option_agreed(net: Network, pair: Pair, loss: float) -> None:
    size = 1_000_000
    work: list[Workload] = [
        Bulk(flow="up", bytes=size, port=5001),
        Bulk(flow="down", bytes=size, port=6001, direction="down"),
    ]
    before = {host: tcp_counters(net.namespaces[host]) for host in HOSTS}
    with Bridge(net, loses(loss, seed=1)) as bridge, agents(*configs(net, pair, work)) as started:
        go(started)
        for agent in started:
            agent.wait_for("done")
        # what the peer says to a host that is gone comes later
        passed = segments(bridge)
        after = {host: tcp_counters(net.namespaces[host]) for host in HOSTS}
    results = [result for agent in started for result in agent.all("result")]
    for flow, sender in zip(("up", "down"), pair, strict=True):
        [sent], [received] = of(results, "sender", flow), of(results, "receiver", flow)
        assert (sent["complete"], received["complete"], received["intact"]) == (True, True, True)
        assert sent["sha256"] == received["sha256"]
        assert sent["bytes"] == received["bytes"] == sent["bytes_acked"] == size
        assert (sent["retransmits"] > 0) == (sent["bytes_sent"] > size)
        # without loss the kernel may probe on a busy machine, two round trips after the last ACK (RFC 8985 section 7)
        if loss or sender.startswith("user:"):
            assert (sent["retransmits"] > 0) == (loss > 0)
    # nobody found anything that belongs to no connection, nor did the kernels behind our stacks see a segment
    assert not [segment for _, segment in passed if segment.flags & RST]
    for host, tcp in zip(HOSTS, pair, strict=True):
        if tcp.startswith("user:"):
            assert [after[host][name] - before[host][name] for name in ("InSegs", "OutSegs", "OutRsts")] == [0, 0, 0]

    for port in (5001, 6001):
        ours = [segment for _, segment in passed if port in (segment.flow.source_port, segment.flow.destination_port)]
        syns = [segment for segment in ours if segment.flags & SYN]
        asked, agreed = syns[0], next(segment for segment in syns if segment.flags & ACK)
        for syn in (asked, agreed):
            assert syn.syn is not None
            assert (syn.syn.mss, syn.syn.sack_permitted) == (1410, True)
            assert syn.syn.window_scale is not None
            assert syn.syn.window_scale > 0
            assert syn.timestamps is not None
        assert asked.flags & (ECE | CWR) == ECE | CWR
        assert agreed.flags & (ECE | CWR) == ECE
        assert all(segment.timestamps is not None for segment in ours)
        data = [segment for segment in ours if segment.length]
        assert max(segment.length for segment in data) == 1410 - 12
        # what is sent again is not ECN-capable (RFC 3168 section 6.1.5)
        assert {segment.ecn for segment in data if segment not in again(data)} == {ECT0}
        assert {segment.ecn for segment in again(data)} <= {NOT_ECT}
        assert any(segment.sack for segment in ours) == (loss > 0)


@pytest.mark.parametrize("pair", [("user:enhanced", "user:enhanced"), ("user:reference", "reference")], ids="-".join)
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
        sent, received = of(results, "sender", flow), of(results, "receiver", flow)
        assert len(sent) == len(received) == connections
        for index, (a, b) in enumerate(zip(sent, received, strict=True)):
            assert a["index"] == b["index"] == index
            assert a["bytes"] == b["bytes"] == a["bytes_acked"] == size
            assert a["sha256"] == b["sha256"]
            assert (a["complete"], b["complete"], b["intact"]) == (True, True, True)
            assert 0 <= a["started_ns"] < a["connected_ns"] < b["last_byte_ns"] <= b["finished_ns"] < a["finished_ns"]
    for before, after in pairwise(of(results, "sender", "short")):
        assert after["started_ns"] >= before["finished_ns"] + 5_000_000
    last = {record["flow"]: record["bytes_received"] for agent in started for record in agent.all("flow")}
    assert (last["bulk"], last["short"]) == (300_000, 60_000)
    assert max(len(packet) for _, packet in bridge.passed) == 1450
    # UDP is the kernel's business
    [sent_udp], [received_udp] = of(results, "sender", "udp"), of(results, "receiver", "udp")
    assert received_udp["packets"] == sent_udp["packets"] > 0


def test_smart_options_cross_the_wire(net: Network) -> None:
    with Bridge(net, loses(LOSS, seed=3)) as bridge:
        _, results = run(net, ("user:smart", "user:smart"), [Bulk(bytes=1_000_000)])
    [sent], [received] = of(results, "sender", "bulk"), of(results, "receiver", "bulk")
    assert (sent["complete"], received["intact"], sent["sha256"]) == (True, True, received["sha256"])
    assert sent["retransmits"] > 0
    passed = segments(bridge)
    assert all(SMART_PERMITTED in segment.extra for _, segment in passed if segment.flags & SYN)
    acks = [segment for way, segment in passed if way == "down" and not segment.flags & SYN]
    repeated = [segment for before, segment in pairwise(acks) if segment.ack == before.ack]
    assert sum(smart_of(segment) is not None for segment in repeated) > 10


class Marking(Bridge):
    """Marks every ACK for a data segment that it has lost, as an ELN marker does."""

    def __init__(self, network: Network, share: float, seed: int) -> None:
        self._lost: set[int] = set()
        self._chance, self._share = Random(seed), share
        super().__init__(network, self._loses)

    def _loses(self, direction: Direction, packet: bytes) -> bool:
        if packet[9] != socket.IPPROTO_TCP:
            return False
        segment = parse(packet)
        lost = segment.length > 0 and self._chance.random() < self._share
        if lost:
            self._lost.add(segment.seq)
        return lost

    def _carry(self, direction: Direction, source: Tap, sink: Tap) -> None:
        marking = SimpleNamespace(write=lambda packet: sink.write(self._mark(packet)))
        super()._carry(direction, source, cast(Tap, marking))

    def _mark(self, packet: bytes) -> bytes:
        if packet[9] != socket.IPPROTO_TCP or (segment := parse(packet)).length or segment.ack not in self._lost:
            return packet
        return emit(with_options(segment, ELN))


def test_a_sender_that_is_told_of_corruption_keeps_its_window(net: Network) -> None:
    ssthresh = {}
    for tcp in ("user:sack", "user:sack-eln"):
        with Marking(net, 0.01, seed=4):
            started, results = run(net, (tcp, "cubic"), [Bulk(bytes=1_000_000)])
        [sent], [received] = of(results, "sender", "bulk"), of(results, "receiver", "bulk")
        assert (sent["complete"], received["intact"], sent["sha256"]) == (True, True, received["sha256"])
        assert sent["retransmits"] > 0
        last = started[0].all("tcp")[-1]
        ssthresh[tcp] = last["ssthresh_bytes"]
        assert last["timeouts"] > 0 or (ssthresh[tcp] is None) == (tcp == "user:sack-eln")
    assert ssthresh["user:sack"] is not None


def test_the_receive_buffer_can_be_given(net: Network) -> None:
    with Bridge(net) as bridge:
        _, results = run(net, ("user:sack", "user:sack"), [Bulk(bytes=100_000)], receive_buffer_bytes=8192)
    [sent] = of(results, "sender", "bulk")
    assert (sent["complete"], sent["bytes_sent"]) == (True, 100_000)
    assert {segment.window for way, segment in segments(bridge) if segment.flags & SYN} == {8192}
    assert max(segment.window for _, segment in segments(bridge)) == 8192


def test_the_probe_tells_of_our_connections(net: Network) -> None:
    lost: list[int] = []

    def lose_one(direction: Direction, packet: bytes) -> bool:
        if direction == "up" and len(packet) == 1450 and len(lost) < 40:
            lost.append(parse(packet).seq)
            return len(lost) == 40
        return False

    with Bridge(net, lose_one) as bridge:
        started, results = run(net, ("user:sack", "cubic"), [Bulk(duration_s=0.6)], probe_interval_ms=50)
    records = started[0].all("tcp")
    assert len(records) >= 6
    for earlier, later in pairwise(records):
        assert earlier["time_ns"] < later["time_ns"]
        assert earlier["bytes_acked"] <= later["bytes_acked"]
        assert earlier["retransmits"] <= later["retransmits"]
    assert all(record["cwnd_bytes"] >= 1398 and record["rto_ms"] >= 1000 for record in records)
    assert all(record["srtt_ms"] > 0 and record["timeouts"] == 0 for record in records)
    final = records[-1]
    [sent], [received] = of(results, "sender", "bulk"), of(results, "receiver", "bulk")
    assert final["ssthresh_bytes"] is not None
    data = [segment for way, segment in segments(bridge) if way == "up" and segment.length]
    assert 1 <= final["retransmits"] == sent["retransmits"] == len(again(data))
    assert final["bytes_acked"] == sent["bytes"] == received["bytes"]
    assert received["intact"]
    assert 0 < received["bytes_at_duration"] <= received["bytes"]
    assert sent["finished_ns"] >= 600_000_000


def test_a_dead_link_ends_in_bounded_time(net: Network) -> None:
    carried = 0

    def die(direction: Direction, packet: bytes) -> bool:
        nonlocal carried
        carried += 1
        return carried > 100

    pair = ("user:sack", "user:sack")
    with Bridge(net, die), agents(*configs(net, pair, [Bulk(duration_s=0.2, drain_s=0.1)])) as started:
        go(started)
        wait_until(lambda: len(started[1].all("flow")) > 0)
        sent = started[0].wait_for("result")["result"]
        started[1].send({"stop": True})
        received = started[1].wait_for("result")["result"]
    assert (sent["complete"], sent["error"]) == (False, "not drained in time")
    assert (received["complete"], received["error"]) == (False, "stopped")
    assert received["intact"]
    assert 0 < received["bytes"] < sent["bytes"]


@pytest.mark.parametrize(("survivors", "error"), [(100, "the sender's end was not heard"), (0, "never connected")])
def test_a_receiver_ends_when_the_senders_end_is_lost(net: Network, survivors: int, error: str) -> None:
    carried = 0

    def die(direction: Direction, packet: bytes) -> bool:
        nonlocal carried
        carried += 1
        return carried > survivors

    with Bridge(net, die):
        _, results = run(net, ("user:sack", "user:sack"), [Bulk(duration_s=0.2, drain_s=0.1)])
    [received] = of(results, "receiver", "bulk")
    assert (received["complete"], received["error"], received["intact"]) == (False, error, True)
    assert (received["bytes"] > 0) == (survivors > 0)


@pytest.mark.parametrize("pair", [("user:sack", "cubic"), ("cubic", "user:sack"), ("user:sack", "user:sack")])
def test_a_refused_connection_is_a_result(net: Network, pair: Pair) -> None:
    """Nobody listens at h2: where its TCP is ours, a stack without the port answers."""
    there = configs(net, pair, [])
    here = configs(net, pair, [Short(count=2)])
    with Bridge(net) as bridge, agents(here[0], there[1]) as started:
        go(started)
        started[0].wait_for("done")
    errors = [result["error"] for result in started[0].all("result")]
    assert errors == ["refused" if pair[0].startswith("user:") else "Connection refused"] * 2
    assert [segment.flags & RST for way, segment in segments(bridge) if way == "down"] == [RST, RST]


@pytest.mark.parametrize("pair", [("user:sack", "cubic"), ("cubic", "user:sack"), ("user:sack", "user:sack")])
def test_stopping_in_the_middle_resets_the_peer(net: Network, pair: Pair) -> None:
    with Bridge(net) as bridge, agents(*configs(net, pair, [Bulk(duration_s=100)])) as started:
        go(started)
        wait_until(lambda: len(started[1].all("flow")) > 1)
        assert started[0].close() == 0
        received = started[1].wait_for("result")["result"]
    assert started[0].all("result")[0]["error"] == "stopped"
    assert (received["complete"], received["intact"]) == (False, True)
    assert received["error"] in ("reset by the peer", "Connection reset by peer")
    assert any(segment.flags & RST for way, segment in segments(bridge) if way == "up")


def test_paused_senders_send_nothing_new_and_go_on_where_they_stopped(net: Network) -> None:
    size = 5_000_000

    def received(agent: AgentProcess) -> list[int]:
        """Bytes at each report so far."""
        return [0, *(row["bytes_received"] for row in agent.all("flow"))]

    config = configs(net, ("user:sack", "user:sack"), [Bulk(bytes=size)], probe_interval_ms=20)
    with Bridge(net), agents(*config) as [sender, receiver]:
        # a transfer too fast to be caught is paused before its first octet
        sender.send({"pause": True})
        go([sender, receiver])
        wait_until(lambda: len(sender.all("tcp")) > 5)
        assert {*received(receiver)} == {0}
        sender.send({"pause": False})
        result = receiver.wait_for("result")["result"]
        assert (result["bytes"], result["intact"]) == (size, True)


def test_a_broken_connection_of_a_standalone_host_begins_again(net: Network) -> None:
    config = configs(net, ("user:sack", "user:sack"), [Bulk(duration_s=100)], again_s=0.05, probe_interval_ms=20)
    with Bridge(net), agents(config[0]) as [sender]:
        go([sender])
        assert sender.wait_for("broken")["broken"] == {"flow": "bulk", "error": "refused"}
        with agents(config[1]) as [receiver]:
            go([receiver])
            wait_until(lambda: len(receiver.all("flow")) > 1)
        wait_until(lambda: {"flow": "bulk", "error": "reset by the peer"} in sender.all("broken"))


def test_a_host_that_did_not_keep_up_says_so(net: Network) -> None:
    def raw() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        made.setsockopt(socket.IPPROTO_IP, socket.IP_HDRINCL, 1)
        return made

    h1, h2 = (int(IPv4Address(net.address(host))) for host in HOSTS)
    stray = emit(Segment(Flow(h2, 5000, h1, 5000), 1, 0, RST, 0))
    [config, _] = configs(net, ("user:sack", "cubic"), [Bulk(duration_s=100)])
    with Bridge(net), agents(config) as [agent], run_in(net.namespaces["h2"], raw) as theirs:
        go([agent])
        agent.process.send_signal(signal.SIGSTOP)
        try:
            give_up_at = time.monotonic() + PATIENCE_S
            while not interface_counters(net.namespaces["h1"])["tcp0"]["tx_dropped"]:
                assert time.monotonic() < give_up_at, "nothing was lost"
                for _ in range(500):
                    theirs.sendto(stray, (net.address("h1"), 0))
        finally:
            agent.process.send_signal(signal.SIGCONT)
        agent.send({"stop": True})
        said = agent.wait_for("error")["error"]
        assert re.fullmatch(r"\d+ packets were lost at tcp0: this machine is too slow for our TCP at such rates", said)
        assert agent.process.wait(PATIENCE_S) == 2


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"tcp": "user:cubic"}, "no userspace TCP 'user:cubic': choose from user:bsd, user:bsd-newreno"),
        ({"peer": "10.77.1.2"}, "10.77.1.2 is an address of this host: the peer must be another one"),
    ],
)
def test_a_wrong_configuration_is_one_line(net: Network, change: dict[str, Any], complaint: str) -> None:
    agent = AgentProcess(configs(net, ("user:sack", "user:sack"), [])[0] | change)
    assert agent.wait_for("error")["error"].startswith(complaint)
    assert agent.close() == 2


def test_a_host_speaks_one_tcp_at_a_time(net: Network) -> None:
    config = configs(net, ("user:sack", "user:sack"), [])[0]
    with agents(config):
        agent = AgentProcess(config)
        assert agent.wait_for("error")["error"] == "TUN tcp0 is already open: end the other host on it"
        assert agent.close() == 2
