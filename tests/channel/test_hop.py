"""The hop against an independent account in exact fractions, and against itself driven late."""

import random
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from channel.capacity import Capacity
from channel.capacity.cra import ConstantRate
from channel.capacity.rbdc import Rbdc, RbdcOptions
from channel.capacity.vbdc import Vbdc, VbdcOptions
from channel.delay import ExcessDelay
from channel.errors import ERASED, INTACT, ErrorModel, Fate, Verdict
from channel.errors.bernoulli import Bernoulli
from channel.errors.exponential import ExponentialBitErrors
from channel.errors.none import NoErrors
from channel.errors.uniform import UniformOnOff
from channel.framing import Framing, aal5, raw
from channel.hop import Arrival, Hop
from tests.harness.distributions import binomial_bound
from tests.harness.hop_driving import (
    MS,
    SECOND,
    Traffic,
    drain,
    drive_for_arrivals,
    drive_late,
    drive_punctually,
    make_hop,
)
from tests.harness.scripted_hop import Script

traffic = st.lists(
    st.tuples(st.one_of(st.just(0), st.integers(0, 3 * MS), st.integers(0, 900 * MS)), st.integers(1, 1500)),
    min_size=1,
    max_size=40,
)
capacities = st.sampled_from(
    [
        lambda: ConstantRate(128_000),
        lambda: ConstantRate(9_999_991),
        lambda: Rbdc(128_000, RbdcOptions()),
        lambda: Rbdc(100_000, RbdcOptions(superframe_ms=53, drain_ms=1000)),
        lambda: Vbdc(128_000, VbdcOptions(wait_ms=(0, 400)), random.Random(1)),
    ]
)
errors = st.sampled_from(
    [
        lambda: NoErrors(),
        lambda: Bernoulli(0.3, random.Random(2)),
        lambda: ExponentialBitErrors(2_000, random.Random(3)),
        lambda: UniformOnOff((0, 300 * MS), (0, 100 * MS), random.Random(4)),
    ]
)
delays = st.sampled_from([lambda: None, lambda: ExcessDelay(0.2, 4 * SECOND, random.Random(5))])


class Steps(Capacity):
    """A rate, and others (bit/s) from some times on; keeps what it hears of the backlog."""

    def __init__(self, rate: int, *steps: tuple[int, int]) -> None:
        self.rate, self.steps = rate, [*steps]
        self.reports: list[tuple[int, int]] = []

    def rate_bps(self) -> int:
        return self.rate

    def handle_backlog(self, backlog_bits: int, now: int) -> None:
        self.reports.append((now, backlog_bits))

    def next_deadline(self) -> int | None:
        return self.steps[0][0] if self.steps else None

    def handle_deadline(self, now: int) -> None:
        while self.steps and self.steps[0][0] <= now:
            self.rate = self.steps.pop(0)[1]


class Spans(ErrorModel):
    """Loses frames of 2000 octets, and keeps the times and sizes that it is asked about."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int, int]] = []

    def judge(self, started_at: int, ended_at: int, nbytes: int) -> Verdict:
        self.asked.append((started_at, ended_at, nbytes))
        return ERASED if nbytes == 2_000 else INTACT


class Once(random.Random):
    """Draws a number below every probability, the n-th time."""

    def __init__(self, number: int) -> None:
        super().__init__(0)
        self.left = number

    def random(self) -> float:
        self.left -= 1
        return 0.99 if self.left else 0.0


@given(traffic, capacities, errors, delays, st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_late_driving_changes_nothing(
    frames: Traffic,
    capacity: Callable[[], Capacity],
    error_model: Callable[[], ErrorModel],
    delay: Callable[[], ExcessDelay | None],
    seed: int,
) -> None:
    def hop() -> Hop[int]:
        return make_hop(capacity(), aal5, error_model(), excess_delay=delay())

    punctual, late, asleep = hop(), hop(), hop()
    expected = drive_punctually(punctual, frames)
    assert drive_late(late, frames, random.Random(seed)) == expected
    assert drive_for_arrivals(asleep, frames) == expected
    for name in ("frames", "bytes", "wire_bits", "erased", "damaged", "refused"):
        assert getattr(late, name) == getattr(asleep, name) == getattr(punctual, name)


@given(traffic, capacities, errors, delays)
@settings(max_examples=100, deadline=None)
def test_a_frame_is_lost_by_verdict_or_refusal_only(
    frames: Traffic,
    capacity: Callable[[], Capacity],
    error_model: Callable[[], ErrorModel],
    delay: Callable[[], ExcessDelay | None],
) -> None:
    hop = make_hop(capacity(), aal5, error_model(), excess_delay=delay())
    arrivals, accepted = drive_punctually(hop, frames)
    kept = [n for n, ok in enumerate(accepted) if ok]
    assert [a.frame for a in arrivals] == kept
    assert hop.frames == len(kept)
    assert hop.refused == len(frames) - len(kept)
    assert hop.bytes == sum(frames[n][1] for n in kept)
    assert hop.wire_bits == sum(aal5(frames[n][1]) for n in kept)
    assert hop.erased == sum(a.verdict.fate is Fate.ERASED for a in arrivals)
    assert hop.damaged == sum(a.verdict.fate is Fate.DAMAGED for a in arrivals)
    assert hop.room() == 6_000
    assert all(a.sent_at < b.sent_at and a.arrived_at <= b.arrived_at for a, b in pairwise(arrivals))
    assert all(a.arrived_at >= a.sent_at + 250 * MS for a in arrivals)


@given(traffic, st.integers(1, 10_000_000_000))
@settings(max_examples=150, deadline=None)
def test_constant_rate_against_exact_fractions(frames: Traffic, rate_bps: int) -> None:
    """Busy periods start on a whole ns; inside one, times are exact and only shown rounded up."""
    hop = make_hop(ConstantRate(rate_bps), raw, propagation_ns=7, buffer_bytes=4_000)
    arrivals, accepted = drive_punctually(hop, frames)
    held: list[tuple[Fraction, int]] = []
    expected_sent, expected_accepted = [], []
    now, ends = 0, Fraction(0)
    for gap, nbytes in frames:
        now += gap
        held = [(end, size) for end, size in held if ceil(end) > now]
        ok = not held or sum(size for _, size in held) + nbytes <= 4_000
        expected_accepted.append(ok)
        if ok:
            ends = (ends if held else Fraction(now)) + Fraction(8 * nbytes * SECOND, rate_bps)
            held.append((ends, nbytes))
            expected_sent.append(ceil(ends))
    assert accepted == expected_accepted
    assert [a.sent_at for a in arrivals] == expected_sent
    assert [a.arrived_at for a in arrivals] == [at + 7 for at in expected_sent]


def test_an_early_deadline_does_nothing() -> None:
    hop = make_hop()
    hop.handle_frame(0, 1_000, 5)
    due = 5 + 8 * MS
    assert hop.next_deadline() == due
    hop.handle_deadline(due - 1)
    assert (hop.next_deadline(), hop.frames, hop.room()) == (due, 0, 5_000)
    hop.handle_deadline(due)
    assert (hop.next_deadline(), hop.frames, hop.room()) == (due + 250 * MS, 1, 6_000)
    hop.handle_deadline(due)
    assert hop.frames == 1
    assert hop.poll_arrival(due + 250 * MS - 1) is None
    assert hop.poll_arrival(due + 250 * MS) == Arrival(0, INTACT, due, due + 250 * MS)
    assert hop.next_deadline() is None


def test_mac_buffer_counts_the_frame_being_sent() -> None:
    hop = make_hop(buffer_bytes=2_000)
    assert hop.handle_frame(0, 5_000, 0)
    assert hop.room() == 0
    assert not hop.handle_frame(1, 1, 0)
    end = 40 * MS
    assert not hop.handle_frame(2, 1, end - 1)
    assert hop.handle_frame(3, 2_000, end)
    assert not hop.handle_frame(4, 1, end)
    assert hop.refused == 3


@pytest.mark.parametrize(
    ("make", "framing", "frames", "airtimes"),
    [
        (
            lambda: ConstantRate(1_000_000),
            raw,
            [(3, 1_000), (0, 2_000), (100 * MS, 500)],
            [(3, 3 + 8 * MS), (3 + 8 * MS, 3 + 24 * MS), (3 + 100 * MS, 3 + 104 * MS)],
        ),
        # a frame starts when there is a rate
        (
            lambda: Vbdc(128_000, VbdcOptions(), random.Random(0)),
            aal5,
            [(1, 1_450)],
            [(795 * MS, 1_060 * MS)],
        ),
        # 400 bits at 8 kbit/s, and 400 at 16
        (
            lambda: Steps(0, (100 * MS, 8_000), (150 * MS, 16_000)),
            raw,
            [(20 * MS, 100), (0, 100)],
            [(100 * MS, 175 * MS), (175 * MS, 225 * MS)],
        ),
    ],
    ids=["constant rate", "demand", "the rate changes"],
)
def test_error_model_gets_frames_in_order_with_their_airtime(
    make: Callable[[], Capacity], framing: Framing, frames: Traffic, airtimes: list[tuple[int, int]]
) -> None:
    spans = Spans()
    arrivals, _ = drive_punctually(make_hop(make(), framing, spans), frames)
    assert spans.asked == [(*airtime, nbytes) for airtime, (_, nbytes) in zip(airtimes, frames, strict=True)]
    assert [a.verdict is ERASED for a in arrivals] == [nbytes == 2_000 for _, nbytes in frames]


def test_the_backlog_is_what_is_still_to_be_served() -> None:
    steps = Steps(10, (150 * MS, 20), (350 * MS, 0), (500 * MS, 1_000))
    arrivals, _ = drive_punctually(make_hop(steps), [(0, 1), (50 * MS, 1), (350 * MS, 1)])
    # Served: 0.5 bit by 50 ms, 1.5 by 150 ms, 5.5 by 350 ms and until 500 ms; then 18.5 bits at 1 ms each.
    assert steps.reports == [(0, 8), (50 * MS, 16), (150 * MS, 15), (350 * MS, 11), (400 * MS, 19), (500 * MS, 19)]
    assert [a.sent_at for a in arrivals] == [502_500_000, 510_500_000, 518_500_000]


def test_excess_delay_holds_what_is_behind_it() -> None:
    hop = make_hop(excess_delay=ExcessDelay(0.01, 20 * MS, Once(3)))
    arrivals, _ = drive_punctually(hop, [(0, 1_000)] * 6)
    delays = [a.arrived_at - a.sent_at - 250 * MS for a in arrivals]
    assert delays == [0, 0, 20 * MS, 12 * MS, 4 * MS, 0]


@given(traffic, st.integers(1, 9_000), st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_far_buffer_bounds_what_is_under_way_and_late_driving_changes_nothing(
    frames: Traffic, far_bytes: int, seed: int
) -> None:
    def hop() -> Hop[int]:
        delay = ExcessDelay(0.2, 4 * SECOND, random.Random(5))
        return make_hop(ConstantRate(100_000), excess_delay=delay, far_bytes=far_bytes)

    sizes = [nbytes for _, nbytes in frames]
    expected = drive_punctually(hop(), frames)
    assert drive_late(hop(), frames, random.Random(seed)) == expected
    arrivals, _ = expected
    for number, arrival in enumerate(arrivals):
        started_at = arrival.sent_at - sizes[arrival.frame] * 80_000
        before = [sizes[a.frame] for a in arrivals[:number] if a.arrived_at > started_at]
        # a frame of any size may be under way alone
        assert not before or sum(before) + sizes[arrival.frame] <= far_bytes


@pytest.mark.parametrize("far_bytes", [2_000, 2_999])
def test_far_buffer_stops_the_transmitter_behind_a_held_frame(far_bytes: int) -> None:
    # a frame takes 8 ms; the first arrives at 108 ms, and two fit behind the transmitter
    delay = ExcessDelay(0.01, 100 * MS, Once(1))
    hop = make_hop(propagation_ns=0, excess_delay=delay, far_bytes=far_bytes)
    arrivals, _ = drive_punctually(hop, [(0, 1_000)] * 4)
    assert [a.sent_at // MS for a in arrivals] == [8, 16, 116, 124]
    assert [a.arrived_at // MS for a in arrivals] == [108, 108, 116, 124]


def test_excess_delay_probability() -> None:
    n, p = 50_000, 0.01
    delay = ExcessDelay(p, 4 * SECOND, random.Random(13))
    draws = [delay.draw() for _ in range(n)]
    assert set(draws) == {0, 4 * SECOND}
    assert abs(sum(map(bool, draws)) - n * p) <= binomial_bound(n, p)


def test_far_bytes_needs_a_constant_rate() -> None:
    with pytest.raises(ValueError, match="far_bytes is given"):
        make_hop(Rbdc(128_000, RbdcOptions()), far_bytes=9)


def test_frames_in_flight_have_left_and_not_arrived() -> None:
    hop = make_hop(ConstantRate(8_000_000), propagation_ns=10_000)
    for frame in (1, 2):
        assert hop.handle_frame(frame, 5, 0)
    hop.handle_deadline(5_000)
    assert [arrival.frame for arrival in hop.in_flight()] == [1]
    hop.handle_deadline(10_000)
    assert [arrival.frame for arrival in hop.in_flight()] == [1, 2]
    assert [arrival.frame for arrival in drain(hop, 15_000)] == [1]
    assert [left.frame for left in hop.in_flight()] == [2]


def test_new_error_model_applies_from_the_frame_on_the_air() -> None:
    hop = make_hop(propagation_ns=0, buffer_bytes=10_000)
    for number in range(3):
        assert hop.handle_frame(number, 1_000, 0)
    # each takes 8 ms
    hop.handle_deadline(8 * MS)
    hop.set_errors(Bernoulli(1.0, random.Random(1)))
    hop.handle_deadline(24 * MS)
    assert [a.verdict.fate for a in drain(hop, 24 * MS)] == [Fate.INTACT, Fate.ERASED, Fate.ERASED]
    assert (hop.frames, hop.erased) == (3, 2)


def test_a_buffer_made_smaller_keeps_what_it_holds() -> None:
    hop = make_hop(propagation_ns=0, buffer_bytes=3_000)
    for number in range(3):
        assert hop.handle_frame(number, 1_000, 0)
    hop.set_buffer_bytes(1_000)
    assert (hop.room(), hop.handle_frame(3, 1_000, 0)) == (0, False)
    hop.handle_deadline(16 * MS)
    assert (hop.room(), hop.handle_frame(4, 1_000, 16 * MS)) == (0, False)
    hop.handle_deadline(24 * MS)
    assert (hop.room(), hop.frames, hop.refused) == (1_000, 3, 2)


def test_a_watcher_is_told_of_each_frame_as_its_last_bit_leaves() -> None:
    told: list[tuple[int, int, Verdict]] = []
    # a verdict that changes nothing is no damage, whichever object it is
    hop = make_hop(error_model=Script([INTACT, ERASED, Verdict(Fate.INTACT), Verdict(Fate.DAMAGED, (7,))]))
    hop.watch(lambda arrival: told.append((arrival.sent_at, arrival.frame, arrival.verdict)))
    for frame in range(4):
        assert hop.handle_frame(frame, 1000, 0)
    # an octet takes 8 us
    drain(hop, 16 * MS)
    assert [(sent_at, frame) for sent_at, frame, _ in told] == [(8 * MS, 0), (16 * MS, 1)]
    drain(hop, SECOND)
    assert [(sent_at, frame) for sent_at, frame, _ in told] == [(8 * MS * (frame + 1), frame) for frame in range(4)]
    assert [verdict.fate for *_, verdict in told] == [Fate.INTACT, Fate.ERASED, Fate.INTACT, Fate.DAMAGED]
    assert (hop.erased, hop.damaged, hop.frames) == (1, 1, 4)
