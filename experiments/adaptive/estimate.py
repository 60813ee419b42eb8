"""How good the loss estimate of slacp-adaptive is: the tables of docs/adaptive.md.

    python -m experiments.adaptive.estimate [--seeds 200]

Seeds are 0 and up. Frames are lost independently, or in the bad state of a Gilbert-Elliott model, all of them.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from math import sqrt
from random import Random
from statistics import mean
from typing import Final

from linklayer.adaptive.estimator import LossEstimator
from testbed.cli.app import status_of
from testbed.papers.report import table

LOSSES: Final = (0.01, 0.1, 0.5)
COUNTS: Final = (50, 200, 1000)
#: from, to, what counts as having noticed
CHANGES: Final = ((0.01, 0.3, 0.2), (0.3, 0.01, 0.05))
BURSTS: Final = (2, 5, 10, 20)
BURSTY_LOSSES: Final = (0.1, 0.3)
BURSTY_FRAMES: Final = 2000


def independent(loss: float, rng: Random) -> Callable[[], bool]:
    """Return what draws whether the next frame is lost."""
    return lambda: rng.random() < loss


def bursty(loss: float, burst: float, rng: Random) -> Callable[[], bool]:
    """Return the same for bursts of so many frames on average."""
    leaves = 1 / burst
    enters = loss * leaves / (1 - loss)
    bad = rng.random() < loss

    def draw() -> bool:
        nonlocal bad
        lost = bad
        bad = rng.random() >= leaves if bad else rng.random() < enters
        return lost

    return draw


def told(draw: Callable[[], bool], frames: int) -> LossEstimator:
    """Return an estimator that was told of so many frames."""
    estimator = LossEstimator()
    for _ in range(frames):
        estimator.handle(draw())
    return estimator


def root_mean_square(errors: list[float]) -> float:
    """Return it."""
    return sqrt(mean(error * error for error in errors))


def errors(loss: float, frames: int, seeds: int) -> tuple[float, float, float]:
    """Return the root mean square error and the mean one, and the share of runs whose `interval` holds the loss."""
    found = [told(independent(loss, Random(seed)), frames) for seed in range(seeds)]
    wrong = [estimator.loss - loss for estimator in found]
    return root_mean_square(wrong), mean(wrong), holding(found, loss)


def holding(found: list[LossEstimator], loss: float) -> float:
    """Return the share of estimators whose `interval` holds the loss."""
    return mean(estimator.interval[0] <= loss <= estimator.interval[1] for estimator in found)


def noticing(before: float, after: float, threshold: float, seeds: int) -> list[int]:
    """Return after how many frames of another loss the estimate crosses the threshold, ascending."""
    counts = []
    for seed in range(seeds):
        rng = Random(seed)
        estimator, count = told(independent(before, rng), 1000), 0
        draw = independent(after, rng)
        while (estimator.loss < threshold) == (before < threshold):
            estimator.handle(draw())
            count += 1
        counts.append(count)
    return sorted(counts)


def _tables(seeds: int) -> Iterator[str]:
    yield from table(
        ["loss", *(f"{count} frames" for count in COUNTS)],
        (
            [f"{100 * loss:g} %"]
            + [
                f"{100 * error:.1f}, {100 * mean_error:+.1f}, {100 * sure:.0f} %"
                for error, mean_error, sure in (errors(loss, count, seeds) for count in COUNTS)
            ]
            for loss in LOSSES
        ),
    )
    yield ""
    for before, after, threshold in CHANGES:
        counts = noticing(before, after, threshold, seeds)
        median, late = counts[len(counts) // 2], counts[len(counts) * 9 // 10]
        yield f"{before:.0%} to {after:.0%}: beyond {threshold:.0%} after {median} frames, 90 % of runs after {late}"
    yield ""
    rows = []
    for loss in BURSTY_LOSSES:
        for burst in BURSTS:
            found = [told(bursty(loss, burst, Random(seed)), BURSTY_FRAMES) for seed in range(seeds)]
            true = (1 - 1 / burst - loss) / (1 - loss)
            clustering = [estimator.clustering for estimator in found]
            rows.append(
                [
                    f"{100 * loss:g} %, {burst}",
                    f"{true:.2f}",
                    f"{mean(clustering):.2f}",
                    f"{root_mean_square([value - true for value in clustering]):.2f}",
                    f"{100 * root_mean_square([estimator.loss - loss for estimator in found]):.1f}",
                    f"{100 * holding(found, loss):.0f} %",
                    f"{mean(estimator.changes for estimator in found):.2f}",
                ]
            )
    heads = [
        "loss, burst",
        "clustering",
        "mean estimate",
        "its error",
        "error of the loss",
        "interval holds",
        "changes",
    ]
    yield from table(heads, rows)


def main() -> None:
    """Print the tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=int, default=200)
    for line in _tables(options.parse_args().seeds):
        print(line)


if __name__ == "__main__":
    sys.exit(status_of(main))
