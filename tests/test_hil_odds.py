"""The bounds on chance that hil_tests use (hil_tests/odds.py), against simulated losses."""

from random import Random

import pytest

from hil_tests.odds import highest_per, most_lost_for_good


@pytest.mark.parametrize("per", [0.01, 0.05, 0.2])
def test_highest_per_lies_above_the_true_one(per: float) -> None:
    rng = Random(1)
    for _ in range(200):
        lost = sum(rng.random() < per for _ in range(1000))
        # at most some ten standard deviations away, and -ln(1e-7) losses where there are hardly any
        assert per < highest_per(lost, 1000) < per + 10 * (per * (1 - per) / 1000) ** 0.5 + 16 / 1000


def test_highest_per_of_no_loss_is_the_one_that_hardly_ever_loses_nothing() -> None:
    assert (1 - highest_per(0, 500)) ** 500 == pytest.approx(1e-7)


@pytest.mark.parametrize("size", [1, 3, 8])
def test_blocks_of_any_size_stay_below_the_bound_and_no_fec_does_not(size: int) -> None:
    rng, per, blocks = Random(1), 0.2, 400 // size
    bound = most_lost_for_good(blocks * size, per)
    for _ in range(100):
        for_good = 0
        for _ in range(blocks):
            lost = sum(rng.random() < per for _ in range(size))
            redundancy_lost = sum(rng.random() < per for _ in range(size))
            for_good += lost if lost + redundancy_lost > size else 0
        assert for_good <= bound
    assert bound < blocks * size * per
