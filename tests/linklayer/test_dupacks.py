"""DDA and congestion coherence: which dupacks wait, how long, and what they guess.

Scripts are in the words of `tests/harness/base_station.py`. They have the filter beside the receiver: data comes over
the link, and ACKs come from the host. Beside the sender both come from the other side.
"""

import re
from random import Random
from typing import Any

import pytest

from common.units import MS
from linklayer.filters import FILTERS
from linklayer.filters.coherence import CoherentReceiver, CoherentSender
from linklayer.filters.dupacks import MAX_FLOWS, MAX_HELD, Hold, HoldOptions
from linklayer.link import LinkContext
from tcpip.access import Access, Objects
from tcpip.segment import Flow
from tests.harness.base_station import BaseStation, by_access, by_first, by_script

#: segment 1 is missing, and its ACK has come
HOLE = "<< 0 2 3 4 5  >> 1  "
#: so many segments, but for one
BUT_7 = "<< 0 1 2 3 4 5 6 8 9 10 11  "
ALL = "<< 0 1 2 3 4 5 6 7 8 9 10 11  "


class Near(BaseStation):
    """The filter of one end, which waits for 81 ms."""

    def __init__(
        self,
        access: Access,
        kind: type[Hold] = Hold,
        *,
        first: int = 5000,
        receiver: bool = True,
        dupacks: int = 3,
        **halves: bool,
    ) -> None:
        options = HoldOptions(wait_ms=81, dupacks=dupacks)
        super().__init__(access, lambda access: kind(access, options, **halves), first=first)
        self._receiver = receiver

    def play(self, script: str) -> None:
        there = {"<<": "<<", ">>": ">>"} if self._receiver else {"<<": ">", ">>": "<"}
        super().play(re.sub("<<|>>", lambda found: there[found[0]], script))


@pytest.mark.parametrize("receiver", [True, False], ids=["receiver", "sender"])
@by_first
@by_script(
    {
        "the third dupack and later ones wait, and then all pass": (
            HOLE + ">> 1 1 1-x3  +80ms  ^  +1ms  ^ 1 1 1  rest  >> 1  ? 1:late"
        ),
        "each hole has its own count, wait and guess": (
            # 5 is a partial new ACK
            "<< 0 1 3 4 6 7 8 9  >> 2 2 2 2-  +40ms  << 2  >> 5 5 5 5-x2  +80ms  ^  +1ms  ^ 5 5  ? 2:late 5:late"
        ),
        "data is no dupack": HOLE + ">> 1(size=10)x5  rest",
        "nor a window update": HOLE + ">> 1(window=401) 1(window=402) 1(window=403) 1(window=404)  rest",
        "nor an ACK that closes the window": HOLE + ">> 1(window=0)x5  rest",
        **{f"nor a {flag}": HOLE + f">> 1(flags=ACK|{flag})x5  rest" for flag in ("FIN", "SYN", "RST")},
        "nor an answer to a keep-alive, with nothing outstanding": "<< 0 1 2  >> 3x6  rest",
        "with SACK blocks it is one whatever the window": HOLE + ">> 1[2:3] 1[2:3](window=501) 1[2:3](window=502)-",
        "a flow that would hold too much stops waiting": (
            HOLE + f">> 1x2 1-x{MAX_HELD} 1  ^{' 1' * MAX_HELD}  rest  ? 1:late"
        ),
        "ACKs below a forged one are believed after a while": HOLE + ">> 5 1x34 1-",
    }
)
def test_dda(access: Access, first: int, receiver: bool, script: str) -> None:
    Near(access, first=first, receiver=receiver).play(script)


@pytest.mark.parametrize("receiver", [True, False], ids=["receiver", "sender"])
@by_access
def test_new_ack_drops_the_dupacks_that_wait_and_guesses_have_the_filters_name(receiver: bool, access: Access) -> None:
    near = Near(access, receiver=receiver)
    near.filter.name = "this"
    near.play(HOLE + ">> 1 1 1-x2  +81ms  ^ 1 1")
    assert near.filter.counters.suppressed_dupacks == 0
    near.play("<< 1 7 8 9  >> 6 6 6 6-x3  << 6  >> 10  rest  +1s")
    assert near.filter.counters.suppressed_dupacks == 3
    assert [guess.by for guess in near._guesses] == ["this", "this"]


#: of segment 7: what its neighbours' marks say
AT_ONCE, LATE = ">> 7x5  ? 7:congestion", ">> 7x3 7-x2  ? 7:late"
AT_RECEIVER: dict[str, Any] = {"kind": CoherentReceiver, "sending": False}
AT_SENDER: dict[str, Any] = {"kind": CoherentSender, "receiver": False, "receiving": False}
#: the filter, and a script
OTHERS: dict[str, tuple[dict[str, Any], str]] = {
    "dda from the first dupack on": ({"dupacks": 1}, HOLE + ">> 1-x3  +81ms  ^ 1 1 1"),
    **{
        f"cc, segment {n} is marked": (AT_RECEIVER, BUT_7.replace(f" {n} ", f" {n}(ecn=CE) ") + acks)
        for n, acks in ((5, LATE), (6, AT_ONCE), (8, AT_ONCE), (9, AT_ONCE), (10, LATE))
    },
    "cc looks at marks up to the third dupack only": (
        AT_RECEIVER, "<< 0 1 2 3 4 5 6 9 10 11  >> 7 7 7 7-  << 8(ecn=CE)  >> 7-",
    ),
    "cc from the first dupack on lets go when a neighbour is marked": (
        {**AT_RECEIVER, "dupacks": 1},
        "<< 0 1 2 3 4 5 6 8  >> 7 7-  << 9(ecn=CE)  >> 7  ^ 7  << 10  >> 7  ? 7:congestion",
    ),
    "cc holds nothing for data that goes to the link": ({**AT_RECEIVER, "receiver": False}, ALL + ">> 7x6"),
    # the new ACK, then three dupacks
    "cc-sender": (AT_SENDER, ALL + ">> 7 7 7 7-"),
    "cc-sender, the new ACK echoes": (AT_SENDER, ALL + ">> 7(flags=ACK|ECE) 7 7 7"),
    "cc-sender, the first dupack echoes": (AT_SENDER, ALL + ">> 7 7(flags=ACK|ECE) 7 7"),
    "cc-sender, the second dupack echoes": (AT_SENDER, ALL + ">> 7 7 7(flags=ACK|ECE) 7"),
    "cc-sender, the third dupack echoes": (AT_SENDER, ALL + ">> 7 7 7 7(flags=ACK|ECE)-"),
}  # fmt: skip


@by_access
@pytest.mark.parametrize(("filter_", "script"), OTHERS.values(), ids=OTHERS)
def test_other_filters(access: Access, filter_: dict[str, Any], script: str) -> None:
    Near(access, **filter_).play(script)


def test_of_two_flows_the_wait_that_began_first_ends_first() -> None:
    near = Near(Objects())
    near.play(HOLE + ">> 1 1 1-")
    near.now += 40 * MS
    near.flow = Flow(1, 2, 3, 4)
    near.play(HOLE + ">> 1 1 1-")
    assert near.filter.next_deadline() == 81 * MS
    near.filter.handle_deadline(100 * MS)
    assert near.filter.next_deadline() == 121 * MS


@pytest.mark.parametrize("name", ["dda", "cc", "cc-sender"])
def test_only_the_end_that_the_options_name_has_the_filter(name: str) -> None:
    for end in FILTERS[name].ends:
        for context_end in FILTERS[name].ends:
            context = LinkContext(end=context_end, access=Objects(), sized=True, rng=Random(1), now=0, frame_ms=5.0)
            made = FILTERS[name].make(HoldOptions(end=end), context)
            assert isinstance(made, Hold) is (end == context_end)


def test_the_flow_unused_for_longest_is_forgotten() -> None:
    near = Near(Objects())
    near.play(HOLE + ">> 1 1 1-")
    known = near.flow
    for port in range(MAX_FLOWS):
        near.flow = Flow(1, port, 2, 3)
        near.play("<< 0")
    assert isinstance(near.filter, Hold)
    assert len(near.filter._flows) == MAX_FLOWS
    near.flow = known
    near.play("+1s  >> 1")
