"""Bounds for counts of random events, computed from the number of trials."""

from math import sqrt

#: Standard deviations: a right model fails about one seed in two million, and the seeds here are fixed.
SIGMAS = 5.0


def binomial_bound(trials: int, probability: float) -> float:
    """Return how far a count of independent events may lie from its mean."""
    return SIGMAS * sqrt(trials * probability * (1.0 - probability))


def poisson_bound(mean: float) -> float:
    """Return how far a count of points of a Poisson process may lie from its mean."""
    return SIGMAS * sqrt(mean)
