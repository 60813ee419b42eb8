"""Statistics the tests of random signals use, each with the level at which it rejects a right model."""

from collections.abc import Callable
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: a right model fails one seed in ten thousand; the seeds are fixed
KS_LEVEL = 1e-4
#: standard errors; a right model fails one seed in two million
SIGMAS = 5.0


def ks_distance(samples: NDArray[Any], cdf: Callable[[NDArray[Any]], NDArray[Any]]) -> float:
    """Return the Kolmogorov-Smirnov distance between samples and a distribution."""
    expected = cdf(np.sort(samples))
    steps = np.arange(len(samples) + 1) / len(samples)
    return float(max((steps[1:] - expected).max(), (expected - steps[:-1]).max()))


def ks_bound(n: int) -> float:
    """Return the distance that `n` independent samples exceed with probability KS_LEVEL (Kolmogorov's limit)."""
    return sqrt(-log(KS_LEVEL / 2) / 2) / sqrt(n)


def mean_bound(samples: NDArray[Any]) -> float:
    """Return how far the mean of independent real samples may lie from its expectation."""
    return float(SIGMAS * np.std(samples, ddof=1) / sqrt(len(samples)))


def bessel_j0(x: NDArray[Any]) -> NDArray[Any]:
    """Return the Bessel function J0, by its integral (exact for arguments far below 500)."""
    angles = (np.arange(1000) + 0.5) * np.pi / 1000
    return np.cos(np.multiply.outer(x, np.sin(angles))).mean(axis=-1)
