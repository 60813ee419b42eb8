"""Drop-tail, RED and CoDel: what is each one's own. tests/conformance/test_queues.py has what all keep to."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from math import isqrt, sqrt
from random import Random
from typing import Any

import pytest

from common.units import MS
from linklayer.queues import QueueContext
from linklayer.queues.codel import CoDel, CoDelOptions
from linklayer.queues.drop_tail import DropTail
from linklayer.queues.red import Red, RedOptions
from tcpip.segment import ACK, CE, ECT0, ECT1, NOT_ECT, Flow, Segment


def packet(ecn: int = NOT_ECT) -> Segment:
    """A packet as TCP in virtual time sends it."""
    return Segment(Flow(1, 2, 3, 4), 1, 1, ACK, 700, 960, ecn=ecn)


# -- limits -----------------------------------------------------------------------------------------------------


def place(seed: int = 1, **context: Any) -> QueueContext:
    return QueueContext(**{"rng": Random(seed), "packet_time_ns": 1, **context})


def codel(limit_bytes: int | None = None, limit_packets: int | None = None) -> CoDel:
    return CoDel(CoDelOptions(limit_packets=limit_packets), place(limit_bytes=limit_bytes))


@pytest.mark.parametrize("make", [DropTail, codel])
def test_a_packet_that_just_fits_is_taken(make: Callable[..., DropTail]) -> None:
    by_bytes, by_packets = make(3, None), make(None, 2)
    assert by_bytes.push(b"abc", 0)
    assert not by_bytes.push(b"d", 0)
    assert [by_packets.push(b"abc", 0) for _ in range(3)] == [True, True, False]
    assert (by_bytes.drops, by_packets.drops) == (1, 1)


def test_a_queue_without_a_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="limit_bytes, limit_packets or both"):
        DropTail()


# -- RED ---------------------------------------------------------------------------------------------------------


def test_red_averages_what_arrivals_find_and_decays_while_nothing_waits() -> None:
    queue = Red(RedOptions(min_packets=100, max_packets=200, limit_packets=100, weight=0.25), place(packet_time_ns=10))
    averages = []
    # finds 0, 1, 2, 3 packets
    for at in range(4):
        queue.push(packet(), at)
        averages.append(queue.average)
    # 0 + (1 - 0) / 4; 1/4 + (2 - 1/4) / 4; 11/16 + (3 - 11/16) / 4
    assert averages == [0, 0.25, 0.6875, 1.265625]
    for at in range(10, 14):
        queue.pop(at)
    # empty since 13: two packets' times pass, average * (3/4)^2
    queue.push(packet(), 33)
    assert queue.average == pytest.approx(1.265625 * 0.5625, rel=1e-12)
    # it waits still: the average moves towards 1
    queue.push(packet(), 99)
    assert queue.average == pytest.approx(0.711914 + (1 - 0.711914) / 4, rel=1e-6)


def test_red_decays_by_the_same_whether_or_not_arrivals_in_between_were_dropped() -> None:
    def average(arrivals: list[int]) -> float:
        queue = Red(RedOptions(min_packets=0, max_packets=0, limit_packets=9, weight=0.5), place(packet_time_ns=10))
        queue.average, queue._idle_since = 8.0, 0
        for at in arrivals:
            assert not queue.push(packet(), at)
        return queue.average

    assert average([30]) == average([10, 20, 30]) == 1.0


def red_holding(average: float, seed: int, **options: Any) -> Red:
    """Return a RED queue with thresholds 10 and 30 whose average stays at `average` packets, however many come."""
    shape = RedOptions(min_packets=10, max_packets=30, limit_packets=1 << 40, weight=1e-12, **options)
    queue = Red(shape, place(seed))
    queue.push(packet(), 0)
    queue.average = average
    return queue


def gap_moments(p_b: float) -> tuple[float, float]:
    """Return mean and variance of the gap between two notifications.

    The n-th arrival after one is notified with probability p_b / (1 - n p_b) (Floyd and Jacobson, figure 2), so a gap
    is longer than n with probability (1 - (n + 1) p_b) / (1 - p_b).
    """
    longer = [max(0.0, (1 - (n + 1) * p_b) / (1 - p_b)) for n in range(round(1 / p_b) + 2)]
    mean = sum(longer)
    return mean, sum((2 * n + 1) * share for n, share in enumerate(longer)) - mean**2


@pytest.mark.parametrize(("average", "p_b"), [(15.0, 0.025), (20.0, 0.05), (29.0, 0.095)])
def test_red_notifies_in_uniform_gaps_between_the_thresholds(average: float, p_b: float) -> None:
    queue = red_holding(average, seed=7)
    gaps: list[int] = []
    gap = 0
    while len(gaps) < 4000:
        arriving = packet(ECT0)
        assert queue.push(arriving, 0)
        gap += 1
        if arriving.ecn == CE:
            gaps.append(gap)
            gap = 0
    assert max(gaps) <= 1 / p_b + 1
    mean, variance = gap_moments(p_b)
    # 5 standard errors: one seed in 2 million would be farther off
    assert abs(sum(gaps) / len(gaps) - mean) < 5 * sqrt(variance / len(gaps))
    assert (queue.marks, queue.drops) == (4000, 0)


@pytest.mark.parametrize(("average", "marked"), [(9.99, 0), (10.0, 0), (30.01, 1000), (300.0, 1000)])
def test_red_marks_nothing_below_and_everything_above(average: float, marked: int) -> None:
    queue = red_holding(average, seed=1, mark_above=True)
    for _ in range(1000):
        queue.push(packet(ECT1), 0)
    assert (queue.marks, queue.drops) == (marked, 0)


def test_red_gentle_marks_more_and_more_up_to_twice_the_upper_threshold() -> None:
    arrivals = 20_000
    for average, probability in ((29.9, 0.0995), (30.01, 0.1003), (37.5, 0.325), (45.0, 0.55), (60.0, 1.0)):
        queue = red_holding(average, seed=3, gentle=True, mark_above=True)
        for _ in range(arrivals):
            queue.push(packet(ECT0), 0)
        mean, variance = gap_moments(probability) if probability < 1 else (1.0, 0.0)
        # The number of renewals: mean arrivals / mean, variance arrivals * variance / mean^3. 5 standard errors, and
        # one for the first gap.
        assert abs(queue.marks - arrivals / mean) < 5 * sqrt(arrivals * variance / mean**3) + 2


@pytest.mark.parametrize(
    ("average", "mark_above", "ecn", "marks", "drops"),
    [
        (25.0, False, ECT0, True, False),
        (25.0, False, NOT_ECT, False, True),
        (35.0, False, ECT0, False, True),
        (35.0, True, ECT0, True, False),
        (35.0, True, NOT_ECT, False, True),
    ],
)
def test_red_marks_what_can_be_marked_and_drops_the_rest(
    average: float, mark_above: bool, ecn: int, marks: bool, drops: bool
) -> None:
    queue = red_holding(average, seed=5, mark_above=mark_above)
    for _ in range(200):
        queue.push(packet(ecn), 0)
    assert (queue.marks > 0, queue.drops > 0) == (marks, drops)
    assert len(queue) == 201 - queue.drops


def test_weight_one_marks_exactly_what_finds_the_threshold_reached() -> None:
    queue = Red(RedOptions(min_packets=3, max_packets=3, limit_packets=10, weight=1, mark_above=True), place())
    packets = [packet(ECT0) for _ in range(12)]
    took = [queue.push(packet, 0) for packet in packets]
    assert [packet.ecn for packet in packets] == [ECT0] * 3 + [CE] * 7 + [ECT0] * 2
    assert took == [True] * 10 + [False] * 2
    for _ in range(8):
        queue.pop(1)
    assert queue.push(late := packet(ECT0), 1)
    assert late.ecn == ECT0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_packets": 16}, "min_packets is 16: must be max_packets, 15, at most"),
        ({"min_packets": 0, "max_packets": 0, "gentle": True}, "gentle needs more"),
    ],
)
def test_red_refuses_what_makes_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RedOptions(**options)


# -- CoDel -------------------------------------------------------------------------------------------------------

INTERVAL, TARGET = 100 * MS, 5 * MS


def standing(ecn: int, sojourn_ns: int = 20 * MS) -> Iterator[tuple[CoDel, int]]:
    """Yield a CoDel queue before each packet that leaves it, one per ms, all having waited `sojourn_ns`."""
    queue = codel(limit_packets=1000)
    for now in range(0, 3000 * MS, MS):
        queue.push(packet(ecn), now)
        if now >= sojourn_ns:
            yield queue, now


@pytest.mark.parametrize("ecn", [NOT_ECT, ECT0, ECT1])
def test_codel_notifies_after_an_interval_and_then_at_interval_over_root_count(ecn: int) -> None:
    """It marks what can be marked and drops the rest."""
    # The first packet has waited 20 ms at 20 ms; an interval later the first is notified.
    at = 20 * MS + INTERVAL
    expected = [at]
    for count in range(1, 8):
        at += isqrt(INTERVAL * INTERVAL // count)
        # packets leave at whole ms
        expected.append(-(-at // MS) * MS)
    times: list[int] = []
    left: list[Any] = []
    # each drop makes the next packet younger by a ms; only few are looked at, so that the wait stays above the target
    for queue, now in standing(ecn):
        before = queue.drops + queue.marks
        left.append(queue.pop(now))
        times += [now] * (queue.drops + queue.marks - before)
    assert times[:8] == expected
    assert expected[1:4] == [220 * MS, 291 * MS, 349 * MS]
    assert (queue.marks, queue.drops) == ((0, len(times)) if ecn == NOT_ECT else (len(times), 0))
    assert sum(packet.ecn == CE for packet in left) == queue.marks


def test_codel_leaves_a_short_wait_alone() -> None:
    for queue, now in standing(NOT_ECT, sojourn_ns=TARGET - MS):
        assert queue.pop(now) is not None
    assert queue.drops == 0


def test_codel_leaves_the_last_packet_alone_however_long_it_waits() -> None:
    queue = codel(limit_packets=10)
    for now in range(0, 3000 * MS, 200 * MS):
        queue.push(packet(), now)
        assert queue.pop(now + 150 * MS) is not None
    assert queue.drops == 0


def test_codel_stops_when_the_wait_is_short_again_and_goes_on_where_it_was_soon_after() -> None:
    queue = codel(limit_packets=10_000)
    now = 0

    def leave(packets: int, sojourn_ns: int) -> list[int]:
        """Take packets, one per ms, that have each waited this long; return when some were notified."""
        nonlocal now
        times = []
        for _ in range(packets):
            # two waiting packets of the age wanted: one leaves, one keeps the queue above the MTU
            queue._packets.clear()
            queue._arrivals.clear()
            queue.nbytes = 0
            for _ in range(3):
                queue.push(packet(ECT0), now - sojourn_ns)
            before = queue.marks
            queue.pop(now)
            times += [now] * (queue.marks - before)
            now += MS
        return times

    first = leave(1000, 20 * MS)
    gaps = [after - before for before, after in pairwise(first)]
    assert gaps == sorted(gaps, reverse=True)
    assert len(first) > 20
    assert leave(100, 1 * MS) == []
    again = leave(400, 20 * MS)
    # An interval passes anew; then the rate starts from the count of last time, not from one.
    assert again[0] == 1100 * MS + INTERVAL
    assert again[1] - again[0] == pytest.approx(INTERVAL / sqrt(len(first) - 1), abs=MS)
    # After a long rest it starts from one.
    assert leave(3000, 1 * MS) == []
    last = leave(400, 20 * MS)
    assert last[1] - last[0] == INTERVAL
