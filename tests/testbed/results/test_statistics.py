"""Intervals, quartiles and the paired test."""

import math
import random
from pathlib import Path

import pytest

from benchmarks.interval_coverage import coverages, durations
from testbed.results.statistics import Interval, Paired, describe, interval, paired
from testbed.scenario.file import load

ROOT = Path(__file__).parents[3]
SKEWED = [0.022, 0.129, 0.206, 0.342, 0.405, 0.615, 0.813, 1.028, 1.278, 1.818, 1.966, 4.899]


def test_figures_of_a_sample() -> None:
    sample = describe([4.0, 1.0, 3.0, 2.0])
    assert (sample.n, sample.p25, sample.median, sample.p75, sample.mean) == (4, 1.75, 2.5, 3.25, 2.5)
    assert sample.median_interval is not None
    assert sample.median_interval.low < 2.5 < sample.median_interval.high
    empty, one = describe([]), describe([5.0])
    assert (empty.n, empty.median, empty.mean_interval) == (0, None, None)
    assert (one.n, one.median, one.median_interval) == (1, 5.0, None)


def test_same_values_give_the_same_interval() -> None:
    values = [random.Random(1).random() for _ in range(20)]
    assert interval(values, "mean") == interval(list(values), "mean")
    assert Interval(1.0, 4.0).half_width == 1.5
    assert interval([3.0] * 5, "mean") == interval([3.0] * 5, "median") == Interval(3.0, 3.0)


def test_higher_confidence_is_wider_and_more_values_narrower() -> None:
    rng = random.Random(2)
    values = [rng.gauss(0, 1) for _ in range(200)]

    def width(count: int, confidence: float) -> float:
        found = interval(values[:count], "mean", confidence)
        assert found is not None
        return found.half_width

    assert width(50, 0.8) < width(50, 0.95) < width(50, 0.99)
    assert width(200, 0.95) == pytest.approx(1.96 / math.sqrt(200), rel=0.15)
    assert width(10, 0.95) > 2 * width(200, 0.95)


@pytest.mark.parametrize("of", ["median", "mean"])
def test_intervals_contain_the_truth_95_of_100_times(of: str) -> None:
    rng, hits = random.Random(3), 0
    for _ in range(600):
        found = interval([rng.gauss(10, 2) for _ in range(20)], of)  # type: ignore[arg-type]
        assert found is not None
        hits += found.low <= 10 <= found.high
    assert 0.93 <= hits / 600 <= 0.97


@pytest.mark.slow
def test_intervals_of_runs_contain_their_truth() -> None:
    """The short version of benchmarks/interval_coverage.py, with 300 runs instead of 10,000."""
    short = load(
        ROOT / "scenarios" / "lossy-link.yaml",
        ["link.scheme=slacp", "trace=false", "workloads=[{kind: bulk, bytes: 20000}]"],
        tier="model",
    )
    for each in coverages(durations(short, range(1, 301)), sizes=(20,), drawn=1000):
        assert 0.93 <= each.drawn <= 0.97, each


def test_interval_of_a_median_allows_for_few_values() -> None:
    # without sqrt(n / (n - 1)) it begins at 0.258
    assert interval(SKEWED, "median") == Interval(0.206, 1.818)


@pytest.mark.parametrize(("confidence", "low", "high"), [(0.95, 0.4536741, 3.1142035), (0.8, 0.6911326, 2.1965419)])
def test_interval_of_a_mean_lies_where_the_values_are_skewed(confidence: float, low: float, high: float) -> None:
    # computed once
    found = interval(SKEWED, "mean", confidence)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-6)


def test_paired_test_is_exact_for_few_pairs() -> None:
    # of 2^4 combinations of signs, two are as far from 0 as all alike
    assert paired([2.0, 3.0, 4.0, 5.0], [1.0, 1.0, 1.0, 1.0]).p == 2 / 16
    # and 188 of 2^12 add up to 30 or more, or -30 or less, as these do
    assert paired([float(n) for n in range(-3, 9)], [0.0] * 12).p == 188 / 2**12
    result = paired([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    assert (result.n, result.mean, result.p) == (3, 0.0, 1.0)
    assert paired([], []).p is None
    assert paired([3.0], [1.0]) == Paired(1, 2.0, None, 1.0)
    with pytest.raises(ValueError, match="as many values"):
        paired([1.0], [])


def test_paired_test_sees_small_effects_in_scattered_pairs() -> None:
    rng = random.Random(4)
    theirs = [rng.gauss(100, 20) for _ in range(40)]
    better = paired([value + rng.gauss(1, 1) for value in theirs], theirs)
    same = paired([value + rng.gauss(0, 1) for value in theirs], theirs)
    assert better.p is not None
    assert same.p is not None
    assert better.p < 0.001 < 0.05 < same.p
    assert better.interval is not None
    assert better.interval.low > 0


@pytest.mark.slow
def test_false_alarms_are_as_rare_as_stated() -> None:
    rng = random.Random(5)
    alarms = 0
    for _ in range(400):
        found = paired([rng.expovariate(1) for _ in range(10)], [rng.expovariate(1) for _ in range(10)])
        assert found.p is not None
        alarms += found.p <= 0.05
    assert alarms / 400 <= 0.075
