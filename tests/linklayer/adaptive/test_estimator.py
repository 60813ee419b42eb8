"""The estimator against exact posteriors, the models' own numbers, and the tables of docs/adaptive.md."""

from itertools import combinations
from math import sqrt
from pathlib import Path
from random import Random
from statistics import mean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.adaptive.estimate import bursty, errors, independent, noticing, told
from linklayer.adaptive.estimator import _ROUND, LossEstimator

FADE = 1 - 1 / 400


def posterior(fates: list[bool]) -> tuple[float, float]:
    """Losses and arrivals of a beta distribution whose evidence fades, by its definition."""
    ages = FADE ** np.arange(len(fates) - 1, -1, -1)
    start = FADE ** len(fates)
    lost = np.array(fates, dtype=float)
    return float(0.5 * start + ages @ lost), float(9.5 * start + ages @ (1 - lost))


def told_of(fates: list[bool]) -> LossEstimator:
    estimator = LossEstimator()
    for fate in fates:
        estimator.handle(fate)
    return estimator


def test_a_channel_that_nobody_has_seen() -> None:
    estimator = LossEstimator()
    assert estimator.loss == pytest.approx(0.05)
    assert estimator.doubt == pytest.approx(sqrt(0.05 * 0.95 / 11))
    assert estimator.clustering == 0
    assert estimator.correlation == pytest.approx(1 / 11)


@given(st.lists(st.booleans(), max_size=31))
def test_rate_and_doubt_are_those_of_the_posterior(fates: list[bool]) -> None:
    lost, came = posterior(fates)
    estimator = told_of(fates)
    assert estimator.loss == pytest.approx(lost / (lost + came))
    variance = lost * came / (lost + came) ** 2 / (lost + came + 1)
    assert estimator.doubt == pytest.approx(sqrt(variance))


@pytest.mark.parametrize("loss", [0.02, 0.1, 0.5])
def test_long_independent_losses_are_the_posterior(loss: float) -> None:
    rng = Random(21)
    fates = [rng.random() < loss for _ in range(3000)]
    estimator = told_of(fates)
    assert estimator.changes == 0
    lost, came = posterior(fates)
    assert estimator.loss == pytest.approx(lost / (lost + came))
    # all evidence of old age is worth 400 frames
    assert lost + came == pytest.approx(400, rel=0.01)
    assert estimator.clustering < 0.2
    # the mean of the pairs of a round, and the doubt
    pairs = [estimator.clustering ** (j - i) for i, j in combinations(range(_ROUND), 2)]
    own = 1 / (lost + came + 1)
    assert estimator.correlation == pytest.approx(own + (1 - own) * mean(pairs))


def test_clustering_is_the_share_of_losses_behind_a_loss() -> None:
    # pairs of losses: half of the losses are behind one
    estimator = told_of([True, True, False, False, False, False, False, False] * 300)
    assert estimator.loss == pytest.approx(0.25, abs=0.01)
    assert estimator.clustering == pytest.approx((0.5 - 0.25) / 0.75, abs=0.01)


def test_losses_that_avoid_each_other_are_no_negative_clustering() -> None:
    assert told_of([True, False] * 200).clustering == 0


def test_few_losses_tell_nothing_of_clustering() -> None:
    assert told_of([True] * 7).clustering == 0
    assert told_of([True] * 9).clustering > 0.5


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 200)), max_size=30))
def test_whatever_happens_the_numbers_are_probabilities(runs: list[tuple[bool, int]]) -> None:
    estimator = LossEstimator()
    for lost, count in runs:
        for _ in range(count):
            estimator.handle(lost)
            assert 0 < estimator.loss < 1
            assert 0 < estimator.doubt < 0.5
            assert 0 <= estimator.clustering <= 1
            assert 0 < estimator.correlation <= 1


def test_a_change_is_noticed_once_and_then_believed() -> None:
    estimator = told_of([False] * 1000 + [True] * 20)
    assert estimator.changes == 1
    assert estimator.loss > 0.25
    # what came before the last 32 is forgotten
    assert estimator.doubt > 0.05


def test_a_change_needs_32_frames_that_contradict() -> None:
    before = [number % 10 == 0 for number in range(1000)]
    # of 32 frames, 3.2 are lost: 4 standard deviations are 6.8
    assert told_of(before + [True] * 9).changes == 0
    assert told_of(before + [True] * 13).changes == 1


def test_bursts_are_no_change_once_clustering_is_known() -> None:
    burst = [True] * 6 + [False] * 24
    regular = [number % 5 == 0 for number in range(3000)]
    assert told_of(burst * 100).changes <= 1
    assert told_of(regular + [True] * 14 + [False] * 18).changes == 1


# -- the document ----------------------------------------------------------------------------------------------------

DOCUMENT = (Path(__file__).parents[3] / "docs" / "adaptive.md").read_text()


def test_the_documented_errors_are_those_of_the_estimator() -> None:
    error, mean_error, sure = errors(0.1, 50, 200)
    assert f"| 10 % | {100 * error:.1f}, {100 * mean_error:+.1f}, {100 * sure:.0f} % |" in DOCUMENT


def test_the_documented_time_to_notice_more_losses() -> None:
    counts = noticing(0.01, 0.3, 0.2, 200)
    assert f"beyond 20 % after {counts[100]} frames in half of the runs, after {counts[180]} in 90 %" in DOCUMENT


@pytest.mark.parametrize(("loss", "burst"), [(0.1, 2), (0.3, 5), (0.3, 20)])
def test_clustering_of_gilbert_elliott_losses(loss: float, burst: int) -> None:
    found = [told(bursty(loss, burst, Random(seed)), 2000).clustering for seed in range(30)]
    true = (1 - 1 / burst - loss) / (1 - loss)
    assert mean(found) == pytest.approx(true, abs=0.03)


def test_the_drawn_losses_have_the_rate_that_is_said() -> None:
    for draw in (independent(0.2, Random(1)), bursty(0.2, 5, Random(1))):
        assert mean(draw() for _ in range(50_000)) == pytest.approx(0.2, abs=0.02)
