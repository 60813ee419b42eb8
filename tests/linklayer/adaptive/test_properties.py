"""slacp-adaptive under an adversary: what must hold whatever the medium does to frames, and when."""

from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.units import MS
from linklayer.adaptive.frames import Ack, Frame
from tests.harness.adaptive_pair import AdaptivePair

#: numbers wrap soon after the start
FIRSTS = st.sampled_from([0, 2**32 - 20])
#: a time in ms, and how many packets come then
ARRIVALS = st.lists(st.tuples(st.integers(0, 800), st.integers(1, 8)), min_size=1, max_size=8)
#: which of 16 frames in turn are lost
PATTERNS = st.lists(st.booleans(), min_size=16, max_size=16)


def packet(number: int) -> bytes:
    return number.to_bytes(4, "big") + bytes(number * 37 % 1200)


def number_of(found: object) -> int:
    return int.from_bytes(cast(bytes, found)[:4], "big")


@pytest.mark.slow
@settings(max_examples=60)
@given(
    patterns=st.tuples(PATTERNS, PATTERNS),
    outage=st.tuples(st.integers(0, 2000), st.integers(0, 1500)),
    arrivals=st.tuples(ARRIVALS, ARRIVALS),
    fast_one_in=st.sampled_from([0, 2, 5]),
    round_trips=st.sampled_from([1, 2, 3, 6]),
    delay_ms=st.sampled_from([0.5, 25, 250]),
    first=FIRSTS,
)
def test_whatever_is_lost_and_whenever(
    patterns: tuple[list[bool], list[bool]],
    outage: tuple[int, int],
    arrivals: tuple[list[tuple[int, int]], list[tuple[int, int]]],
    fast_one_in: int,
    round_trips: int,
    delay_ms: float,
    first: int,
) -> None:
    """Each packet is delivered once or given up; reliable ones in time are in order; counters agree; no deadline
    spins.

    A packet may be both: its acknowledgements were lost, or came later than any before.
    """
    count = [0, 0]
    begins, lasts = outage

    def loses(end: int, now: int, frame: Frame) -> bool:
        count[end] += 1
        gone = patterns[end][count[end] % 16] or begins * MS <= now < (begins + lasts) * MS
        # a medium that loses all for ever is no test
        return gone and now < 6000 * MS

    pair = AdaptivePair(loses, round_trips=round_trips, delay_ms=delay_ms, first=first)
    pair.channel_of = lambda found: int(bool(fast_one_in) and number_of(found) % fast_one_in == 0)
    made = 0
    for at, number, end in sorted((at, number, end) for end, some in enumerate(arrivals) for at, number in some):
        pair.run(at)
        for _ in range(number):
            pair.backlog[end].append(packet(made))
            made += 1
    pair.run(30_000)
    for end in (0, 1):
        taken = [number_of(found) for _, found in pair.taken[end]]
        got = [number_of(found) for _, found in pair.got[1 - end]]
        given_up = [number_of(found) for found in pair.given_up[end]]
        assert not pair.backlog[end]
        assert len(set(got)) == len(got), "a packet came twice"
        assert all(cast(bytes, found) == packet(number_of(found)) for _, found in pair.got[1 - end])
        assert len(set(given_up)) == len(given_up)
        assert set(got) | set(given_up) == set(taken), "a packet is neither delivered nor given up"
        taken_at = {number_of(found): at for at, found in pair.taken[end]}
        told = [frame.patience_ms for _, frame in pair.sent[end] if not isinstance(frame, Ack)]
        highest = -1
        for at, found in pair.got[1 - end]:
            number = number_of(found)
            if pair.channel_of(found) == 0:
                assert number > highest or at - taken_at[number] > min(told) * MS, "a packet in time came out of order"
                highest = max(highest, number)
        sender, receiver = pair.ends[end].counters(), pair.ends[1 - end].counters()
        assert sender.packets == len(taken)
        assert sender.residual_losses == len(given_up)
        assert receiver.delivered == len(got)
        assert sender.useful_bytes == sum(map(len, map(packet, taken))) - sum(map(len, map(packet, given_up)))
        assert not pair.ends[end].sender._held
