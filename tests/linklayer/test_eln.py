"""The ELN marker: what it marks, what it guesses, and what it leaves alone."""

from random import Random
from typing import Any

import pytest

from common.sequence import MASK
from linklayer.filters.eln import MAX_ENTRIES, MAX_FLOWS, MAX_HOLES, MAX_SEGMENTS, Marker
from linklayer.filters.filter import Cause
from linklayer.filters.ranges import Ranges
from tcpip.access import Access, Objects, Octets
from tcpip.options import has_eln, smart_option
from tcpip.segment import ACK, FIN, PSH, RST, SYN, Flow, Option, SackBlock, Segment, Timestamps
from tcpip.wire import emit

FLOW = Flow(0x0A000001, 1000, 0x0A000002, 2000)
MSS = 1000


class End:
    """The marker of one end; segments of MSS octets are named by their place in the flow, from `first` on."""

    def __init__(self, access: Access, *, first: int = 5000, flow: Flow = FLOW, **options: bool) -> None:
        self.octets = isinstance(access, Octets)
        self.marker = Marker(access, **options)
        self.first, self.flow = first, flow
        self.now = 0
        self.packets: dict[int, Any] = {}

    def number(self, place: int) -> int:
        return self.first + 1 + place * MSS & MASK

    def packet(self, segment: Segment) -> Any:
        return emit(segment) if self.octets else segment

    def data(self, place: int, length: int = MSS, flags: int = ACK | PSH) -> Any:
        payload = bytes(length) if self.octets else None
        return self.packet(Segment(self.flow, self.number(place), 77, flags, 500, length, payload))

    def ack(
        self,
        place: int,
        *sack: tuple[int, int],
        window: int = 600,
        extra: tuple[Option, ...] = (),
        timestamps: Timestamps | None = None,
        seq: int = 77,
        flags: int = ACK,
    ) -> Any:
        blocks: tuple[SackBlock, ...] = tuple((self.number(left), self.number(right)) for left, right in sack)
        number = self.number(place)
        return self.packet(
            Segment(self.flow.reversed(), seq, number, flags, window, sack=blocks, extra=extra, timestamps=timestamps)
        )

    def open(self) -> "End":
        """Let the handshake pass."""
        syn = self.packet(Segment(self.flow, self.first & MASK, 0, SYN, 500))
        assert self.to_link(syn) is syn
        self.back(0)
        return self

    def to_link(self, packet: Any) -> Any:
        self.now += 1
        self.marker.handle_to_link(packet, 0, self.now)
        found = self.marker.poll_to_link()
        assert found is not None
        assert self.marker.poll_to_link() is None
        return found[0]

    def from_link(self, packet: Any) -> Any:
        self.now += 1
        self.marker.handle_from_link(packet, 0, self.now)
        found = self.marker.poll_from_link()
        assert found is not None
        assert self.marker.poll_from_link() is None
        return found[0]

    def send(self, *places: int) -> None:
        """Put segments on the link."""
        for place in places:
            packet = self.packets[place] = self.data(place)
            assert self.to_link(packet) is packet

    def marked(self, before: Any, after: Any) -> bool:
        """Whether a packet has got the mark, and nothing else."""
        access: Access = Octets() if self.octets else Objects()
        segment, other = access.view(after), access.view(before)
        assert segment is not None
        assert other is not None
        if not has_eln(segment):
            assert after is before
            return False
        assert (segment.ack, segment.seq, segment.window) == (other.ack, other.seq, other.window)
        return True

    def back(self, place: int, *sack: tuple[int, int], **others: Any) -> bool:
        """Let an ACK come back over the link; return whether it was marked."""
        packet = self.ack(place, *sack, **others)
        return self.marked(packet, self.from_link(packet))

    def guesses(self) -> list[tuple[int, Cause]]:
        """What has been guessed, by the segment's place."""
        found = []
        while (guess := self.marker.poll_guess()) is not None:
            assert guess.flow == self.flow
            found.append((((guess.seq - self.first - 1) & MASK) // MSS, guess.cause))
        return found


@pytest.fixture(params=[Objects(), Octets()], ids=["objects", "octets"])
def access(request: pytest.FixtureRequest) -> Any:
    return request.param


# -- what was put on the link ----------------------------------------------------------------------------------


def test_every_dupack_of_a_lost_segment_is_marked(access: Access) -> None:
    end = End(access).open()
    end.send(0, 1, 2, 3)
    assert not end.back(1)
    assert [end.back(1), end.back(1)] == [True, True]
    assert end.guesses() == [(1, "corruption")]
    assert end.marker.counters.eln_marks == 2


def test_acks_that_repeat_nothing_are_not_marked(access: Access) -> None:
    end = End(access).open()
    end.send(0, 1, 2, 3)
    assert not any([end.back(1), end.back(2), end.back(2, window=700), end.back(4), end.back(4), end.back(1)])
    assert end.guesses() == []


def test_a_segment_that_a_queue_has_dropped_is_not_marked(access: Access) -> None:
    end = End(access).open()
    end.send(0, 2, 3)
    assert not any(end.back(1) for _ in range(3))
    assert end.guesses() == [(1, "congestion")]


def test_a_segment_out_of_order_is_not_marked(access: Access) -> None:
    end = End(access).open()
    end.send(0, 2, 1, 3)
    # the dupack that 2 has caused finds 1 on its way
    assert not any([end.back(1), end.back(1), end.back(3), end.back(4)])
    assert end.guesses() == [(1, "late")]


@pytest.mark.parametrize(
    ("order", "cause"), [((0, 2, 3, 4, 1), "late"), ((0, 2, 3, 4, 5, 1), "congestion")], ids=["three", "four"]
)
def test_a_segment_that_more_than_three_have_passed_is_a_retransmission(
    access: Access, order: tuple[int, ...], cause: Cause
) -> None:
    end = End(access).open()
    end.send(*order)
    assert not any([end.back(1), end.back(1)])
    assert end.guesses() == [(1, cause)]


def test_the_rest_of_a_segment_taken_in_part_is_not_lost(access: Access) -> None:
    end = End(access).open()
    end.to_link(end.data(0, 2 * MSS))
    # the receiver has room for the first half
    assert not any([end.back(1), end.back(1)])
    assert end.guesses() == [(1, "late")]


@pytest.mark.parametrize("sack", [False, True], ids=["cumulative", "sack"])
def test_a_retransmission_is_lost_only_when_a_later_copy_has_come(access: Access, sack: bool) -> None:
    end = End(access).open()

    def dupack(last: int) -> bool:
        return end.back(1, (2, last + 1)) if sack else end.back(1)

    end.send(0, 1, 2, 3, 4, 5)
    assert not end.back(1)
    assert [dupack(2), dupack(3)] == [True, True]
    end.send(1, 6, 7)
    # 4 and 5 were before it
    assert [dupack(4), dupack(5)] == [False, False]
    assert [dupack(6), dupack(7)] == [True, True]
    assert end.guesses() == [(1, "corruption"), (1, "corruption")]


def test_after_the_hole_is_filled_nothing_is_marked(access: Access) -> None:
    end = End(access).open()
    end.send(0, 1, 2, 3)
    assert [end.back(1), end.back(1), end.back(1)] == [False, True, True]
    end.send(1)
    assert not end.back(4)
    end.send(4, 5)
    assert not any([end.back(5), end.back(6)])


def test_an_ack_that_fills_one_hole_of_two_is_marked(access: Access) -> None:
    end = End(access).open()
    end.send(0, 1, 2, 3, 4)
    assert [end.back(1), end.back(1), end.back(1)] == [False, True, True]
    end.send(1)
    # 1 came after 3, which is missing
    assert end.back(3)
    assert end.guesses() == [(1, "corruption"), (3, "corruption")]


def test_a_segment_sent_again_before_its_turn_is_marked_for_the_copy_that_was_lost(access: Access) -> None:
    end = End(access).open()
    end.send(0, 1, 2, 3, 4, 5)
    assert [end.back(1), end.back(1, (2, 3)), end.back(1, (4, 6), (2, 3))] == [False, True, True]
    end.send(1, 3, 6)
    # nobody was told of 3 yet, and its new copy is under way
    assert [end.back(3, (4, 6)), end.back(6)] == [True, False]
    assert end.guesses() == [(1, "corruption"), (3, "corruption")]


def test_an_ack_can_tell_that_a_segment_sent_again_was_lost(access: Access) -> None:
    end = End(access).open()
    end.send(0, 1, 2, 3, 4)
    assert [end.back(1), end.back(1, (2, 3)), end.back(1, (2, 4))] == [False, True, True]
    end.send(1, 4, 5)
    # 4 was under way when it was sent again; 1 came after it, and 4 is missing
    assert [end.back(4), end.back(5)] == [True, False]
    assert end.guesses() == [(1, "corruption"), (4, "corruption")]


def test_a_segment_dropped_and_sent_again_is_no_late_one(access: Access) -> None:
    end = End(access).open()
    end.send(0, 2, 4)
    assert not any([end.back(1), end.back(1, (2, 3)), end.back(1, (4, 5), (2, 3))])
    end.send(1, 3)
    assert not any([end.back(3, (4, 5)), end.back(3, (4, 5))])
    assert end.guesses() == [(1, "congestion"), (3, "congestion")]


def test_a_segment_dropped_and_then_lost_is_marked_for_the_loss(access: Access) -> None:
    end = End(access).open()
    end.send(0, 2, 3)
    assert not any([end.back(1), end.back(1), end.back(1)])
    end.send(1, 4)
    assert end.back(1)
    assert end.guesses() == [(1, "congestion"), (1, "corruption")]


def test_smart_options_prove_nothing(access: Access) -> None:
    end = End(access).open()
    end.send(0, 1, 2, 3)
    # 2 and 3 are on their way from the station to the host, and so is 1
    assert not end.back(1, extra=(smart_option(end.number(2), MSS),))
    assert not end.back(1, window=700, extra=(smart_option(end.number(3), MSS),))
    assert end.guesses() == []
    assert end.back(1, window=700, extra=(smart_option(end.number(3), MSS),))


def test_dsack_is_no_evidence(access: Access) -> None:
    end = End(access).open()
    end.send(0, 1, 2, 3)
    assert not any([end.back(1), end.back(1, (0, 1)), end.back(1, (0, 1))])
    assert end.guesses() == []


def test_a_probe_of_the_receivers_is_no_dupack(access: Access) -> None:
    end = End(access).open()
    end.send(0, 1, 2)
    assert not any([end.back(1), end.back(1, seq=76), end.back(1, seq=76)])


def test_a_full_header_gives_its_last_sack_block(access: Access) -> None:
    end = End(access).open()
    end.send(*range(10))
    packet = end.ack(1, (8, 9), (6, 7), timestamps=(1, 2), extra=(smart_option(end.number(8), MSS),))
    segment = access.view(end.from_link(packet))
    assert segment is not None
    assert has_eln(segment)
    assert segment.sack == ((end.number(8), end.number(9)),)
    assert segment.timestamps == (1, 2)


def test_numbers_wrap(access: Access) -> None:
    end = End(access, first=MASK - 2 * MSS).open()
    end.send(0, 1, 2, 3, 4)
    assert [end.back(1), end.back(1), end.back(1)] == [False, True, True]
    end.send(1)
    assert end.back(3, (4, 5), window=1)
    end.send(3, 5)
    assert not end.back(6)
    assert end.guesses() == [(1, "corruption"), (3, "corruption")]


@pytest.mark.parametrize("flags", [SYN | ACK, FIN | ACK, RST | ACK])
def test_only_plain_acks_are_marked(access: Access, flags: int) -> None:
    end = End(access).open()
    end.send(0, 1, 2, 3)
    end.back(1)
    assert not end.back(1, flags=flags)


def test_a_retransmission_of_other_size_is_followed_octet_by_octet(access: Access) -> None:
    end = End(access).open()
    end.send(0, 1, 2, 3)
    assert [end.back(1), end.back(1)] == [False, True]
    end.to_link(end.data(1, MSS // 2))
    assert not end.back(1)
    end.send(4)
    assert end.back(1, (2, 5))


def test_what_passed_before_the_marker_came_is_not_its_business(access: Access) -> None:
    end = End(access)
    # a retransmission is the first it sees; 3 and 4 have passed before
    end.send(2, 5, 6)
    assert not any([end.back(2), end.back(2), end.back(2), end.back(3)])
    assert end.guesses() == []
    assert not end.back(6)
    end.send(7, 8)
    assert end.back(6)


def test_a_new_connection_of_the_same_ports_begins_afresh(access: Access) -> None:
    end = End(access).open()
    end.send(0, 1, 2)
    end.first += 1 << 20
    end.open()
    end.send(0, 1, 2)
    assert [end.back(1), end.back(1)] == [False, True]


def test_what_is_no_segment_passes(access: Access) -> None:
    end = End(access).open()
    others = [b"", b"\x45" * 60, bytes(1500)] if end.octets else [b"", object()]
    for packet in others:
        assert end.to_link(packet) is packet
        assert end.from_link(packet) is packet
        end.marker.handle_given_up(packet, end.now)
    assert end.guesses() == []


# -- what the link gave up -------------------------------------------------------------------------------------


def test_with_reports_only_what_was_given_up_is_marked(access: Access) -> None:
    end = End(access, reports=True).open()
    end.send(0, 1, 2, 3)
    assert not any([end.back(1), end.back(1)])
    end.marker.handle_given_up(end.packets[1], end.now)
    assert [end.back(1), end.back(1, window=1)] == [True, True]
    end.send(1, 4)
    assert not any([end.back(1, window=1), end.back(1, window=1)])
    end.marker.handle_given_up(end.packets[1], end.now)
    assert end.back(1, window=1)
    assert end.guesses() == [(1, "late"), (1, "corruption"), (1, "corruption")]


def test_a_copy_given_up_while_another_is_under_way_is_no_loss(access: Access) -> None:
    end = End(access, reports=True).open()
    end.send(0, 1, 2, 3)
    earlier = end.packets[1]
    end.send(1)
    end.back(1)
    end.marker.handle_given_up(earlier, end.now)
    assert not end.back(1)
    end.marker.handle_given_up(end.packets[1], end.now)
    assert end.back(1)


def test_with_reports_an_ack_of_part_is_marked_where_the_next_is_given_up(access: Access) -> None:
    end = End(access, reports=True).open()
    end.send(0, 1, 2, 3, 4)
    for place in (1, 3):
        end.marker.handle_given_up(end.packets[place], end.now)
    assert [end.back(1), end.back(1)] == [False, True]
    end.send(1)
    assert end.back(3)


# -- what did not come across ----------------------------------------------------------------------------------


def come(end: End, *places: int) -> None:
    for place in places:
        packet = end.data(place)
        assert end.from_link(packet) is packet


def on(end: End, place: int, *sack: tuple[int, int], window: int = 600) -> bool:
    """Let an ACK of the fixed host pass; return whether it was marked."""
    packet = end.ack(place, *sack, window=window)
    return end.marked(packet, end.to_link(packet))


@pytest.fixture
def base(access: Access) -> End:
    end = End(access, sent=False, holes=True)
    end.from_link(end.packet(Segment(end.flow, end.first, 0, SYN, 500)))
    on(end, 0)
    return end


def test_dupacks_for_a_hole_are_marked(base: End) -> None:
    come(base, 0, 2, 3)
    assert [on(base, 1), on(base, 1), on(base, 1, (2, 4))] == [False, True, True]
    come(base, 1)
    assert not on(base, 1, (2, 4))
    assert not on(base, 4)
    assert base.guesses() == [(1, "corruption")]
    assert base.marker.counters.eln_marks == 2


def test_dupacks_for_what_has_come_across_are_not(base: End) -> None:
    come(base, 0, 1, 2, 3)
    assert not any([on(base, 1), on(base, 1), on(base, 1, (2, 4))])
    assert base.guesses() == [(1, "congestion")]


def test_an_ack_up_to_the_next_hole_is_marked(base: End) -> None:
    come(base, 0, 2, 4)
    assert [on(base, 1), on(base, 1), on(base, 1)] == [False, True, True]
    come(base, 1)
    assert on(base, 3)


def test_holes_of_a_flow_met_midway_wait_for_its_first_ack(access: Access) -> None:
    end = End(access, sent=False, holes=True)
    # the first is a retransmission; 3 and 4 have passed before
    come(end, 2, 5, 6)
    assert not any([on(end, 2), on(end, 2), on(end, 3), on(end, 6)])
    come(end, 8, 9)
    assert not on(end, 7)
    assert on(end, 7)


# -- memory ----------------------------------------------------------------------------------------------------


def test_memory_is_bounded() -> None:
    rng = Random(1)
    end = End(Objects(), holes=True)
    for port in range(2 * MAX_FLOWS):
        end.flow = Flow(1, port, 2, 3)
        end.send(0, 1)
        come(end, 0, 1)
    assert len(end.marker._sent) == len(end.marker._seen) == MAX_FLOWS
    end.open()
    for _ in range(3 * MAX_SEGMENTS):
        place = rng.randrange(100_000)
        end.send(place)
        come(end, place)
    sent, seen = end.marker._sent[end.flow], end.marker._seen[end.flow]
    assert len(sent._pieces) <= len(sent._starts) <= MAX_SEGMENTS + 3
    assert len(sent._log) <= MAX_SEGMENTS + 1
    assert len(seen._holes) <= MAX_HOLES


@pytest.mark.slow
def test_all_flows_together_have_a_limit() -> None:
    end = End(Objects())
    for port in range(40):
        end.flow = Flow(1, port, 2, 3)
        end.send(*range(MAX_SEGMENTS - 1))
        held = sum(sent.entries for sent in end.marker._sent.values())
        assert held == end.marker._entries <= MAX_ENTRIES
    assert len(end.marker._sent) == MAX_ENTRIES // (2 * MAX_SEGMENTS - 2)
    end.back(2)
    for flow in list(end.marker._sent):
        end.flow = flow
        end.to_link(end.packet(Segment(flow, 1, 0, RST, 0)))
    assert end.marker._entries == 0


def test_ranges_are_the_set_they_stand_for() -> None:
    rng = Random(2)
    ranges, numbers = Ranges(1000), set[int]()
    for _ in range(2000):
        left = rng.randrange(200)
        right = left + rng.randrange(20)
        if rng.random() < 0.5:
            ranges.add(left, right)
            numbers |= set(range(left, right))
        elif rng.random() < 0.9:
            ranges.remove(left, right)
            numbers -= set(range(left, right))
        else:
            ranges.remove_below(left // 4)
            numbers -= set(range(left // 4))
        assert {number for number in range(250) if number in ranges} == numbers
        edges = sum(number - 1 not in numbers for number in numbers)
        assert len(ranges) == edges


def test_of_too_many_ranges_the_lowest_goes() -> None:
    ranges = Ranges(2)
    for left in (0, 10, 20):
        ranges.add(left, left + 5)
    assert [number in ranges for number in (0, 10, 20)] == [False, True, True]
    ranges.remove(22, 23)
    assert [number in ranges for number in (10, 20, 22, 23)] == [False, True, False, True]
