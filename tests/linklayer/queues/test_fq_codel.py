"""FQ-CoDel: turns of flows, a full queue, CoDel within a flow, the longest wait.

Read first: RFC 8290. tests/conformance/test_queues.py has what all queues keep to, tests/tcpip/test_access.py what a
flow is.
"""

from collections import Counter
from collections.abc import Sized
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.units import MS
from linklayer.queues import QueueContext
from linklayer.queues.codel import CoDel, CoDelOptions
from linklayer.queues.fq_codel import FqCoDel, FqCoDelOptions
from tcpip.segment import ACK, CE, ECT0, NOT_ECT, Flow, Segment

MTU = 1500
#: never too long a wait for CoDel
PATIENT: dict[str, Any] = {"target_ms": 1e6, "interval_ms": 1e6}


def fq_codel(limit_bytes: int | None = None, *, seed: int = 1, **options: Any) -> FqCoDel:
    options = {"limit_packets": 10_000, **options}
    return FqCoDel(FqCoDelOptions(**options), QueueContext(limit_bytes=limit_bytes, rng=Random(seed), packet_time_ns=1))


def packet(flow: int, nbytes: int = MTU, ecn: int = NOT_ECT) -> Segment:
    """A packet of a flow, which its source port names."""
    return Segment(Flow(1, flow, 2, 80), 1, 1, ACK, 700, nbytes - 40, ecn=ecn)


def port(packet: Sized | None) -> int:
    assert isinstance(packet, Segment)
    return packet.flow.source_port


# -- turns ------------------------------------------------------------------------------------------------------------


def test_two_flows_take_turns_and_a_third_goes_first() -> None:
    """Section 4.2, with packets of one quantum: each flow's credit is spent by one packet."""
    queue = fq_codel(**PATIENT)
    for flow in (1, 1, 1, 1, 2, 2, 2):
        queue.push(packet(flow), 0)
    assert [port(queue.pop(0)) for _ in range(4)] == [1, 2, 1, 2]
    queue.push(packet(3, 100), 0)
    assert [port(queue.pop(0)) for _ in range(4)] == [3, 1, 2, 1]
    assert queue.pop(0) is None


def test_small_packets_share_a_quantum() -> None:
    queue = fq_codel(quantum_bytes=1000, **PATIENT)
    for flow, nbytes in ((1, 400), (1, 400), (1, 400), (1, 400), (2, 1000), (2, 1000)):
        queue.push(packet(flow, nbytes), 0)
    # 1 spends 1200 of 1000, so it has 800 at its next turn
    assert [port(queue.pop(0)) for _ in range(6)] == [1, 1, 1, 2, 1, 2]


def test_a_flow_that_sends_a_packet_at_a_time_does_not_always_go_first() -> None:
    """Section 4.2: a new flow that is empty stays for a round of the old ones."""
    queue = fq_codel(**PATIENT)
    for _ in range(20):
        queue.push(packet(1), 0)
    left = []
    queue.push(packet(2), 0)
    for _ in range(10):
        left.append(port(queue.pop(0)))
        if left[-1] == 2:
            queue.push(packet(2), 0)
    assert left == [1, 2] * 5


def test_a_flow_that_has_rested_begins_anew() -> None:
    queue = fq_codel(**PATIENT)
    for _ in range(9):
        queue.push(packet(1), 0)
    queue.push(packet(2), 0)
    # flow 2 leaves the list in the round behind its packet
    assert [port(queue.pop(0)) for _ in range(5)] == [1, 2, 1, 1, 1]
    queue.push(packet(2), 0)
    assert port(queue.pop(0)) == 2


@given(
    sizes=st.lists(st.integers(40, MTU), min_size=2, max_size=5),
    quantum=st.sampled_from([300, MTU, 4000]),
    data=st.data(),
)
def test_greedy_flows_share_evenly_whatever_their_packets_sizes(
    sizes: list[int], quantum: int, data: st.DataObject
) -> None:
    """Deficit round robin: no flow is ahead of another by more than a quantum and a packet of each (Shreedhar 1995)."""
    queue = fq_codel(quantum_bytes=quantum, **PATIENT)
    for flow, nbytes in enumerate(sizes):
        queue.push(packet(flow, nbytes), 0)
    sent = Counter(dict.fromkeys(range(len(sizes)), 0))
    for _ in range(data.draw(st.integers(50, 300))):
        flow = port(taken := queue.pop(0))
        assert taken is not None
        sent[flow] += len(taken)
        for _ in range(data.draw(st.integers(0, 2)) if queue._flow_of(taken).nbytes else 1):
            queue.push(packet(flow, sizes[flow]), 0)
        assert max(sent.values()) - min(sent.values()) <= quantum + 2 * max(sizes)


@given(
    bulks=st.lists(st.integers(40, MTU), max_size=6),
    begun=st.lists(st.integers(40, MTU), max_size=6),
    quantum=st.sampled_from([300, MTU, 4000]),
)
def test_a_sparse_packet_waits_for_a_turn_of_each_new_flow_and_no_old_one(
    bulks: list[int], begun: list[int], quantum: int
) -> None:
    queue = fq_codel(quantum_bytes=quantum, **PATIENT)

    def fill(first: int, sizes: list[int]) -> None:
        for flow, nbytes in enumerate(sizes, first):
            for _ in range(3 * quantum // nbytes + 3):
                queue.push(packet(flow, nbytes), 0)

    fill(100, bulks)
    while queue._new:
        queue.pop(0)
    fill(200, begun)
    queue.push(sparse := packet(1, 100), 0)
    ahead: Counter[int] = Counter()
    while (taken := queue.pop(0)) is not sparse:
        assert taken is not None
        ahead[port(taken)] += len(taken)
    assert set(ahead) == {*range(200, 200 + len(begun))}
    for flow, nbytes in enumerate(begun, 200):
        # it sends while it has credit: its last packet may begin with the quantum's last octet
        assert quantum <= ahead[flow] < quantum + nbytes


def icmp(number: int) -> bytes:
    return (
        bytes.fromhex("45000054")
        + number.to_bytes(2, "big")
        + bytes.fromhex("40004001 0000 0a4d0102 0a4d0202")
        + bytes(64)
    )


def tcp(source_port: int) -> bytes:
    """The head of a packet of TCP is enough: a queue checks nothing."""
    ports = source_port.to_bytes(2, "big") + (5001).to_bytes(2, "big")
    return bytes.fromhex("450005dc 0001 4000 4006 0000 0a4d0102 0a4d0202") + ports + bytes(MTU - 24)


def test_ping_and_ssh_pass_a_bulk_at_once_as_octets() -> None:
    queue = fq_codel(**PATIENT)
    for _ in range(40):
        queue.push(tcp(40_000), 0)
    # the first turn of the bulk
    queue.pop(0)
    ssh = tcp(22)[:100]
    for each in (icmp(1), ssh, tcp(40_000), icmp(2)):
        queue.push(each, 0)
    assert [queue.pop(0) for _ in range(3)] == [icmp(1), icmp(2), ssh]
    assert {queue.pop(0) for _ in range(39 + 1)} == {tcp(40_000)}


def test_what_cannot_be_read_is_one_flow() -> None:
    queue = fq_codel(**PATIENT)
    odd = [bytes([number]) * MTU for number in range(4)]
    for each in odd:
        queue.push(each, 0)
    queue.push(packet(1), 0)
    assert [queue.pop(0) for _ in range(6)][0::2] == [odd[0], odd[1], odd[3]]


def test_flows_of_one_hash_share_a_queue_and_seeds_tell_hashes_apart() -> None:
    alone = fq_codel(flows=1, **PATIENT)
    for flow in (1, 1, 2):
        alone.push(packet(flow), 0)
    assert [port(alone.pop(0)) for _ in range(3)] == [1, 1, 2]

    def shared(seed: int) -> tuple[frozenset[int], ...]:
        queue = fq_codel(seed=seed, flows=4)
        groups: dict[int, set[int]] = {}
        for flow in range(12):
            groups.setdefault(id(queue._flow_of(packet(flow))), set()).add(flow)
        return tuple(sorted(map(frozenset, groups.values()), key=min))

    assert shared(1) == shared(1)
    assert len({shared(seed) for seed in range(20)}) > 10


def test_two_flows_share_a_queue_as_often_as_chance_has_it() -> None:
    def meet(seed: int) -> bool:
        queue = fq_codel(seed=seed, flows=16)
        return queue._flow_of(packet(1000)) is queue._flow_of(packet(1001))

    # binomial, mean 125 and standard deviation 10.8: five of them
    assert 71 < sum(map(meet, range(2000))) < 179


# -- a full queue -----------------------------------------------------------------------------------------------------


def test_the_flow_with_the_most_octets_loses_its_oldest_packet_when_full() -> None:
    queue = fq_codel(limit_bytes=6000, **PATIENT)
    told: list[Any] = []
    queue.watch(lambda packet, now: told.append((packet, now)))
    many = [packet(1, 500) for _ in range(5)]
    few = [packet(2, 1500) for _ in range(2)]
    for each in (*many, *few):
        assert queue.push(each, 1)
    assert queue.push(packet(3, 700), 2)
    # flow 2 has 3000 octets, flow 1 has 2500 in more packets
    assert told == [(few[0], 2)]
    # the arrival makes flow 1 the fattest
    assert queue.push(packet(1, 1400), 3)
    assert told[1:] == [(many[0], 3)]
    assert (queue.drops, queue.nbytes, len(queue)) == (2, 5600, 7)


def test_an_arrival_that_would_be_the_fattest_flow_alone_is_lost() -> None:
    queue = fq_codel(limit_bytes=3000, **PATIENT)
    told: list[Any] = []
    queue.watch(lambda packet, now: told.append(packet))
    for flow in (1, 2, 3):
        assert queue.push(packet(flow, 900), 0)
    assert not queue.push(packet(4, 901), 0)
    assert not queue.push(packet(4, 9000), 0)
    assert (queue.drops, len(queue), told) == (2, 3, [])


def test_a_limit_in_packets_holds_too_and_one_limit_must_be() -> None:
    queue = fq_codel(limit_packets=2, **PATIENT)
    assert all(queue.push(packet(1), 0) for _ in range(3))
    assert (len(queue), queue.drops) == (2, 1)
    with pytest.raises(ValueError, match="limit_bytes, limit_packets or both"):
        fq_codel(limit_packets=None)


# -- CoDel ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ecn", [NOT_ECT, ECT0])
def test_a_flow_alone_has_codel_as_it_is(ecn: int) -> None:
    fair = fq_codel()
    plain = CoDel(CoDelOptions(limit_packets=10_000), QueueContext(rng=Random(1), packet_time_ns=1))
    for now in range(0, 3000 * MS, MS):
        for queue in (fair, plain):
            queue.push(packet(1, ecn=ecn), now)
        if now >= 20 * MS:
            one, other = fair.pop(now), plain.pop(now)
            assert (one is None) == (other is None)
            assert (fair.drops, fair.marks, len(fair), fair.nbytes) == (
                plain.drops, plain.marks, len(plain), plain.nbytes,
            )  # fmt: skip
    assert fair.drops + fair.marks > 10


def test_codel_notifies_the_flow_that_waits_and_not_the_one_beside_it() -> None:
    queue = fq_codel()
    left = []
    for now in range(0, 2000 * MS, MS):
        queue.push(packet(1, ecn=ECT0), now)
        if now % (10 * MS) == 0:
            queue.push(packet(2, 100, ecn=ECT0), now)
        if now >= 40 * MS:
            left.append(queue.pop(now))
    notified = Counter(port(each) for each in left if each.ecn == CE)  # type: ignore[union-attr]
    assert notified[1] == queue.marks > 10
    assert notified[2] == 0


# -- the longest wait -------------------------------------------------------------------------------------------------


#: ns that pass, then the flow, size and ECN field of a packet that comes, or None: one is taken
STEPS = st.lists(
    st.tuples(
        st.integers(0, 40 * MS),
        st.none() | st.tuples(st.integers(1, 4), st.integers(40, MTU), st.sampled_from([NOT_ECT, ECT0])),
    ),
    max_size=150,
)


@given(steps=STEPS, target_ms=st.sampled_from([1, 5, 1e6]), limit_bytes=st.sampled_from([3000, 30_000]))
def test_no_packet_leaves_that_has_waited_too_long(
    steps: list[tuple[int, tuple[int, int, int] | None]], target_ms: float, limit_bytes: int
) -> None:
    queue = fq_codel(limit_bytes, target_ms=target_ms, interval_ms=20, max_wait_ms=50)
    came: list[int] = []
    waited: list[int] = []
    queue.watch(lambda packet, now: waited.append(now - came[packet.seq]))  # type: ignore[attr-defined]
    now = refused = taken = marked = 0
    for passed, arriving in steps:
        now += passed
        if arriving is not None:
            made = packet(*arriving)
            made.seq = len(came)
            came.append(now)
            refused += not queue.push(made, now)
        else:
            dropped = len(waited)
            left = queue.pop(now)
            if left is not None:
                assert isinstance(left, Segment)
                assert now - came[left.seq] <= 50 * MS
                taken += 1
                marked += left.ecn == CE
            if target_ms == 1e6:
                assert all(each > 50 * MS for each in waited[dropped:])
        assert (queue.marks, queue.drops) == (marked, refused + len(waited))
        assert len(queue) == len(came) - taken - queue.drops


def test_a_packet_that_has_waited_exactly_so_long_leaves_and_one_that_could_be_marked_is_dropped_later() -> None:
    queue = fq_codel(max_wait_ms=50, **PATIENT)
    for number in range(3):
        queue.push(packet(1, ecn=ECT0), number * MS)
    assert queue.pop(50 * MS) is not None
    assert queue.pop(51 * MS + 1) is not None
    assert (queue.drops, queue.marks, len(queue)) == (1, 0, 0)
