"""Numbers of a report as words."""

import math
from collections.abc import Sequence

from testbed.results.statistics import Interval, NoInterval, Sample


def number(value: float | None, *, endless: str = "never") -> str:
    """Return a number with four digits; `endless` is the word for infinity."""
    if value is None:
        return ""
    if math.isinf(value):
        return endless if value > 0 else f"-{endless}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def probability(p: float) -> str:
    """Return a p value."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def interval_words(interval: Interval | NoInterval, *, endless: str = "never") -> str:
    """Return an interval, or the reason why there is none."""
    if isinstance(interval, NoInterval):
        return f"none: {interval.reason}"
    above, below = "> " if interval.low_open else "", "< " if interval.high_open else ""
    low, high = (number(end, endless=endless) for end in (interval.low, interval.high))
    return f"{above}{low} to {below}{high}"


def mean_words(sample: Sample, values: Sequence[float]) -> str:
    """Return the mean of these values, whose sample it is, or the number of infinite ones, which have none."""
    endless = sum(map(math.isinf, values))
    return f"none: {endless} of {len(values)} did not end" if endless else number(sample.mean)
