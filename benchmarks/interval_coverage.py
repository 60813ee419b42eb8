"""How often do our 95 % confidence intervals contain the truth?

    .venv/bin/python -m benchmarks.interval_coverage [--runs N] [--workers N]

The truth is known: it is the median and the mean of so many runs of tier `model`, seeds 1 to N, a transfer of 100 kB
over scenarios/lossy-link.yaml (5 % of the frames lost), with SLACP and without. The intervals are of disjoint samples
of these runs, in the order of their seeds, and of 4000 samples drawn with replacement, whose truth is exactly that of
the runs.
"""

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import get_args

from testbed.campaigns.processes import call_all, cores
from testbed.paths import root
from testbed.results.statistics import Statistic, interval, statistic
from testbed.scenario.file import load
from testbed.scenario.schema import Scenario
from testbed.simulation import simulate

SIZES = (10, 20, 50)
DRAWN = 4000
_BATCH = 50


@dataclass(frozen=True, slots=True)
class Coverage:
    """The share of intervals that contain the truth."""

    of: Statistic
    size: int
    #: of disjoint samples, and their number
    disjoint: float
    samples: int
    #: of samples drawn with replacement
    drawn: float


def durations(scenario: Scenario, seeds: range) -> list[float]:
    """Return the durations of runs (s)."""
    return [simulate(scenario.model_copy(update={"seed": seed})).duration_s for seed in seeds]


def coverages(values: Sequence[float], sizes: Sequence[int] = SIZES, drawn: int = DRAWN) -> Iterator[Coverage]:
    """Yield the coverage of the truth, which is that of all values, by intervals of samples of these sizes."""
    for of in get_args(Statistic):
        truth = statistic(values, of)
        for size in sizes:
            disjoint = [values[first : first + size] for first in range(0, len(values) - size + 1, size)]
            rng = random.Random(size)
            again = [rng.choices(values, k=size) for _ in range(drawn)]
            shares = [sum(_contains(sample, of, truth) for sample in kind) / len(kind) for kind in (disjoint, again)]
            yield Coverage(of, size, shares[0], len(disjoint), shares[1])


def _contains(sample: Sequence[float], of: Statistic, truth: float) -> bool:
    found = interval(sample, of)
    return found is not None and found.low <= truth <= found.high


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=cores())
    options = parser.parse_args()
    for scheme in ("slacp", "none"):
        settings = [f"link.scheme={scheme}", "trace=false", "workloads=[{kind: bulk, bytes: 100000}]"]
        scenario = load(root() / "scenarios" / "lossy-link.yaml", settings, tier="model")
        batches = [range(first, min(first + _BATCH, options.runs + 1)) for first in range(1, options.runs + 1, _BATCH)]
        made = call_all(partial(durations, scenario), batches, workers=options.workers)
        values = [value for batch in made for value in batch]
        truths = ", ".join(f"{of} {statistic(values, of):.4f} s" for of in get_args(Statistic))
        print(f"scheme {scheme}, {len(values)} runs: {truths}", flush=True)
        for each in coverages(values):
            print(
                f"  {each.of} of {each.size}: {100 * each.disjoint:.1f} % of {each.samples} disjoint samples, "
                f"{100 * each.drawn:.1f} % of {DRAWN} drawn",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
