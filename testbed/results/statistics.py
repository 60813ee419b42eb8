"""Statistics of repeated runs: quartiles, confidence intervals, and a paired test that agrees with its interval.

Read first: Hettmansperger and Sheather, "Confidence intervals based on interpolated order statistics" (Statistics &
Probability Letters 4, 1986); Hollander and Wolfe, "Nonparametric Statistical Methods", chapter 3 (the signed-rank test,
its estimate and its interval); Hesterberg, "What Teachers Should Know About the Bootstrap" (The American Statistician
69, 2015), section 5.2.

Rules kept
- An interval exists only where its coverage is the stated one as measured (benchmarks/interval_coverage.py); elsewhere
  there is the reason why not.
- Interval and test of paired differences are one method: the test rejects exactly where the interval excludes 0.
- An interval never leaves the bounds of its quantity. Order statistics do not by nature; a mean's is made on a scale
  without bounds. Nothing is cut.
- Infinite values, durations of transfers that never ended, have ranks, and so medians and tests. They have no mean.
- The same values give the same figures: resampling draws from a generator with a fixed seed.
- scipy is imported with the first interval: a command that shows none starts without it.

Left out: a test without pairs. Runs of a campaign share their seeds, so that pairs are always there.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Statistic = Literal["median", "mean"]
Floats = NDArray[np.float64]

#: natural limits of a quantity
Bounds = tuple[float, float]
UNBOUNDED: Bounds = (-math.inf, math.inf)

CONFIDENCE = 0.95
ALPHA = 0.05
#: what each interval is
METHODS = {
    "median": "interpolated order statistics",
    "mean": "bootstrap t",
    "difference": "signed ranks",
}
#: resamples of an interval of a mean
RESAMPLES = 4000
#: as measured: with fewer values no method holds the stated confidence, with fewer unequal ones neither
LEAST_OF_MEAN = 20
LEAST_UNEQUAL = 5
_SEED = 20_040
#: pairs up to which the null distribution of signed ranks is counted out; beyond, it is normal with the same variance
_COUNTED = 500


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval, and what it is."""

    low: float
    high: float
    confidence: float
    method: str
    #: whether the end itself is outside, as where many differences are equal
    low_open: bool = False
    high_open: bool = False

    def side(self, value: float) -> int:
        """Return 1 for an interval above a value, -1 for one below it, 0 for one that contains it."""
        above = self.low > value or (self.low_open and self.low == value)
        below = self.high < value or (self.high_open and self.high == value)
        return int(above) - int(below)

    @property
    def half_width(self) -> float:
        """Half of its width."""
        return (self.high - self.low) / 2


@dataclass(frozen=True, slots=True)
class NoInterval:
    """The reason why there is no interval, in a few words."""

    reason: str


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample in numbers; figures that the values do not have are None."""

    n: int
    median: float | None
    p25: float | None
    p75: float | None
    mean: float | None
    #: of the median and of the mean
    median_interval: Interval | NoInterval
    mean_interval: Interval | NoInterval


@dataclass(frozen=True, slots=True)
class Paired:
    """Differences of pairs (ours minus theirs), infinite ones included.

    Null hypothesis: each difference is as likely with the other sign. The statistic is Wilcoxon's, counted by Walsh
    averages, the means of every difference with itself and with every other. An average that equals the value under
    test counts half on either side, against the distribution without ties, which is wider: ties make test and interval
    conservative, both alike.
    """

    differences: tuple[float, ...]

    @property
    def n(self) -> int:
        """The number of pairs."""
        return len(self.differences)

    @property
    def shift(self) -> float | None:
        """The typical difference: the median of all Walsh averages (Hodges and Lehmann).

        None without pairs, and between opposite infinities.
        """
        averages = _walsh_averages(self.differences)
        known = np.sort(averages[~np.isnan(averages)])
        shift = _quantile(known, 0.5) if len(known) else math.nan
        return None if math.isnan(shift) else shift

    @property
    def p(self) -> float | None:
        """The two-sided probability, under the null hypothesis, of as few Walsh averages on one side of 0."""
        if not self.n:
            return None
        averages = _walsh_averages(self.differences)
        below, above = int(np.sum(averages < 0)), int(np.sum(averages > 0))
        fewer = math.ceil(min(below, above) + (len(averages) - below - above) / 2)
        return min(1.0, 2 * float(_signed_ranks(self.n)[fewer]))

    def interval(self, alpha: float = ALPHA) -> Interval | NoInterval:
        """Return the interval of the shift at confidence 1 - alpha: it excludes 0 if and only if p is alpha at most."""
        # fewer averages on one side of a value reject it
        needed = int(np.searchsorted(2 * _signed_ranks(self.n), alpha, side="right"))
        if not needed:
            return NoInterval(f"n < {least_n('median', 1 - alpha)}")
        averages = _walsh_averages(self.differences)
        low, low_open = _end(averages, needed)
        high, high_open = _end(-averages, needed)
        return Interval(low, -high, 1 - alpha, METHODS["difference"], low_open, high_open)


def describe(values: Sequence[float], confidence: float = CONFIDENCE, bounds: Bounds = UNBOUNDED) -> Sample:
    """Return a sample in numbers, with intervals at this confidence; `bounds` are the quantity's."""
    intervals = [interval(values, of, confidence, bounds) for of in ("median", "mean")]
    if not values:
        return Sample(0, None, None, None, None, *intervals)
    ordered = np.sort(np.asarray(values, dtype=float))
    p25, median, p75 = (_quantile(ordered, share) for share in (0.25, 0.5, 0.75))
    mean = float(np.mean(values)) if np.all(np.isfinite(ordered)) else None
    return Sample(len(values), median, p25, p75, mean, *intervals)


def statistic(values: Sequence[float], of: Statistic) -> float:
    """Return the median or the mean. Raises ValueError without values."""
    if not values:
        raise ValueError("no values have no statistic")
    return _quantile(np.sort(np.asarray(values, dtype=float)), 0.5) if of == "median" else float(np.mean(values))


def least_n(of: Statistic, confidence: float = CONFIDENCE) -> int:
    """Return the fewest values that carry an interval, of differences as of medians.

    Of a median: all of them on one side of it must be less probable than the confidence allows. Of a mean: as measured.
    """
    carrying = math.ceil(1 - math.log2(1 - confidence) - 1e-9)
    return carrying if of == "median" else max(carrying, LEAST_OF_MEAN)


def interval(
    values: Sequence[float], of: Statistic, confidence: float = CONFIDENCE, bounds: Bounds = UNBOUNDED
) -> Interval | NoInterval:
    """Return the confidence interval of the median or the mean, or the reason why there is none."""
    if not values:
        return NoInterval("no values")
    if len(values) < (least := least_n(of, confidence)):
        return NoInterval(f"n < {least}")
    ordered = np.sort(np.asarray(values, dtype=float))
    return _of_median(ordered, confidence) if of == "median" else _of_mean(ordered, confidence, bounds)


def paired(ours: Sequence[float], theirs: Sequence[float]) -> Paired:
    """Compare pairs of values. Two infinite values do not differ. Raises ValueError for unequal numbers."""
    if len(ours) != len(theirs):
        raise ValueError("pairs need as many values on both sides")
    return Paired(tuple(0.0 if a == b else float(a - b) for a, b in zip(ours, theirs, strict=True)))


def _of_median(ordered: Floats, confidence: float) -> Interval:
    """Return the interval between two values by rank, interpolated towards the next ones inside.

    Whole ranks hold more than 95 %, 98.4 % at n = 7. Interpolation after Hettmansperger and Sheather holds the stated
    confidence nearly, whatever the distribution; where many values are equal, more.
    """
    outer, inwards = _ranks(len(ordered), confidence)
    low, high = ordered[outer - 1], ordered[-outer]
    # between infinite values there is no share of the way
    if np.isfinite(low) and np.isfinite(ordered[outer]):
        low += inwards * (ordered[outer] - low)
    if np.isfinite(high) and np.isfinite(ordered[-outer - 1]):
        high += inwards * (ordered[-outer - 1] - high)
    return Interval(float(low), float(high), confidence, METHODS["median"])


@cache
def _ranks(n: int, confidence: float) -> tuple[int, float]:
    """Return the rank of a median's interval, from 1, and the share of the way to the next one inside."""
    from scipy import stats

    outer = int(stats.binom.ppf((1 - confidence) / 2, n, 0.5))
    above, below = (1 - 2 * float(stats.binom.cdf(rank, n, 0.5)) for rank in (outer - 1, outer))
    share = (above - confidence) / (above - below)
    return outer, (n - outer) * share / (outer + (n - 2 * outer) * share)


def _of_mean(ordered: Floats, confidence: float, bounds: Bounds) -> Interval | NoInterval:
    """Return the bootstrap t interval of the mean, on the logarithm of a quantity above 0, on the logit of a share.

    A mean's logarithm has no bounds, so that the interval keeps those of the mean, and it lies as skewed values ask,
    durations of transfers over lossy links for example. Quantiles of the t values are set apart as the t distribution
    of `LEAST_OF_MEAN` values asks: resamples of so few values scatter too little, as do those of more if few long
    timeouts make most of their scatter.
    """
    if not np.all(np.isfinite(ordered)):
        return NoInterval("a value is infinite")
    # rare events: as many as these values have may be none in the next ones
    if len(ordered) - int(np.max(np.unique(ordered, return_counts=True)[1])) < LEAST_UNEQUAL:
        return NoInterval("too many equal values")
    from scipy import stats

    # delays between clocks that differ may be below 0: then the bound is none
    scale = _scale(bounds if bounds[0] <= ordered[0] and ordered[-1] <= bounds[1] else UNBOUNDED)
    resamples = np.random.default_rng(_SEED).choice(ordered, (RESAMPLES, len(ordered)))
    means, scatters = np.mean(resamples, axis=1), np.std(resamples, axis=1)
    # a resample of one value again and again says nothing about the scatter
    known = scatters > 0
    if not np.any(known):
        return NoInterval("they scatter too little")
    mean, scatter = np.mean(ordered), np.std(ordered)
    place, spread = scale.to(mean), scatter * scale.slope(mean)
    t = (scale.to(means[known]) - place) / (scatters[known] * scale.slope(means[known]))
    tail = stats.norm.cdf(stats.t.ppf((1 - confidence) / 2, LEAST_OF_MEAN - 1))
    low, high = np.quantile(t, (tail, 1 - tail))
    with np.errstate(over="ignore"):
        ends = scale.back(place - high * spread), scale.back(place - low * spread)
    return Interval(float(ends[0]), float(ends[1]), confidence, METHODS["mean"])


@dataclass(frozen=True, slots=True)
class _Scale:
    """A scale without bounds."""

    to: Callable[[Any], Any]
    #: derivative of `to`
    slope: Callable[[Any], Any]
    back: Callable[[Any], Any]


def _scale(bounds: Bounds) -> _Scale:
    low, high = bounds
    if math.isinf(low):
        return _Scale(lambda x: x, lambda x: np.ones_like(x), lambda y: y)
    if math.isinf(high):
        return _Scale(lambda x: np.log(x - low), lambda x: 1 / (x - low), lambda y: low + np.exp(y))
    wide = high - low
    return _Scale(
        lambda x: np.log((x - low) / (high - x)),
        lambda x: wide / ((x - low) * (high - x)),
        lambda y: low + wide / (1 + np.exp(-y)),
    )


def _quantile(ordered: Floats, share: float) -> float:
    """Return a quantile, interpolated between neighbours; between a finite and an infinite one it is infinite."""
    place = share * (len(ordered) - 1)
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    if low == high:
        return float(low)
    return float(np.quantile(ordered, share) if np.all(np.isfinite([low, high])) else low + high)


def _walsh_averages(differences: Sequence[float]) -> Floats:
    """Return the means of every two differences, and of each with itself; NaN: of two opposite infinities."""
    array = np.asarray(differences, dtype=float)
    first, second = np.triu_indices(len(array))
    with np.errstate(invalid="ignore"):
        return array[first] / 2 + array[second] / 2


def _end(averages: Floats, needed: int) -> tuple[float, bool]:
    """Return the low end of the values that have so many averages below them, and whether it has fewer itself."""
    known = np.sort(averages[~np.isnan(averages)])
    undefined = (len(averages) - len(known)) / 2
    place = math.floor(needed - 1 - undefined)
    if place < 0:
        return -math.inf, False
    end = known[place]
    return float(end), bool(np.sum(known < end) + np.sum(known == end) / 2 + undefined <= needed - 1)


@cache
def _signed_ranks(n: int) -> Floats:
    """Return the cumulative null distribution of the sum of positive ranks of n differences, from 0 on."""
    sums = n * (n + 1) // 2
    if n > _COUNTED:
        from scipy import stats

        # half a rank for continuity
        scale = math.sqrt(sums * (2 * n + 1) / 12)
        return np.asarray(stats.norm.cdf((np.arange(sums + 1) + 0.5 - sums / 2) / scale))
    found = np.ones(1)
    for rank in range(1, n + 1):
        found = (np.append(found, np.zeros(rank)) + np.append(np.zeros(rank), found)) / 2
    return np.cumsum(found)
