"""Quartiles, intervals and the paired test."""

import math
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.interval_coverage import (
    Coverage,
    Differences,
    Population,
    coverages,
    coverages_of_differences,
    differences,
    durations,
    populations,
)
from testbed.results.statistics import Interval, NoInterval, describe, interval, least_n, paired, statistic
from testbed.scenario.file import load

ROOT = Path(__file__).parents[3]
SKEWED = [0.022, 0.129, 0.206, 0.342, 0.405, 0.615, 0.813, 1.028, 1.278, 1.818, 1.966, 4.899]
POSITIVE, SHARE = (0.0, math.inf), (0.0, 1.0)


def found(interval: Interval | NoInterval) -> tuple[float, float]:
    """The ends of an interval that there must be."""
    assert isinstance(interval, Interval), interval
    return interval.low, interval.high


def test_figures_of_a_sample() -> None:
    sample = describe([4.0, 1.0, 3.0, 2.0])
    assert (sample.n, sample.p25, sample.median, sample.p75, sample.mean) == (4, 1.75, 2.5, 3.25, 2.5)
    empty, one = describe([]), describe([5.0])
    assert (empty.n, empty.median, empty.mean_interval) == (0, None, NoInterval("no values"))
    assert (one.n, one.median, one.median_interval) == (1, 5.0, NoInterval("n < 6"))
    with pytest.raises(ValueError, match="no values"):
        statistic([], "mean")


def test_infinite_values_have_ranks_but_no_mean() -> None:
    sample = describe([1.0, 2.0, 3.0, 4.0, 5.0, math.inf, math.inf])
    assert (sample.median, sample.p75, sample.mean) == (4.0, math.inf, None)
    assert found(sample.median_interval) == pytest.approx((1 + 11 / 15, math.inf))
    assert describe([1.0] + [math.inf] * 24).mean_interval == NoInterval("a value is infinite")
    assert describe([1.0, 2.0, math.inf, math.inf]).median == math.inf
    assert describe([math.inf] * 8).median == math.inf


def test_few_values_carry_no_interval() -> None:
    # all of n values are on one side of the median with probability 2 / 2^n
    assert [least_n("median", confidence) for confidence in (0.5, 0.9, 0.95, 0.99)] == [2, 5, 6, 8]
    assert describe([10.0, 90.0]).mean_interval == NoInterval(f"n < {least_n('mean')}")
    assert describe([10.0, 90.0]).median_interval == NoInterval("n < 6")
    assert paired([10.0, 90.0], [0.0, 0.0]).interval() == NoInterval("n < 6")
    assert interval([1.0] * (least_n("mean") - 1), "mean") == NoInterval(f"n < {least_n('mean')}")
    assert interval([1.0] * 46 + [2.0] * 4, "mean") == NoInterval("too many equal values")
    assert isinstance(interval([1.0] * 45 + [2.0] * 5, "mean"), Interval)
    assert found(interval([1.0] * 6, "median")) == (1.0, 1.0)


def test_values_whose_scatter_has_no_number_carry_no_interval_of_the_mean() -> None:
    tiny = [number * 1e-200 for number in range(1, 26)]
    assert describe(tiny).mean_interval == NoInterval("they scatter too little")


def test_interval_of_a_median_is_interpolated_between_ranks() -> None:
    # between ranks 3 and 4 of 12 (96.1 and 85.4 %), and their counterparts, after Hettmansperger and Sheather (1986)
    share = (1 - 2 * 79 / 2**12 - 0.95) / (2 * 220 / 2**12)
    inwards = 9 * share / (3 + 6 * share)
    expected = (0.206 + inwards * (0.342 - 0.206), 1.818 - inwards * (1.818 - 1.278))
    assert found(interval(SKEWED, "median")) == pytest.approx(expected)
    # 98.4 and 87.5 % of 7
    low, high = found(interval([0.0, 1, 2, 3, 4, 5, 6], "median"))
    share = (127 / 128 - 1 / 128 - 0.95) / (7 / 64)
    assert low == pytest.approx(6 * share / (1 + 5 * share))
    assert high == pytest.approx(6 - low)


def test_intervals_say_what_they_are() -> None:
    sample = describe([float(n) for n in range(30)], 0.9, POSITIVE)
    assert isinstance(sample.median_interval, Interval)
    assert isinstance(sample.mean_interval, Interval)
    assert (sample.median_interval.method, sample.mean_interval.method) == (
        "interpolated order statistics",
        "bootstrap t",
    )
    assert sample.median_interval.confidence == sample.mean_interval.confidence == 0.9
    assert Interval(1.0, 4.0, 0.95, "").half_width == 1.5


def test_higher_confidence_is_wider_and_more_values_narrower() -> None:
    rng = random.Random(2)
    values = [rng.gauss(0, 1) for _ in range(200)]

    def width(count: int, confidence: float) -> float:
        low, high = found(interval(values[:count], "mean", confidence))
        return (high - low) / 2

    assert width(50, 0.8) < width(50, 0.95) < width(50, 0.99)
    assert width(200, 0.95) == pytest.approx(1.96 / math.sqrt(200), rel=0.15)
    assert width(20, 0.95) > 2 * width(200, 0.95)


values_of = st.sampled_from([(POSITIVE, st.floats(0, 1e9)), (SHARE, st.floats(0, 1)), (POSITIVE, st.integers(0, 3))])


@given(data=st.data(), kind=values_of)
def test_intervals_keep_the_bounds_of_their_quantity(
    data: st.DataObject, kind: tuple[tuple[float, float], st.SearchStrategy[float]]
) -> None:
    bounds, value = kind
    ours, theirs = (list(map(float, data.draw(st.lists(value, min_size=24, max_size=24)))) for _ in "ab")
    for of in ("median", "mean"):
        one = interval(ours, of, bounds=bounds)
        if isinstance(one, Interval):
            assert bounds[0] <= one.low <= statistic(ours, of) * (1 + 1e-9)
            assert statistic(ours, of) <= one.high * (1 + 1e-9)
            assert one.high <= bounds[1]
    low, high = found(paired(ours, theirs).interval())
    assert bounds[0] - bounds[1] <= low <= high <= bounds[1] - bounds[0]


def test_values_beyond_the_bounds_have_an_interval_without_bounds() -> None:
    delays = [n / 10 - 0.15 for n in range(30)]
    assert interval(delays, "mean", bounds=POSITIVE) == interval(delays, "mean")


outcome = st.one_of(
    st.floats(-1e6, 1e6, allow_nan=False), st.integers(-3, 3).map(float), st.sampled_from([math.inf, -math.inf])
)


@given(differences=st.lists(outcome, min_size=2, max_size=12), alpha=st.sampled_from([0.3, 0.05, 0.05 / 3, 1 / 32]))
def test_interval_excludes_0_if_and_only_if_the_test_rejects(differences: list[float], alpha: float) -> None:
    pairs = paired(differences, [0.0] * len(differences))
    one = pairs.interval(alpha)
    assert pairs.p is not None
    if isinstance(one, NoInterval):
        assert pairs.p > alpha
    else:
        assert one.low <= one.high
        assert (pairs.p <= alpha) == (one.side(0) != 0)
        if pairs.shift is not None:
            assert one.low <= pairs.shift <= one.high


def test_paired_test_is_wilcoxons_where_no_values_are_equal() -> None:
    from scipy import stats

    rng = random.Random(6)
    for n in (2, 3, 6, 7, 12, 40):
        differences = [rng.gauss(0.5, 1) for _ in range(n)]
        exact = stats.wilcoxon(differences, method="exact").pvalue
        assert paired(differences, [0.0] * n).p == pytest.approx(exact, rel=1e-9)
    # six of a sign are the fewest that reject
    assert paired([1.0, 2, 3, 4, 5, 6], [0.0] * 6).p == 2 / 64
    assert paired([1.0, 2, 3, 4, 5], [0.0] * 5).p == 2 / 32
    many = [rng.gauss(0.05, 1) for _ in range(600)]
    normal = stats.wilcoxon(many, method="asymptotic", correction=True).pvalue
    assert paired(many, [0.0] * 600).p == pytest.approx(normal, rel=1e-6)


def test_equal_pairs_count_half_on_either_side() -> None:
    assert paired([1.0, 2, 3, 4, 5, 6, 7], [0.0] * 7).p == 2 / 128
    # half a rank is one: sums of 0 and 1 have two of 2^7 combinations
    assert paired([0.0, 2, 3, 4, 5, 6, 7], [0.0] * 7).p == 4 / 128
    same = paired([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    assert (same.n, same.shift, same.p) == (3, 0.0, 1.0)
    # ten pairs are equal, ten differ, all in one direction: the interval begins above 0
    counts = paired([0.0] * 10 + [1.0] * 10, [0.0] * 20)
    one = counts.interval()
    assert isinstance(one, Interval)
    assert (one.low, one.low_open, one.high, one.high_open) == (0.0, True, 1.0, True)
    assert counts.p == pytest.approx(0.0027, abs=1e-4)
    assert [one.side(value) for value in (0, 0.5, 1)] == [1, 0, -1]


def test_rare_differences_of_one_sign_are_found() -> None:
    up = paired([1.0] * 10 + [0.0] * 40, [0.0] * 50)
    down = paired([0.0] * 50, [1.0] * 10 + [0.0] * 40)
    assert up.p is not None
    assert up.p == down.p
    assert up.p < 0.05
    assert (up.shift, down.shift) == (0.0, 0.0)
    sides = [one.side(0) for each in (up, down) if isinstance(one := each.interval(), Interval)]
    assert sides == [1, -1]


def test_paired_test_without_pairs() -> None:
    assert (paired([], []).p, paired([], []).shift) == (None, None)
    assert (paired([3.0], [1.0]).p, paired([3.0], [1.0]).shift) == (1.0, 2.0)
    with pytest.raises(ValueError, match="as many values"):
        paired([1.0], [])


def test_infinite_pairs_have_the_highest_ranks() -> None:
    never = math.inf
    seven = paired([never, never, 5.0, 6.0, 7.0, 8.0, 1.0], [1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.5])
    # one difference is negative, and it is the smallest; the third average is the first that does not reject
    assert seven.p == 4 / 128
    assert found(seven.interval()) == (2.25, never)
    assert paired([never] * 3, [never] * 3).differences == (0.0, 0.0, 0.0)
    # opposite infinities are a tie
    assert paired([never, 1.0], [1.0, never]).p == 1.0


def test_a_difference_that_the_mean_hides_is_found() -> None:
    """One outlier made a mean difference of 905,038 with an interval that held 0, while the test found it."""
    pairs = paired([10.0, 12, 14, 11, 13, 15, 9, 5e6], [0.0] * 8)
    low, high = found(pairs.interval())
    assert pairs.p == 2 / 2**8
    assert low > 0
    assert high == (5e6 + 13) / 2


def test_paired_test_sees_small_effects_in_scattered_pairs() -> None:
    rng = random.Random(4)
    theirs = [rng.gauss(100, 20) for _ in range(40)]
    better = paired([value + rng.gauss(1, 1) for value in theirs], theirs)
    same = paired([value + rng.gauss(0, 1) for value in theirs], theirs)
    assert better.p is not None
    assert same.p is not None
    assert better.p < 0.001 < 0.05 < same.p
    assert found(better.interval())[0] > 0


#: probability that a method with a coverage of 93 or 97 % fails one of these tests; 1000 samples of one with less than
#: 89.9 % or more than 98.9 % fail it
ERROR_PROBABILITY = 1e-4


def assert_93_to_97_percent(coverage: Coverage) -> None:
    """Assert that the true coverage may be 93 to 97 %; of discrete values: 93 or more. The bounds are binomial.

    Of rare counts most samples have no interval: then 7 % of all samples have one that misses.
    """
    from scipy import stats

    missed = coverage.shown - coverage.held
    assert missed <= stats.binom.isf(ERROR_PROBABILITY, coverage.samples, 0.07), str(coverage)
    most = stats.binom.isf(ERROR_PROBABILITY, coverage.shown, 0.97)
    assert coverage.held <= most or coverage.discrete, str(coverage)


@pytest.mark.slow
@pytest.mark.parametrize("population", populations(), ids=lambda population: population.name)
def test_medians_and_means_are_held_as_often_as_stated(population: Population) -> None:
    """The short version of benchmarks/interval_coverage.py."""
    found = {(each.of, each.size): each for each in coverages(population, (2, 5, 6, 7, 10, 20), samples=1000)}
    carried = {key for key, each in found.items() if each.shown}
    assert carried == {("median", size) for size in (6, 7, 10, 20)} | {("mean", 20)}
    for key in carried:
        assert_93_to_97_percent(found[key])


@pytest.mark.slow
@pytest.mark.parametrize("population", differences(), ids=lambda population: population.name)
def test_paired_differences_are_held_as_often_as_stated(population: Differences) -> None:
    found = {each.size: each for each in coverages_of_differences(population, (5, 6, 7, 10, 20), samples=1000)}
    assert not found[5].shown
    for size in (6, 7, 10, 20):
        assert found[size].shown == 1000
        assert_93_to_97_percent(found[size])


@pytest.mark.slow
def test_medians_and_means_of_runs_are_held_as_often_as_stated() -> None:
    short = load(
        ROOT / "scenarios" / "lossy-link.yaml",
        ["link.scheme=slacp", "trace=false", "workloads=[{kind: bulk, bytes: 20000}]"],
        tier="model",
    )
    runs = Population("runs", np.array(durations(short, range(1, 301))))
    for each in coverages(runs, sizes=(20,), samples=1000):
        assert_93_to_97_percent(each)
