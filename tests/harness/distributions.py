"""Statistics that tests of random models use, each with the level at which it rejects a right one."""

from collections.abc import Callable
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: a right model fails one seed in ten thousand; the seeds are fixed
KS_LEVEL = 1e-4
#: standard deviations and errors; a right model fails one seed in two million
SIGMAS = 5.0


def ks_distance(samples: NDArray[Any], cdf: Callable[[NDArray[Any]], NDArray[Any]]) -> float:
    """Return the Kolmogorov-Smirnov distance between samples and a distribution."""
    expected = cdf(np.sort(samples))
    steps = np.arange(len(samples) + 1) / len(samples)
    return float(max((steps[1:] - expected).max(), (expected - steps[:-1]).max()))


def ks_bound(n: int) -> float:
    """Return the distance that `n` independent samples exceed with probability KS_LEVEL (Kolmogorov's limit)."""
    return sqrt(-log(KS_LEVEL / 2) / 2) / sqrt(n)


def binomial_bound(trials: int, probability: float) -> float:
    """Return how far a count of independent events may lie from its mean."""
    return SIGMAS * sqrt(trials * probability * (1.0 - probability))


def poisson_bound(mean: float) -> float:
    """Return how far a count of points of a Poisson process may lie from its mean."""
    return SIGMAS * sqrt(mean)


def mean_bound(samples: NDArray[Any]) -> float:
    """Return how far the mean of independent real samples may lie from its expectation."""
    return float(SIGMAS * np.std(samples, ddof=1) / sqrt(len(samples)))


def assert_mean(samples: NDArray[Any], expected: complex = 0, *, also: float = 0.0) -> None:
    """Assert that the mean of independent samples is the expected one, by both parts; `also` may be a model's error."""
    for part, wanted in ((samples.real, expected.real), (samples.imag, expected.imag)):
        assert abs(part.mean() - wanted) <= mean_bound(part) + also


def bessel_j0(x: NDArray[Any]) -> NDArray[Any]:
    """Return the Bessel function J0, by its integral (exact for arguments far below 500)."""
    angles = (np.arange(1000) + 0.5) * np.pi / 1000
    return np.cos(np.multiply.outer(x, np.sin(angles))).mean(axis=-1)
