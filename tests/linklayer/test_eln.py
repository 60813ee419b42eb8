"""The ELN marker: what it marks, what it guesses, and what it leaves alone."""

from random import Random
from typing import Any

import pytest

from common.sequence import MASK
from linklayer.filters.eln import MAX_ENTRIES, MAX_FLOWS, Marker
from linklayer.filters.eln_flows import MAX_HOLES, MAX_SEGMENTS
from linklayer.filters.filter import Cause
from linklayer.filters.ranges import Ranges
from tcpip.access import Access, Objects
from tcpip.options import ELN, has_eln
from tcpip.segment import ACK, FIN, RST, SYN, Flow, Option
from tests.harness.base_station import SIZE, BaseStation, by_access


class End(BaseStation):
    """The marker of one end; segments are named by their place in the flow."""

    filter: Marker

    def __init__(self, access: Access, *, first: int = 5000, **options: bool) -> None:
        super().__init__(access, lambda access: Marker(access, **options), first=first)

    def open(self) -> "End":
        """Let the handshake pass."""
        self.send(-1 / SIZE, size=0, flags=SYN)
        self.back(0)
        return self

    def marked(self, packet: Any) -> bool:
        """Whether an ACK has left with the mark."""
        return has_eln(self.view(packet))

    def back(self, place: float, *sack: tuple[int, int], **fields: Any) -> bool:
        """Let an ACK come back over the link; return whether it was marked."""
        return self.marked(self.from_link(self.acknowledgement(place, *sack, **fields)))

    def give_up(self, packet: Any) -> None:
        """Let the link report a packet as lost."""
        self.filter.handle_given_up(packet, self.now)

    def come(self, *places: float) -> None:
        """Let segments of data come over the link."""
        for place in places:
            self.from_link(self.segment(place))

    def on(self, place: float, *sack: tuple[int, int], **fields: Any) -> bool:
        """Let an ACK of the fixed host pass; return whether it was marked."""
        return self.marked(self.from_ip(self.acknowledgement(place, *sack, **fields)))


# -- what was put on the link ----------------------------------------------------------------------------------


@by_access
def test_every_dupack_of_a_lost_segment_is_marked(access: Access) -> None:
    end = End(access).open()
    end.send(0, 1, 2, 3)
    assert not end.back(1)
    assert [end.back(1), end.back(1)] == [True, True]
    assert end.guesses() == [(1, "corruption")]
    assert end.filter.counters.eln_marks == 2


@by_access
def test_acks_that_repeat_nothing_are_not_marked(access: Access) -> None:
    end = End(access).open()
    end.send(0, 1, 2, 3)
    assert not any([end.back(1), end.back(2), end.back(2, window=700), end.back(4), end.back(4), end.back(1)])
    assert end.guesses() == []


@by_access
def test_a_segment_that_a_queue_has_dropped_is_not_marked(access: Access) -> None:
    end = End(access).open()
    end.send(0, 2, 3)
    assert not any(end.back(1) for _ in range(3))
    assert end.guesses() == [(1, "congestion")]


@by_access
def test_a_segment_out_of_order_is_not_marked(access: Access) -> None:
    end = End(access).open()
    end.send(0, 2, 1, 3)
    # the dupack that 2 has caused finds 1 on its way
    assert not any([end.back(1), end.back(1), end.back(3), end.back(4)])
    assert end.guesses() == [(1, "late")]


@by_access
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


@by_access
def test_the_rest_of_a_segment_taken_in_part_is_not_lost(access: Access) -> None:
    end = End(access).open()
    end.send(0, size=2 * SIZE)
    # the receiver has room for the first half
    assert not any([end.back(1), end.back(1)])
    assert end.guesses() == [(1, "late")]


@by_access
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


@by_access
def test_after_the_hole_is_filled_nothing_is_marked(access: Access) -> None:
    end = End(access).open()
    end.send(0, 1, 2, 3)
    assert [end.back(1), end.back(1), end.back(1)] == [False, True, True]
    end.send(1)
    assert not end.back(4)
    end.send(4, 5)
    assert not any([end.back(5), end.back(6)])


@by_access
def test_an_ack_that_fills_one_hole_of_two_is_marked(access: Access) -> None:
    end = End(access).open()
    end.send(0, 1, 2, 3, 4)
    assert [end.back(1), end.back(1), end.back(1)] == [False, True, True]
    end.send(1)
    # 1 came after 3, which is missing
    assert end.back(3)
    assert end.guesses() == [(1, "corruption"), (3, "corruption")]


@by_access
def test_a_segment_sent_again_before_its_turn_is_marked_for_the_copy_that_was_lost(access: Access) -> None:
    end = End(access).open()
    end.send(0, 1, 2, 3, 4, 5)
    assert [end.back(1), end.back(1, (2, 3)), end.back(1, (4, 6), (2, 3))] == [False, True, True]
    end.send(1, 3, 6)
    # nobody was told of 3 yet, and its new copy is under way
    assert [end.back(3, (4, 6)), end.back(6)] == [True, False]
    assert end.guesses() == [(1, "corruption"), (3, "corruption")]


@by_access
def test_an_ack_can_tell_that_a_segment_sent_again_was_lost(access: Access) -> None:
    end = End(access).open()
    end.send(0, 1, 2, 3, 4)
    assert [end.back(1), end.back(1, (2, 3)), end.back(1, (2, 4))] == [False, True, True]
    end.send(1, 4, 5)
    # 4 was under way when it was sent again; 1 came after it, and 4 is missing
    assert [end.back(4), end.back(5)] == [True, False]
    assert end.guesses() == [(1, "corruption"), (4, "corruption")]


@by_access
def test_a_segment_dropped_and_sent_again_is_no_late_one(access: Access) -> None:
    end = End(access).open()
    end.send(0, 2, 4)
    assert not any([end.back(1), end.back(1, (2, 3)), end.back(1, (4, 5), (2, 3))])
    end.send(1, 3)
    assert not any([end.back(3, (4, 5)), end.back(3, (4, 5))])
    assert end.guesses() == [(1, "congestion"), (3, "congestion")]


@by_access
def test_a_segment_dropped_and_then_lost_is_marked_for_the_loss(access: Access) -> None:
    end = End(access).open()
    end.send(0, 2, 3)
    assert not any([end.back(1), end.back(1), end.back(1)])
    end.send(1, 4)
    assert end.back(1)
    assert end.guesses() == [(1, "congestion"), (1, "corruption")]


@by_access
def test_smart_options_prove_nothing(access: Access) -> None:
    end = End(access).open()
    end.send(0, 1, 2, 3)
    # 2 and 3 are on their way from the station to the host, and so is 1
    assert not end.back(1, smart=2)
    assert not end.back(1, window=700, smart=3)
    assert end.guesses() == []
    assert end.back(1, window=700, smart=3)


@by_access
def test_dsack_is_no_evidence(access: Access) -> None:
    end = End(access).open()
    end.send(0, 1, 2, 3)
    assert not any([end.back(1), end.back(1, (0, 1)), end.back(1, (0, 1))])
    assert end.guesses() == []


@by_access
def test_a_probe_of_the_receivers_is_no_dupack(access: Access) -> None:
    end = End(access).open()
    end.send(0, 1, 2)
    assert not any([end.back(1), end.back(1, seq=76), end.back(1, seq=76)])


@by_access
def test_a_full_header_gives_its_last_sack_block(access: Access) -> None:
    end = End(access).open()
    end.send(*range(10))
    segment = end.view(end.from_link(end.acknowledgement(1, (8, 9), (6, 7), timestamps=(1, 2), smart=8)))
    assert has_eln(segment)
    assert segment.sack == ((end.number(8), end.number(9)),)
    assert segment.timestamps == (1, 2)


@by_access
def test_an_ack_without_room_or_with_a_mark_leaves_as_it_came(access: Access) -> None:
    end = End(access).open()
    end.send(0, 1, 2, 3)
    end.back(1)
    assert not end.back(1, extra=(Option(254, bytes(36)),))
    assert end.back(1, extra=(ELN,))
    assert end.filter.counters.eln_marks == 0
    assert end.guesses() == [(1, "corruption")]


@by_access
def test_numbers_wrap(access: Access) -> None:
    end = End(access, first=MASK - 2 * SIZE).open()
    end.send(0, 1, 2, 3, 4)
    assert [end.back(1), end.back(1), end.back(1)] == [False, True, True]
    end.send(1)
    assert end.back(3, (4, 5), window=1)
    end.send(3, 5)
    assert not end.back(6)
    assert end.guesses() == [(1, "corruption"), (3, "corruption")]


@by_access
@pytest.mark.parametrize("fields", [{"flags": SYN | ACK}, {"flags": FIN | ACK}, {"flags": RST | ACK}, {"size": 1}])
def test_only_plain_acks_are_marked(access: Access, fields: dict[str, int]) -> None:
    end = End(access).open()
    end.send(0, 1, 2, 3)
    end.back(1)
    assert not end.back(1, **fields)


@by_access
def test_answers_to_keepalives_are_not_marked(access: Access) -> None:
    end = End(access).open()
    end.send(0)
    end.back(1)
    for _ in range(3):
        end.send(1 - 1 / SIZE, size=1)
        assert not end.back(1)


@by_access
def test_a_retransmission_of_other_size_is_followed_octet_by_octet(access: Access) -> None:
    end = End(access).open()
    end.send(0, 1, 2, 3)
    assert [end.back(1), end.back(1)] == [False, True]
    end.send(1, size=SIZE // 2)
    assert not end.back(1)
    end.send(4)
    assert end.back(1, (2, 5))


@by_access
def test_what_passed_before_the_marker_came_is_not_its_business(access: Access) -> None:
    end = End(access)
    # a retransmission is the first it sees; 3 and 4 have passed before
    end.send(2, 5, 6)
    assert not any([end.back(2), end.back(2), end.back(2), end.back(3)])
    assert end.guesses() == []
    assert not end.back(6)
    end.send(7, 8)
    assert end.back(6)


@by_access
def test_a_new_connection_of_the_same_ports_begins_afresh(access: Access) -> None:
    end = End(access).open()
    end.send(0, 1, 2)
    end.first += 1 << 20
    end.open()
    end.send(0, 1, 2)
    assert [end.back(1), end.back(1)] == [False, True]


# -- what the link gave up -------------------------------------------------------------------------------------


@by_access
def test_with_reports_only_what_was_given_up_is_marked(access: Access) -> None:
    end = End(access, reports=True).open()
    _, lost, *_ = end.send(0, 1, 2, 3)
    assert not any([end.back(1), end.back(1)])
    end.give_up(lost)
    assert [end.back(1), end.back(1, window=1)] == [True, True]
    lost, _ = end.send(1, 4)
    assert not any([end.back(1, window=1), end.back(1, window=1)])
    end.give_up(lost)
    assert end.back(1, window=1)
    assert end.guesses() == [(1, "late"), (1, "corruption"), (1, "corruption")]


@by_access
def test_a_copy_given_up_while_another_is_under_way_is_no_loss(access: Access) -> None:
    end = End(access, reports=True).open()
    _, earlier, *_ = end.send(0, 1, 2, 3)
    (later,) = end.send(1)
    end.back(1)
    end.give_up(earlier)
    assert not end.back(1)
    end.give_up(later)
    assert end.back(1)


@by_access
def test_with_reports_an_ack_of_part_is_marked_where_the_next_is_given_up(access: Access) -> None:
    end = End(access, reports=True).open()
    packets = end.send(0, 1, 2, 3, 4)
    end.give_up(packets[1])
    end.give_up(packets[3])
    assert [end.back(1), end.back(1)] == [False, True]
    end.send(1)
    assert end.back(3)


# -- what did not come across ----------------------------------------------------------------------------------


def base_end(access: Access) -> End:
    """The marker of the base station, for data from the mobile host."""
    end = End(access, sent=False, holes=True)
    end.from_link(end.segment(-1 / SIZE, size=0, flags=SYN))
    end.on(0)
    return end


@by_access
def test_dupacks_for_a_hole_are_marked(access: Access) -> None:
    base = base_end(access)
    base.come(0, 2, 3)
    assert [base.on(1), base.on(1), base.on(1, (2, 4))] == [False, True, True]
    base.come(1)
    assert not base.on(1, (2, 4))
    assert not base.on(4)
    assert base.guesses() == [(1, "corruption")]
    assert base.filter.counters.eln_marks == 2


@by_access
def test_dupacks_for_what_has_come_across_are_not(access: Access) -> None:
    base = base_end(access)
    base.come(0, 1, 2, 3)
    assert not any([base.on(1), base.on(1), base.on(1, (2, 4))])
    assert base.guesses() == [(1, "congestion")]


@by_access
def test_an_ack_up_to_the_next_hole_is_marked(access: Access) -> None:
    base = base_end(access)
    base.come(0, 2, 4)
    assert [base.on(1), base.on(1), base.on(1)] == [False, True, True]
    base.come(1)
    assert base.on(3)


@by_access
def test_holes_of_a_flow_met_midway_wait_for_its_first_ack(access: Access) -> None:
    end = End(access, sent=False, holes=True)
    # the first is a retransmission; 3 and 4 have passed before
    end.come(2, 5, 6)
    assert not any([end.on(2), end.on(2), end.on(3), end.on(6)])
    end.come(8, 9)
    assert not end.on(7)
    assert end.on(7)


# -- memory ----------------------------------------------------------------------------------------------------


def test_memory_is_bounded() -> None:
    rng = Random(1)
    end = End(Objects(), holes=True)
    for port in range(2 * MAX_FLOWS):
        end.flow = Flow(1, port, 2, 3)
        end.send(0, 1)
        end.come(0, 1)
    assert len(end.filter._sent) == len(end.filter._seen) == MAX_FLOWS
    end.open()
    for _ in range(3 * MAX_SEGMENTS):
        place = rng.randrange(100_000)
        end.send(place)
        end.come(place)
    sent, seen = end.filter._sent[end.flow], end.filter._seen[end.flow]
    assert len(sent._pieces) <= len(sent._starts) <= MAX_SEGMENTS + 3
    assert len(sent._log) <= MAX_SEGMENTS + 1
    assert len(seen._holes) <= MAX_HOLES


@pytest.mark.slow
def test_all_flows_together_have_a_limit() -> None:
    end = End(Objects())
    for port in range(40):
        end.flow = Flow(1, port, 2, 3)
        end.send(*range(MAX_SEGMENTS - 1))
        held = sum(sent.entries for sent in end.filter._sent.values())
        assert held == end.filter._entries <= MAX_ENTRIES
    assert len(end.filter._sent) == MAX_ENTRIES // (2 * MAX_SEGMENTS - 2)
    end.back(2)
    for flow in list(end.filter._sent):
        end.flow = flow
        end.send(0, size=0, flags=RST)
    assert end.filter._entries == 0


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
