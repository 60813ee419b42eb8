"""The round-trip time estimate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklayer.rtt import INITIAL_NS, RttEstimator

MS = 1_000_000


def bound(*samples: int) -> int:
    estimator = RttEstimator()
    for sample in samples:
        estimator.handle_sample(sample)
    return estimator.bound_ns


def test_before_the_first_sample_and_after_it() -> None:
    # a link without delay has no estimate yet
    assert bound() == bound(0) == INITIAL_NS
    assert bound(40 * MS) == 40 * MS + 4 * 20 * MS


def test_two_samples_by_hand() -> None:
    # variation 20 + (|80 - 40| - 20) / 4 = 25 ms, srtt 40 + 40 / 8 = 45 ms (RFC 6298 section 2.3)
    assert bound(40 * MS, 80 * MS) == 45 * MS + 4 * 25 * MS


def test_a_steady_link_is_bounded_a_quarter_above_its_round_trip() -> None:
    assert bound(*[100 * MS] * 100) == 125 * MS


@pytest.mark.parametrize(("sample", "begins_anew"), [(19, True), (20, False), (60, False)])
def test_guess_counts_as_a_sample_unless_the_first_sample_is_less_than_half(sample: int, begins_anew: bool) -> None:
    estimator = RttEstimator()
    estimator.guess(40 * MS)
    assert estimator.bound_ns == bound(40 * MS)
    estimator.handle_sample(sample * MS)
    assert estimator.bound_ns == (bound(sample * MS) if begins_anew else bound(40 * MS, sample * MS))
    # the second sample never does
    estimator.handle_sample(MS)
    before = (sample * MS,) if begins_anew else (40 * MS, sample * MS)
    assert estimator.bound_ns == bound(*before, MS)


@given(st.integers(1, 10**10), st.integers(1, 10**10))
def test_one_sample_of_a_longer_round_trip_is_enough_to_wait_for_it(short: int, longer: int) -> None:
    if longer >= 2 * short:
        assert bound(*[short] * 50, longer) >= longer - longer // 4


@given(st.lists(st.integers(1, 10**10), min_size=1))
def test_the_bound_lies_between_the_shortest_and_six_times_the_longest(samples: list[int]) -> None:
    assert min(samples) - len(samples) <= bound(*samples) <= 6 * max(samples)
