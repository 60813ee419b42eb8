"""The repairs of the base station's filter, rule by rule, with packets as octets and as objects.

Read first: COMPARISON sections 2.2, 2.3 and 3.3; RFC 5681 section 2 (dupacks). The harness checks that a repair is the
very packet that was cached, and that only pure dupacks are held back.
"""

import pytest

from linklayer.filters.snoop_cache import Limits
from tcpip.access import Access
from tcpip.options import SMART_PERMITTED, smart_of
from tcpip.segment import ACK, ECE, SYN, Flow, SynOptions
from tests.harness.base_station import DATA, MS, SECOND, SIZE, by_access, by_first
from tests.harness.snooping import by_scheme, by_selective, flowing, fresh, is_aware, measure, snoop

# -- local retransmission ------------------------------------------------------------------------------------


@by_access
@by_scheme
@by_first
@pytest.mark.parametrize("flags", [ACK, ACK | ECE])
def test_second_dupack_repairs_once_and_only_snoop_suppresses(
    access: Access, scheme: str, first: int, flags: int
) -> None:
    s = flowing(access, scheme, first=first)
    lost, *_ = s.send(1, 2, 3, 4, 5, 6)
    passes = not is_aware(scheme)
    assert s.ack(1, flags=flags) == [passes]
    assert s.repaired == []
    assert s.ack(1, flags=flags, times=4) == [passes] * 4
    assert s.repaired == [1]
    counters = s.filter.counters
    assert (counters.retransmissions, counters.retransmitted_bytes) == (1, len(lost))
    assert counters.suppressed_dupacks == (0 if passes else 5)
    assert s.ack(7) == [True]
    assert s.wait(60 * SECOND) == []


@by_access
@by_scheme
@by_first
def test_acknowledged_segments_are_never_repaired(access: Access, scheme: str, first: int) -> None:
    s = flowing(access, scheme, first=first)
    s.send(*range(1, 9))
    assert [s.ack(place) for place in (2, 3, 6, 9)] == [[True]] * 4
    assert s.wait(3600 * SECOND) == []
    assert s.filter.next_deadline() is None
    assert snoop(s).held_bytes == 0


@by_access
@by_scheme
@by_first
def test_partial_new_ack_repairs_the_next_hole_at_once(access: Access, scheme: str, first: int) -> None:
    s = flowing(access, scheme, first=first)
    # 1 to 4 are lost, 5 to 10 arrive
    s.send(*range(1, 11))
    s.ack(1, times=6)
    for place in (2, 3, 4):
        # each repair takes a round trip
        s.wait(20 * MS)
        assert s.ack(place) == [True]
    assert s.repaired == [1, 2, 3, 4]
    assert s.ack(11) == [True]
    assert s.wait(60 * SECOND) == []


@by_access
@by_scheme
def test_new_ack_below_segments_sent_after_the_repair_repairs_nothing(access: Access, scheme: str) -> None:
    s = flowing(access, scheme)
    s.send(1, 2, 3)
    s.ack(1, times=2)
    s.send(4, 5)
    s.ack(4)
    assert s.repaired == [1]


@by_access
@by_selective
@pytest.mark.parametrize(("ns", "lost"), [(19 * MS, False), (20 * MS, True)])
def test_with_smart_an_ack_too_soon_after_a_repair_was_caused_by_the_first_copy(
    access: Access, scheme: str, ns: int, lost: bool
) -> None:
    s = flowing(access, scheme)
    s.send(1, 2, 3, 4)
    s.ack(1, smart=2)
    s.send(5)
    # 3 may have arrived, and the ACK that named it be lost
    s.ack(1, smart=4)
    assert s.repaired == [1, 3]
    s.wait(ns)
    s.ack(5)
    # 5 went between both copies of 3: it is lost if the second one has arrived
    assert s.repaired == [1, 3, 5][: 2 + lost]


# -- timers --------------------------------------------------------------------------------------------------


@by_access
@by_scheme
def test_unacknowledged_segment_is_repaired_after_the_least_timeout(access: Access, scheme: str) -> None:
    s = flowing(access, scheme)
    s.send(1)
    assert s.wait(200 * MS - 1) == []
    assert s.wait(1) == [1]
    assert s.guesses() == [(1, "corruption")]
    assert s.wait(200 * MS) == [1]
    assert s.guesses() == []


@by_access
def test_timeout_follows_the_round_trip_time(access: Access) -> None:
    s = fresh(access)
    measure(s, 400 * MS)
    s.send(1)
    # srtt + 4 * (srtt / 2)
    assert s.wait(1200 * MS - 1) == []
    assert s.wait(1) == [1]


@by_access
def test_timeout_before_the_first_sample_is_a_second(access: Access) -> None:
    s = fresh(access)
    s.send(0)
    assert s.wait(SECOND - 1) == []
    assert s.wait(1) == [0]


@by_access
def test_round_trips_of_repaired_segments_are_no_samples(access: Access) -> None:
    s = flowing(access)
    for place in (1, 2, 3):
        s.send(place)
        assert s.wait(390 * MS) == [place]
        s.ack(place + 1)
    s.send(4)
    # still the least: 390 ms were never taken for a round trip
    assert s.wait(200 * MS) == [4]


@by_access
def test_timers_expire_at_ticks_of_the_clock(access: Access) -> None:
    s = fresh(access, limits=Limits(tick_ns=200 * MS))
    measure(s, 20 * MS)
    s.now = 250 * MS
    s.send(1)
    # 450 ms is no tick
    assert s.wait(349 * MS) == []
    assert s.wait(MS) == [1]
    assert s.now == 600 * MS


@by_access
def test_timeout_doubles_after_steady_expiries_up_to_a_bound(access: Access) -> None:
    s = flowing(access, limits=Limits(tries=12))
    s.send(1)
    gaps = []
    for _ in range(12):
        begun = s.now
        while not s.wait(MS):
            pass
        gaps.append((s.now - begun) // MS)
    assert gaps == [200] * 6 + [400, 800] + [1600] * 4


@by_access
@by_scheme
def test_after_its_tries_a_segment_is_left_to_its_sender(access: Access, scheme: str) -> None:
    s = flowing(access, scheme, limits=Limits(tries=3))
    s.send(1, 2, 3, 4)
    assert s.wait(10 * SECOND) == [1] * 3
    assert s.ack(1) == [True]
    # the loss is not the wired network's, and there is no guess that says so
    assert s.guesses() == [(1, "corruption")]
    # the sender's retransmission passes, and is repaired in its turn
    s.send(1)
    assert s.wait(1600 * MS) != []


@by_access
@by_scheme
def test_mobile_host_that_never_answers_is_left_alone(access: Access, scheme: str) -> None:
    s = fresh(access, scheme)
    s.send(*range(12))
    assert len(s.wait(600 * SECOND)) == Limits().tries
    assert snoop(s).held_bytes == 0
    assert s.filter.next_deadline() is None


@by_access
def test_timers_of_many_flows_expire_each_at_its_time(access: Access) -> None:
    s = fresh(access, limits=Limits(flows=50))
    expected = []
    for port in range(1, 200):
        s.flow = Flow(DATA.source, port, DATA.destination, DATA.destination_port)
        s.send(port)
        expected.append((s.now + SECOND, port))
        s.now += 3 * MS
    seen = []
    end = s.now + SECOND
    while s.now < end:
        seen += [(s.now, place) for place in s.wait(MS)]
    # those of the flows that are still known, in order
    assert seen == expected[-50:]
    assert len(snoop(s)._wakeups) <= 100


# -- selective ACKs ------------------------------------------------------------------------------------------


@by_access
@by_selective
@by_first
@pytest.mark.parametrize("how", ["SMART", "SACK"])
def test_first_dupack_repairs_all_holes_below_an_arrived_segment(
    access: Access, scheme: str, first: int, how: str
) -> None:
    s = flowing(access, scheme, first=first)
    s.send(*range(1, 8))
    passed = s.ack(1, smart=4) if how == "SMART" else s.ack(1, (4, 5))
    assert passed == [scheme == "ll-smart"]
    assert s.repaired == [1, 2, 3]
    # once each: until their timer expires, further news repair the new hole alone
    if how == "SMART":
        s.ack(1, smart=6)
    else:
        s.ack(1, (6, 7), (4, 5))
    assert s.repaired == [1, 2, 3, 5]
    assert s.guesses() == [(place, "corruption") for place in (1, 2, 3, 5)]


@by_access
@by_selective
def test_repairs_that_are_lost_wait_for_their_timer(access: Access, scheme: str) -> None:
    s = flowing(access, scheme)
    s.send(1, 2, 3, 4, 5)
    s.ack(1, (4, 5))
    assert s.repaired == [1, 2, 3]
    s.send(6, 7)
    # dupacks of segments sent behind the repair
    for right in (6, 7, 8):
        s.ack(1, (4, right))
    assert s.repaired == [1, 2, 3]
    assert s.wait(200 * MS - 1) == []
    assert s.wait(1) == [1, 2, 3]


@by_access
def test_arrived_segments_are_not_repaired(access: Access) -> None:
    s = flowing(access, "snoop-smart")
    s.send(1, 2, 3, 4, 5)
    s.ack(1, (2, 4), (5, 6))
    s.repaired.clear()
    s.ack(4, (5, 6))
    assert s.repaired == []
    assert s.wait(200 * MS) == [4]
    s.ack(6)
    assert snoop(s).held_bytes == 0


@by_access
@by_selective
@pytest.mark.parametrize("how", ["dupacks", "timer"])
def test_segments_that_the_receiver_drops_again_are_repaired(access: Access, scheme: str, how: str) -> None:
    s = flowing(access, scheme)
    s.send(1, 2, 3)
    s.ack(1, (2, 4))
    s.wait(20 * MS)
    # a kernel short of memory drops segments out of order
    s.ack(2)
    assert s.repaired == [1]
    if how == "timer":
        assert s.wait(200 * MS) == [2]
    else:
        s.ack(2)
        assert s.repaired == [1]
        s.ack(2)
        assert s.repaired == [1, 2]


@by_access
def test_snoop_without_smart_ignores_sack_blocks(access: Access) -> None:
    s = flowing(access, "snoop")
    s.send(*range(1, 8))
    s.ack(1, (4, 5))
    assert s.repaired == []
    s.ack(1, (4, 6))
    assert s.repaired == [1]


@by_access
@by_scheme
def test_answer_to_a_duplicate_is_no_dupack(access: Access, scheme: str) -> None:
    s = flowing(access, scheme)
    s.send(1, 2, 3, 4)
    s.ack(3)
    # RFC 2883: the first block lies below the acknowledgement; SMART names it likewise
    assert s.ack(3, (1, 2), times=3) == [True] * 3
    assert s.ack(3, smart=1, times=3) == [True] * 3
    assert s.repaired == []
    assert s.guesses() == []


@by_access
@pytest.mark.parametrize("block", [(9, 11), (4, 4), (5, 4), (1 + 2**31 / SIZE, 2 + 2**31 / SIZE)])
def test_sack_blocks_of_octets_never_sent_are_ignored(access: Access, block: tuple[float, float]) -> None:
    s = flowing(access, "snoop-smart")
    s.send(1, 2, 3, 4, 5)
    assert s.ack(1, block) == [True]
    assert s.repaired == []


@by_access
@pytest.mark.parametrize(("scheme", "stripped"), [("snoop-smart", 1), ("ll-smart", 1), ("snoop", 0), ("ll", 0)])
def test_only_the_smart_schemes_remove_the_option_of_the_tagger(access: Access, scheme: str, stripped: int) -> None:
    s = flowing(access, scheme)
    s.send(1)
    assert (smart_of(s.view(s.from_link(s.acknowledgement(2, smart=1)))) is None) == stripped


@by_access
def test_fixed_host_that_permits_smart_options_gets_them(access: Access) -> None:
    s = fresh(access, "snoop-smart")
    s.send(-1 / SIZE, size=0, flags=SYN, syn=SynOptions(1460), extra=(SMART_PERMITTED,))
    s.send(0, 1)
    assert smart_of(s.view(s.from_link(s.acknowledgement(1, smart=0)))) == (s.number(0), s.number(1))


@by_access
@by_selective
def test_no_hole_is_repaired_more_often_than_its_tries(access: Access, scheme: str) -> None:
    s = flowing(access, scheme, limits=Limits(tries=3))
    s.send(1, 2, 3, 4)
    s.ack(1, (4, 5))
    for _ in range(9):
        # the sender of the first hole does not give it up
        s.send(1)
        s.wait(250 * MS)
    assert s.repaired.count(2) == 3
