"""The search behind the choices of LT-TCP that the paper leaves open: f(E) by its confidence, and G.

    .venv/bin/python -m experiments.lt_tcp.search [--seconds S] [--seeds N] [--workers N]

Each row is a choice, one setting for all PERs, on the paper's network; goodput (Mbps), timeouts of a flow in 1000 s and
FEC segments (%) by PER. docs/lt-tcp.md has the table and the choice. The seeds are not those of the paper's tables.
"""

import argparse
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from experiments.lt_tcp.jobs import Run, values
from testbed.papers.report import table
from testbed.papers.results import Sample
from testbed.papers.workers import call_all, cores

PERS_PCT = (0, 10, 20, 30, 50)
#: changes of profile `lt-tcp`
CHOICES: tuple[dict[str, Any], ...] = (
    *({"fec_confidence": confidence} for confidence in (0.1, 0.3, 0.5, 0.7, 0.9)),
    *({"window_segments": segments} for segments in (5, 20)),
)


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of one choice."""

    choice: tuple[tuple[str, Any], ...]
    per_pct: int
    seed: int
    seconds: int

    def run(self) -> Sample:
        """Run it."""
        return Run("lt-tcp", self.per_pct, values([f"seconds={self.seconds}"]), self.choice)(self.seed)


def _run(trial: Trial) -> Sample:
    return trial.run()


def main() -> None:
    """Search and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=cores())
    options = parser.parse_args()
    trials = [
        Trial(tuple(choice.items()), per, seed, options.seconds)
        for choice in CHOICES
        for per in PERS_PCT
        for seed in range(1, options.seeds + 1)
    ]
    found = dict(zip(trials, call_all(_run, trials, workers=options.workers), strict=True))
    rows = []
    for choice in CHOICES:
        cells = []
        for per in PERS_PCT:
            samples = [
                sample
                for trial, sample in found.items()
                if trial.choice == tuple(choice.items()) and trial.per_pct == per
            ]
            timeouts = fmean(sample.counts["timeouts"] for sample in samples) * 1000 / options.seconds
            fec = fmean(sample.counts["proactive"] + sample.counts["reactive"] for sample in samples)
            cells.append(f"{fmean(sample.value for sample in samples):.2f}, {timeouts:.0f}, {fec:.0f} %")
        rows.append([", ".join(f"`{name}` {value}" for name, value in choice.items()), *cells])
    print("\n".join(table(["choice", *(f"{per} %" for per in PERS_PCT)], rows)))


if __name__ == "__main__":
    main()
