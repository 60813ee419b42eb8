"""Statistics that tests of random models use, each with the level at which it rejects a right one."""

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: a right model fails one seed in ten thousand; the seeds are fixed
KS_LEVEL = 1e-4
#: standard deviations and errors; a right model fails one seed in two million
SIGMAS = 5.0


def assert_drawn_from(samples: NDArray[Any], cdf: Callable[[NDArray[Any]], NDArray[Any]]) -> None:
    """Assert that independent samples are of a distribution (Kolmogorov-Smirnov)."""
    # it takes a second
    from scipy import stats

    assert stats.ks_1samp(samples, cdf).pvalue > KS_LEVEL


def binomial_bound(trials: int, probability: float) -> float:
    return SIGMAS * sqrt(trials * probability * (1.0 - probability))


def poisson_bound(mean: float) -> float:
    return SIGMAS * sqrt(mean)


def mean_bound(samples: NDArray[Any]) -> float:
    return float(SIGMAS * np.std(samples, ddof=1) / sqrt(len(samples)))


def assert_mean(samples: NDArray[Any], expected: complex = 0, *, also: float = 0.0) -> None:
    """Assert that the mean of independent samples is the expected one, by both parts; `also` may be a model's error."""
    for part, wanted in ((samples.real, expected.real), (samples.imag, expected.imag)):
        assert abs(part.mean() - wanted) <= mean_bound(part) + also
