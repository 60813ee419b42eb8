"""The ELN marker: what it marks, what it guesses, and what it leaves alone.

Scripts are in the words of `tests/harness/base_station.py`; packets are octets and objects.
"""

from random import Random
from typing import Any

import pytest

from linklayer.filters.eln import MAX_ENTRIES, MAX_FLOWS, Marker
from linklayer.filters.eln_flows import MAX_HOLES, MAX_SEGMENTS
from linklayer.filters.ranges import Ranges
from tcpip.access import Access, Objects
from tcpip.options import ELN, has_eln
from tcpip.segment import RST, Flow, Option
from tests.harness.base_station import BaseStation, by_first, by_script

OPEN = "> -0.001+0(flags=SYN)  < 0  "
OPEN_FROM_MOBILE_HOST = "<< -0.001+0(flags=SYN)  >> 0  "


class End(BaseStation):
    """The marker of one end."""

    filter: Marker

    def __init__(self, access: Access, *, first: int = 5000, **options: bool) -> None:
        super().__init__(access, lambda access: Marker(access, **options), first=first)

    def back(self, place: float, **fields: Any) -> bool:
        """Let an ACK come back over the link; return whether it was marked."""
        return has_eln(self.view(self.from_link(self.acknowledgement(place, **fields))))


@by_first
@by_script(
    {
        "every dupack of a lost segment is marked": "> 0 1 2 3  < 1 1* 1*  ? 1:corruption",
        "ACKs that repeat nothing": "> 0 1 2 3  < 1 2 2(window=700) 4 4 1  ?",
        "a segment dropped by a queue": "> 0 2 3  < 1 1 1  ? 1:congestion",
        # the dupack that 2 has caused finds 1 on its way
        "a segment out of order": "> 0 2 1 3  < 1 1 3 4  ? 1:late",
        "three have passed it": "> 0 2 3 4 1  < 1 1  ? 1:late",
        "four have passed it, so it is a retransmission": "> 0 2 3 4 5 1  < 1 1  ? 1:congestion",
        # the receiver has room for the first half
        "the rest of a segment taken in part": "> 0+2  < 1 1  ? 1:late",
        # 4 and 5 were before the retransmission
        "a retransmission is lost when a later copy has come": (
            "> 0 1 2 3 4 5  < 1 1* 1*  > 1 6 7  < 1 1 1* 1*  ? 1:corruption 1:corruption"
        ),
        "a retransmission is lost when a later copy was selectively acknowledged": (
            "> 0 1 2 3 4 5  < 1 1[2:3]* 1[2:4]*  > 1 6 7  < 1[2:5] 1[2:6] 1[2:7]* 1[2:8]*  ? 1:corruption 1:corruption"
        ),
        "after the hole is filled": "> 0 1 2 3  < 1 1* 1*  > 1  < 4  > 4 5  < 5 6  ? 1:corruption",
        # 1 came after 3, which is missing
        "an ACK that fills one hole of two": "> 0 1 2 3 4  < 1 1* 1*  > 1  < 3*  ? 1:corruption 3:corruption",
        # nobody was told of 3 yet, and its new copy is under way
        "sent again before its turn": (
            "> 0 1 2 3 4 5  < 1 1[2:3]* 1[4:6][2:3]*  > 1 3 6  < 3[4:6]* 6  ? 1:corruption 3:corruption"
        ),
        # 4 was under way when it was sent again; 1 came after it, and 4 is missing
        "an ACK tells that a segment sent again was lost": (
            "> 0 1 2 3 4  < 1 1[2:3]* 1[2:4]*  > 1 4 5  < 4* 5  ? 1:corruption 4:corruption"
        ),
        "dropped and sent again is not late": (
            "> 0 2 4  < 1 1[2:3] 1[4:5][2:3]  > 1 3  < 3[4:5] 3[4:5]  ? 1:congestion 3:congestion"
        ),
        "dropped and then lost": "> 0 2 3  < 1 1 1  > 1 4  < 1*  ? 1:congestion 1:corruption",
        # 2 and 3 are on their way from the station to the host, and so is 1
        "SMART options prove nothing": "> 0 1 2 3  < 1~2 1(window=700)~3  ?  < 1(window=700)~3*  ? 1:corruption",
        "a D-SACK is no evidence": "> 0 1 2 3  < 1 1[0:1] 1[0:1]  ?",
        "a probe of the receiver's is no dupack": "> 0 1 2  < 1 1(seq=76) 1(seq=76)  ?",
        "no plain ACKs": "> 0 1 2 3  < 1 1(flags=FIN|ACK) 1(size=1)  ?",
        "a SYN-ACK": "> 0 1 2 3  < 1 1(flags=SYN|ACK)  ?",
        "a reset": "> 0 1 2 3  < 1 1(flags=RST|ACK)  ?",
        "answers to keep-alives": "> 0  < 1  > 0.999+0.001  < 1  > 0.999+0.001  < 1  > 0.999+0.001  < 1  ?",
        "retransmissions are followed octet by octet": (
            "> 0 1 2 3  < 1 1*  > 1+0.5  < 1  > 4  < 1[2:5]*  ? 1:corruption 1:corruption"
        ),
        "two holes": "> 0 1 2 3 4  < 1 1* 1*  > 1  < 3[4:5](window=1)*  > 3 5  < 6  ? 1:corruption 3:corruption",
    }
)
def test_marks_of_data_put_on_the_link(access: Access, first: int, script: str) -> None:
    end = End(access, first=first)
    end.play(OPEN + script)
    assert end.filter.counters.eln_marks == script.count("*")


REPORTS, ACROSS = {"reports": True}, {"sent": False, "holes": True}
OTHERS: dict[str, tuple[dict[str, bool], str]] = {
    "reports: only what was given up": (
        REPORTS,
        f"{OPEN}> 0 1 2 3  < 1 1  x 1  < 1* 1(window=1)*  > 1 4  < 1(window=1) 1(window=1)  x 1  < 1(window=1)*"
        "  ? 1:late 1:corruption 1:corruption",
    ),
    "reports: an ACK of part, where the next is given up": (
        REPORTS, f"{OPEN}> 0 1 2 3 4  x 1  x 3  < 1 1*  > 1  < 3*",
    ),
    "across: a hole": (
        ACROSS, f"{OPEN_FROM_MOBILE_HOST}<< 0 2 3  >> 1 1* 1[2:4]*  << 1  >> 1[2:4] 4  ? 1:corruption",
    ),
    "across: nothing missing": (ACROSS, f"{OPEN_FROM_MOBILE_HOST}<< 0 1 2 3  >> 1 1 1[2:4]  ? 1:congestion"),
    "across: an ACK up to the next hole": (ACROSS, f"{OPEN_FROM_MOBILE_HOST}<< 0 2 4  >> 1 1* 1*  << 1  >> 3*"),
    # what passed before the marker came: a retransmission is the first it sees; 3 and 4 have passed before
    "from the middle": ({}, "> 2 5 6  < 2 2 2 3  ?  < 6  > 7 8  < 6*"),
    "across: from the middle": (ACROSS, "<< 2 5 6  >> 2 2 3 6  << 8 9  >> 7 7*"),
}  # fmt: skip


@pytest.mark.parametrize(("options", "script"), OTHERS.values(), ids=OTHERS)
def test_marks_of_other_markers(access: Access, options: dict[str, bool], script: str) -> None:
    end = End(access, **options)
    end.play(script)
    assert end.filter.counters.eln_marks == script.count("*")


def test_a_copy_given_up_while_another_is_under_way_is_no_loss(access: Access) -> None:
    end = End(access, reports=True)
    end.play(OPEN + "> 0 1 2 3")
    earlier = end.latest[1]
    end.play("> 1  < 1")
    end.filter.handle_given_up(earlier, end.now)
    end.play("< 1  x 1  < 1*")


def test_a_new_connection_of_the_same_ports_begins_afresh(access: Access) -> None:
    end = End(access)
    end.play(OPEN + "> 0 1 2")
    end.first += 1 << 20
    end.play(OPEN + "> 0 1 2  < 1 1*")


def test_a_full_header_gives_its_last_sack_block(access: Access) -> None:
    end = End(access)
    end.play(OPEN + "> 0 1 2 3 4 5 6 7 8 9")
    segment = end.view(end.from_link(end.acknowledgement(1, (8, 9), (6, 7), timestamps=(1, 2), smart=8)))
    assert has_eln(segment)
    assert segment.sack == ((end.number(8), end.number(9)),)
    assert segment.timestamps == (1, 2)


def test_an_ack_without_room_or_with_a_mark_leaves_as_it_came(access: Access) -> None:
    end = End(access)
    end.play(OPEN + "> 0 1 2 3  < 1")
    assert not end.back(1, extra=(Option(254, bytes(36)),))
    assert end.back(1, extra=(ELN,))
    assert end.filter.counters.eln_marks == 0
    assert end.guesses() == [(1, "corruption")]


# -- memory ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_memory_is_bounded() -> None:
    rng = Random(1)
    end = End(Objects(), holes=True)
    for port in range(MAX_FLOWS + 20):
        end.flow = Flow(1, port, 2, 3)
        end.play("> 0 1  << 0 1")
    assert len(end.filter._sent) == len(end.filter._seen) == MAX_FLOWS
    end.play(OPEN)
    for _ in range(3 * MAX_SEGMENTS):
        place = rng.randrange(100_000)
        end.play(f"> {place}  << {place}")
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
        assert ranges.overlaps(left - 3, right - 3) == bool(numbers & set(range(left - 3, right - 3)))
        edges = sum(number - 1 not in numbers for number in numbers)
        assert len(ranges) == edges


def test_of_too_many_ranges_the_lowest_goes() -> None:
    ranges = Ranges(2)
    for left in (0, 10, 20):
        ranges.add(left, left + 5)
    assert [number in ranges for number in (0, 10, 20)] == [False, True, True]
    ranges.remove(22, 23)
    assert [number in ranges for number in (10, 20, 22, 23)] == [False, True, False, True]
