"""The repairs of the base station's filter, rule by rule, with packets as octets and as objects.

Read first: COMPARISON sections 2.2, 2.3 and 3.3; RFC 5681 section 2 (dupacks); for the scripts
`tests/harness/base_station.py`. The harness checks that a repair is the very packet that was cached, and that only pure
dupacks are held back. Segment 0 was acknowledged before a script begins; `1-` passes with `ll` and `ll-smart`.
"""

import pytest

from common.units import MS, SECOND
from linklayer.filters.snoop_cache import Limits
from tcpip.access import Access
from tcpip.options import SMART_PERMITTED, smart_of
from tcpip.segment import ACK, ECE, SYN, Flow, SynOptions
from tests.harness.base_station import DATA, SIZE, by_first, by_script
from tests.harness.snooping import SnoopStation, by_selective, flowing

# -- local retransmission and timers -------------------------------------------------------------------------


@by_first
@pytest.mark.parametrize("flags", [ACK, ACK | ECE])
def test_second_dupack_repairs_once_and_only_snoop_suppresses(
    access: Access, scheme: str, first: int, flags: int
) -> None:
    s = flowing(access, scheme, first=first)
    lost, *_ = s.send(1, 2, 3, 4, 5, 6)
    s.play(f"< 1(flags={flags})-  =  < 1(flags={flags})-x4  = 1")
    assert s.filter.counters.retransmitted_bytes == len(lost)
    assert s.filter.counters.suppressed_dupacks == (5 if s.aware else 0)
    s.play("< 7  +60s")


@by_first
@by_script(
    {
        "acknowledged segments": "> 1 2 3 4 5 6 7 8  < 2 3 6 9  +3600s  rest",
        # 1 to 4 are lost, and each repair takes a round trip
        "a new ACK of part repairs the next hole at once": (
            "> 1 2 3 4 5 6 7 8 9 10  < 1-x6  = 1  +20ms  < 2  = 2  +20ms  < 3  = 3  +20ms  < 4  = 4  < 11  +60s"
        ),
        "a new ACK below segments sent after the repair": "> 1 2 3  < 1-x2  = 1  > 4 5  < 4",
        "the least timeout": "> 1  @200ms 1  ? 1:corruption  @200ms 1  ?",
        # still the least: 390 ms were never taken for a round trip
        "round trips of repaired segments are no samples": (
            "> 1  +390ms  = 1  < 2  > 2  +390ms  = 2  < 3  > 3  +390ms  = 3  < 4  > 4  @200ms 4"
        ),
        # RFC 2883: the first block lies below the acknowledgement; SMART names it likewise
        "an answer to a duplicate is no dupack": "> 1 2 3 4  < 3 3[1:2]x3 3~1x3  ?",
    }
)
def test_repairs(access: Access, scheme: str, first: int, script: str) -> None:
    flowing(access, scheme, first=first).play(script)


@by_script(
    {
        # srtt + 4 * (srtt / 2)
        "follows the round-trip time": "> 0  +400ms  < 1  > 1  @1200ms 1",
        "is a second before the first sample": "> 0  @1s 0",
    }
)
def test_timeout(access: Access, script: str) -> None:
    SnoopStation(access).play(script)


def test_timers_expire_at_ticks_of_the_clock(access: Access) -> None:
    # sent after 250 ms: 450 ms is no tick
    flowing(access, limits=Limits(tick_ms=200)).play("+230ms  > 1  @350ms 1")


def test_timeout_doubles_after_steady_expiries_up_to_a_bound(access: Access) -> None:
    gaps = [200] * 6 + [400, 800] + [1600] * 4
    flowing(access, limits=Limits(tries=12)).play("> 1" + "".join(f"  @{gap}ms 1" for gap in gaps))


def test_after_its_tries_a_segment_is_left_to_its_sender(access: Access, scheme: str) -> None:
    s = flowing(access, scheme, limits=Limits(tries=3))
    # the loss is not the wired network's, and there is no guess that says so
    s.play("> 1 2 3 4  +10s  = 1 1 1  < 1  ? 1:corruption")
    # the sender's retransmission passes, and is repaired in its turn
    s.send(1)
    assert s.wait(1600 * MS) != []


def test_mobile_host_that_never_answers_is_left_alone(access: Access, scheme: str) -> None:
    s = SnoopStation(access, scheme)
    s.send(*range(12))
    assert len(s.wait(600 * SECOND)) == Limits().tries
    assert s.filter._cache.nbytes == 0
    assert s.filter.next_deadline() is None


def test_timers_of_many_flows_expire_each_at_its_time(access: Access) -> None:
    s = SnoopStation(access, limits=Limits(flows=50))
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
    assert len(s.filter._wakeups) <= 100


# -- selective ACKs ------------------------------------------------------------------------------------------


@by_selective
@by_first
@by_script(
    {
        # once each: until their timer expires, further news repair the new hole alone
        "the first SMART dupack repairs all holes below an arrived segment": (
            "> 1 2 3 4 5 6 7  < 1~4-  = 1 2 3  < 1~6-  = 5  ? 1:corruption 2:corruption 3:corruption 5:corruption"
        ),
        "the first SACK repairs all holes below an arrived segment": (
            "> 1 2 3 4 5 6 7  < 1[4:5]-  = 1 2 3  < 1[6:7][4:5]-  = 5"
            "  ? 1:corruption 2:corruption 3:corruption 5:corruption"
        ),
        # 3 may have arrived, and the ACK that named it be lost. 5 went between both copies of 3: it is lost if the
        # second one has arrived
        "an ACK too soon after a repair was caused by the first copy": (
            "> 1 2 3 4  < 1~2-  > 5  < 1~4-  = 1 3  +19ms  < 5  ="
        ),
        "an ACK a round trip after a repair was caused by it": "> 1 2 3 4  < 1~2-  > 5  < 1~4-  = 1 3  +20ms  < 5  = 5",
        # the dupacks are of segments sent behind the repair
        "repairs that are lost wait for their timer": (
            "> 1 2 3 4 5  < 1[4:5]-  = 1 2 3  > 6 7  < 1[4:6]- 1[4:7]- 1[4:8]-  @200ms 1 2 3"
        ),
        "arrived segments": "> 1 2 3 4 5  < 1[2:4][5:6]-  = 1 4  < 4[5:6]  =  @200ms 4  < 6  +60s  rest",
        # a kernel short of memory drops segments out of order
        "segments that the receiver drops again, by the timer": "> 1 2 3  < 1[2:4]-  = 1  +20ms  < 2  =  @200ms 2",
        "segments that the receiver drops again, by dupacks": (
            "> 1 2 3  < 1[2:4]-  = 1  +20ms  < 2  =  < 2-  =  < 2-  = 2"
        ),
        "SACK of octets beyond": "> 1 2 3 4 5  < 1[9:11]",
        "an empty SACK block": "> 1 2 3 4 5  < 1[4:4]",
        "a SACK block that ends before it begins": "> 1 2 3 4 5  < 1[5:4]",
        "SACK of octets half the numbers away": "> 1 2 3 4 5  < 1[2147484.648:2147485.648]",
    }
)
def test_selective_repairs(access: Access, scheme: str, first: int, script: str) -> None:
    flowing(access, scheme, first=first).play(script)


@pytest.mark.parametrize("scheme", ["ll", "snoop"])
def test_without_smart_sack_blocks_are_ignored(access: Access, scheme: str) -> None:
    flowing(access, scheme).play("> 1 2 3 4 5 6 7  < 1[4:5]-  =  < 1[4:6]-  = 1")


@pytest.mark.parametrize(("scheme", "stripped"), [("snoop-smart", 1), ("ll-smart", 1), ("snoop", 0), ("ll", 0)])
def test_only_the_smart_schemes_remove_the_option_of_the_tagger(access: Access, scheme: str, stripped: int) -> None:
    s = flowing(access, scheme)
    s.send(1)
    assert (smart_of(s.view(s.from_link(s.acknowledgement(2, smart=1)))) is None) == stripped


def test_fixed_host_that_permits_smart_options_gets_them(access: Access) -> None:
    s = SnoopStation(access, "snoop-smart")
    s.send(-1 / SIZE, size=0, flags=SYN, syn=SynOptions(1460), extra=(SMART_PERMITTED,))
    s.send(0, 1)
    assert smart_of(s.view(s.from_link(s.acknowledgement(1, smart=0)))) == (s.number(0), s.number(1))


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
