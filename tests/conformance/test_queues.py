"""What every queue keeps to; a new one is covered as soon as its file is there.

`tests/testbed/model/test_queues.py` has a transfer through each, which repeats with its seed.
"""

from collections import defaultdict, deque
from collections.abc import Sized
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklayer.queues import QUEUES, Queue, QueueContext
from tcpip.access import ecn_of, flow_key
from tcpip.segment import ACK, CE, ECT0, ECT1, NOT_ECT, Flow, Segment
from tcpip.wire import emit, parse
from testbed.scenario.resolver import resolve
from testbed.scenario.settings import apply_setting
from tests.conformance.options import QUEUE

MS = 1_000_000
LIMIT_BYTES = 9000
FLOW = Flow(0x0A4D0102, 40_000, 0x0A4D0202, 5001)
#: those that keep the order of all packets, not of each flow alone
IN_ONE_ORDER = ("codel", "drop-tail", "red")
#: those that keep a flow's order among the packets of L4S, and among the others
BY_ECN = ("dualpi2",)


def made(name: str, *, limit_bytes: int = LIMIT_BYTES) -> Queue:
    plugin = QUEUES[name]
    options = {key: tuple(value) if isinstance(value, list) else value for key, value in plugin.example.items()}
    context = QueueContext(limit_bytes=limit_bytes, mtu_bytes=1500, packet_time_ns=6 * MS, rng=Random(1))
    return plugin.make(plugin.options(**options), context)


def segment(number: int, ecn: int, port: int = 40_000) -> Segment:
    return Segment(FLOW._replace(source_port=port), number, 1, ACK, 700, 1000, bytes(1000), ecn=ecn)


def packet_of(nbytes: int = 1500, ecn: int = NOT_ECT, port: int = 40_000) -> Segment:
    """A packet of virtual time, which has no octets."""
    return Segment(FLOW._replace(source_port=port), 1, 1, ACK, 700, nbytes - 40, ecn=ecn)


PORTS = st.integers(40_000, 40_003)
PACKETS = st.one_of(
    st.builds(packet_of, st.integers(40, 4000), st.integers(0, 3), PORTS),
    st.builds(
        lambda number, ecn, port: emit(segment(number, ecn, port)), st.integers(0, 2**32 - 1), st.integers(0, 3), PORTS
    ),
    # anything at all, with the beginning of an IP header or not
    st.builds(
        bytes.__add__, st.sampled_from([b"", b"\x45", b"\x45\x02", b"\x60\x20"]), st.binary(min_size=1, max_size=60)
    ),
)
#: milliseconds that pass, then a packet that comes, or None: one is taken
STEPS = st.lists(st.tuples(st.integers(0, 30), st.none() | PACKETS), max_size=200)


def came_as(before: Sized, after: Sized | None) -> bool:
    """Whether one packet is the other, but for CE where it may be."""
    if not isinstance(before, bytes) or not isinstance(after, bytes):
        return before is after
    if before == after:
        return True
    ecn = before[1] >> 4 if before[0] >> 4 == 6 else before[1]
    return ecn & CE != NOT_ECT and unmarked(before) == unmarked(after)


def unmarked(octets: bytes) -> bytes:
    """A packet without the octets that a mark may change: of IPv4 the ECN field and the checksum."""
    if octets[0] >> 4 == 6:
        return octets[:1] + bytes((octets[1] & 0xCF,)) + octets[2:]
    return octets[:1] + bytes((octets[1] & 0xFC,)) + octets[2:10] + octets[12:]


class Waiting:
    """The packets that should be in a queue, by flow."""

    def __init__(self, name: str) -> None:
        self._one_order, self._by_ecn = name in IN_ONE_ORDER, name in BY_ECN
        self._flows: defaultdict[tuple[int, bool], deque[Sized]] = defaultdict(deque)

    def _flow(self, packet: Sized, is_low: bool) -> deque[Sized]:
        return self._flows[0 if self._one_order else flow_key(packet), is_low and self._by_ecn]

    def came(self, packet: Sized) -> None:
        self._flow(packet, ecn_of(packet) in (ECT1, CE)).append(packet)

    def left(self, packet: Sized) -> None:
        """Note a packet that was taken or dropped: the oldest of its flow, and of its class where there are two."""
        # a packet with CE may have come without it
        heads = [flow for low in (False, True) if (flow := self._flow(packet, low)) and came_as(flow[0], packet)]
        assert heads
        heads[0].popleft()

    def sizes(self) -> list[int]:
        return [len(packet) for flow in self._flows.values() for packet in flow]


@pytest.mark.parametrize("name", QUEUES)
@given(steps=STEPS)
def test_the_limit_holds_order_stays_and_every_loss_is_told(name: str, steps: list[tuple[int, Sized | None]]) -> None:
    queue = made(name)
    waiting = Waiting(name)
    now = pushed = popped = refused = told = 0

    def dropped(packet: Sized, at: int) -> None:
        nonlocal told
        assert at == now
        waiting.left(packet)
        told += 1

    queue.watch(dropped)
    for passed, packet in steps:
        now += passed * MS
        if packet is None:
            taken = queue.pop(now)
            if taken is None:
                assert not waiting.sizes()
            else:
                waiting.left(taken)
                popped += 1
        else:
            pushed += 1
            if queue.push(packet, now):
                waiting.came(packet)
            else:
                refused += 1
        sizes = waiting.sizes()
        assert len(queue) == len(sizes)
        assert queue.nbytes == sum(sizes) <= LIMIT_BYTES
        assert pushed == popped + queue.drops + len(queue)
        assert queue.drops == refused + told


@pytest.mark.parametrize("name", QUEUES)
def test_an_empty_queue_gives_nothing_and_takes_a_packet(name: str) -> None:
    queue = made(name)
    assert (queue.pop(0), len(queue), queue.nbytes, queue.drops, queue.marks) == (None, 0, 0, 0, 0)
    packet = packet_of()
    assert queue.push(packet, 1)
    assert queue.pop(2) is packet


def standing(name: str, packets: list[Any]) -> tuple[Queue, list[Any]]:
    """Keep some twenty packets in a queue, one coming and one leaving a ms; return it and those that left."""
    queue = made(name, limit_bytes=30_000)
    left = []
    for now, packet in enumerate(packets):
        queue.push(packet, now * MS)
        if now > 20:
            left.append(queue.pop(now * MS))
    return queue, [packet for packet in left if packet is not None]


@pytest.mark.parametrize("name", QUEUES)
def test_a_queue_that_stands_loses_packets_or_marks_those_that_can_be(name: str) -> None:
    queue, _ = standing(name, [packet_of() for _ in range(400)])
    assert queue.drops > 0
    assert queue.marks == 0
    marking, left = standing(name, [packet_of(ecn=ECT0) for _ in range(400)])
    assert marking.drops <= queue.drops
    assert sum(packet.ecn == CE for packet in left) <= marking.marks


@pytest.mark.parametrize("name", QUEUES)
def test_octets_are_marked_as_objects_are_and_stay_whole(name: str) -> None:
    queue, left = standing(name, [emit(segment(number, ECT0)) for number in range(400)])
    objects, expected = standing(name, [segment(number, ECT0) for number in range(400)])
    assert (queue.drops, queue.marks) == (objects.drops, objects.marks)
    # both checksums are among the parser's checks
    assert [(parse(octets).seq, parse(octets).ecn) for octets in left] == [(each.seq, each.ecn) for each in expected]


@pytest.mark.parametrize("name", QUEUES)
def test_a_scenario_makes_a_queue_per_channel(name: str) -> None:
    assert [type(queue) for queue in resolve(QUEUE.example(name)).stations["up"].make_queues()] == [
        type(made(name))
    ] * 2


@pytest.mark.parametrize("name", QUEUES)
def test_another_queues_options_go_with_its_name(name: str) -> None:
    raw: dict[str, Any] = {"link": {"queue": {"kind": "other", "nonsense": 1}}}
    apply_setting(raw, f"link.queue.kind={name}")
    assert raw == {"link": {"queue": {"kind": name}}}
