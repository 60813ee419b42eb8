"""How often do our confidence intervals contain the truth?

    .venv/bin/python -m benchmarks.interval_coverage [--runs N] [--samples N] [--sizes N,N,...] [--confidence C]

The truth is known: a population is a set of values, and samples are drawn from it with replacement. Populations are the
quantiles of distributions, and the durations of so many runs of tier `model`, seeds 1 to N, a transfer of 100 kB over
scenarios/lossy-link.yaml (5 % of the frames lost), with SLACP and without. `--runs 0` leaves the runs out.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import get_args

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from testbed.campaigns.processes import call_all, cores
from testbed.paths import root
from testbed.results.statistics import CONFIDENCE, UNBOUNDED, Bounds, Interval, Statistic, interval, paired, statistic
from testbed.scenario.file import load
from testbed.scenario.schema import Scenario
from testbed.simulation import simulate

SIZES = (2, 3, 4, 5, 6, 7, 10, 20, 50)
SAMPLES = 4000
_QUANTILES = 100_000
#: pairs of differences that the truth of a typical difference is of
_PAIRS = 4_000_000
_BATCH = 50
_ABOVE_0, _SHARE = (0.0, float("inf")), (0.0, 1.0)

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Population:
    """Values to draw samples from."""

    name: str
    values: Values
    bounds: Bounds = _ABOVE_0
    #: whether so many values are equal that intervals may hold the truth more often
    discrete: bool = False


@dataclass(frozen=True)
class Differences:
    """Differences to draw samples from, with their truth: the median of the means of any two."""

    name: str
    values: Values
    discrete: bool = False

    @cached_property
    def truth(self) -> float:
        """The typical difference."""
        first, second = np.random.default_rng(1).choice(self.values, (2, _PAIRS))
        return float(np.median((first + second) / 2))


@dataclass(frozen=True, slots=True)
class Coverage:
    """The share of intervals that contain the truth."""

    of: str
    population: str
    discrete: bool
    size: int
    samples: int
    #: intervals that there are
    shown: int
    #: of these, the ones that contain the truth
    held: int

    def __str__(self) -> str:
        """Return it as a line of the benchmark."""
        where = f"{self.of} of {self.size}, {self.population}"
        if not self.shown:
            return f"{where}: none"
        words = f"{where}: {100 * self.held / self.shown:.1f} %"
        return words if self.shown == self.samples else f"{words}, shown in {100 * self.shown / self.samples:.1f} %"


def populations() -> list[Population]:
    """Return the populations that are distributions."""
    shares = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    return [
        Population("exponential", stats.expon.ppf(shares)),
        Population("lognormal, sigma 1", stats.lognorm.ppf(shares, 1.0)),
        Population("normal", stats.norm.ppf(shares), UNBOUNDED),
        Population("share near 0, beta(0.5, 10)", stats.beta.ppf(shares, 0.5, 10), _SHARE),
        Population("share near 1, beta(10, 0.5)", stats.beta.ppf(shares, 10, 0.5), _SHARE),
        Population("count, Poisson(0.5)", stats.poisson.ppf(shares, 0.5), discrete=True),
        Population("count, Poisson(2)", stats.poisson.ppf(shares, 2), discrete=True),
        Population("rare count, Poisson(0.1)", stats.poisson.ppf(shares, 0.1), discrete=True),
    ]


def differences() -> list[Differences]:
    """Return the populations of differences, of independent values of two distributions."""
    drawn = {each.name: each.values for each in populations()}
    rng = np.random.default_rng(2)

    def between(name: str, ours: str, theirs: str, *, discrete: bool = False) -> Differences:
        mine, yours = (rng.choice(drawn[each], _QUANTILES) for each in (ours, theirs))
        return Differences(name, mine - yours, discrete)

    return [
        between("exponential - exponential", "exponential", "exponential"),
        Differences("exponential - constant", drawn["exponential"] - 1),
        Differences("lognormal - constant", drawn["lognormal, sigma 1"] - 1),
        between("lognormal - exponential", "lognormal, sigma 1", "exponential"),
        between("shares, near 1 - near 0", "share near 1, beta(10, 0.5)", "share near 0, beta(0.5, 10)"),
        between("counts, Poisson(2) - Poisson(0.5)", "count, Poisson(2)", "count, Poisson(0.5)", discrete=True),
    ]


def durations(scenario: Scenario, seeds: range) -> list[float]:
    """Return the durations of runs (s)."""
    return [simulate(scenario.model_copy(update={"seed": seed})).duration_s for seed in seeds]


def coverages(
    population: Population, sizes: Sequence[int] = SIZES, samples: int = SAMPLES, confidence: float = CONFIDENCE
) -> Iterator[Coverage]:
    """Yield the coverage of intervals of the median and the mean."""
    for of in get_args(Statistic):
        truth = statistic(population.values.tolist(), of)
        for size in sizes:
            drawn = np.random.default_rng(size).choice(population.values, (samples, size))
            found = [interval(sample.tolist(), of, confidence, population.bounds) for sample in drawn]
            yield _coverage(of, population, size, samples, truth, found)


def coverages_of_differences(
    population: Differences, sizes: Sequence[int] = SIZES, samples: int = SAMPLES, confidence: float = CONFIDENCE
) -> Iterator[Coverage]:
    """Yield the coverage of intervals of paired differences."""
    for size in sizes:
        drawn = np.random.default_rng(size).choice(population.values, (samples, size))
        found = [paired(sample.tolist(), [0.0] * size).interval(1 - confidence) for sample in drawn]
        yield _coverage("difference", population, size, samples, population.truth, found)


def _coverage(
    of: str, population: Population | Differences, size: int, samples: int, truth: float, found: Sequence[object]
) -> Coverage:
    shown = [each for each in found if isinstance(each, Interval)]
    held = sum(each.side(truth) == 0 for each in shown)
    return Coverage(of, population.name, population.discrete, size, samples, len(shown), held)


def _runs(scheme: str, runs: int, workers: int) -> Values:
    settings = [f"link.scheme={scheme}", "trace=false", "workloads=[{kind: bulk, bytes: 100000}]"]
    scenario = load(root() / "scenarios" / "lossy-link.yaml", settings, tier="model")
    batches = [range(first, min(first + _BATCH, runs + 1)) for first in range(1, runs + 1, _BATCH)]
    made = call_all(partial(durations, scenario), batches, workers=workers)
    return np.array([value for batch in made for value in batch])


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--sizes", type=lambda text: [int(size) for size in text.split(",")], default=SIZES)
    parser.add_argument("--confidence", type=float, default=CONFIDENCE)
    parser.add_argument("--workers", type=int, default=cores())
    options = parser.parse_args()
    measured, pairs = populations(), differences()
    if options.runs:
        with_slacp, without = (_runs(scheme, options.runs, options.workers) for scheme in ("slacp", "none"))
        measured += [Population("durations with SLACP", with_slacp), Population("durations without", without)]
        pairs.append(Differences("durations without - with SLACP, by seed", without - with_slacp))
    tasks = [
        *(partial(coverages, each, options.sizes, options.samples, options.confidence) for each in measured),
        *(
            partial(coverages_of_differences, each, options.sizes, options.samples, options.confidence)
            for each in pairs
        ),
    ]
    for task in tasks:
        for found in task():
            print(found, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
