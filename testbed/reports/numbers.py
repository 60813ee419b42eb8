"""The numbers of a campaign: samples of its points, and its hypotheses tested.

Rules kept
- A number has its n, its interval, and the runs that it is of.
- All p values of a table are adjusted together (Benjamini and Hochberg 1995): of the differences that are found, the
  expected share found by chance is `SIGNIFICANT` at most.
- The intervals of a table have the level at which its differences are found (Benjamini and Yekutieli 2005): a
  difference is found if and only if its interval excludes 0.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from testbed.campaigns.file import Hypothesis
from testbed.campaigns.folder import RUNS, open_plan, read_rows
from testbed.campaigns.plan import CampaignPlan, Point, Run
from testbed.campaigns.rows import Row
from testbed.campaigns.schedule import Schedule
from testbed.results.metrics import bounds
from testbed.results.statistics import Interval, NoInterval, Paired, Sample, describe, paired

#: adjusted p values up to this one count
SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Campaigned:
    """A campaign and the runs that have ended."""

    path: Path
    plan: CampaignPlan
    #: by point; in the order of the replications
    runs: Mapping[str, Sequence[tuple[Run, Row]]]
    #: runs that its plan asks for, as far as that is known
    planned: int

    def values(self, point: Point, metric: str) -> dict[int, float]:
        """Return a metric of a point's runs by seed."""
        found = ((run.seed, row.value(metric)) for run, row in self.runs[point.name])
        return {seed: value for seed, value in found if value is not None}

    def sample(self, point: Point, metric: str) -> Sample:
        """Return a metric of a point in numbers."""
        return describe(list(self.values(point, metric).values()), bounds=bounds(metric))

    @cached_property
    def rows(self) -> list[Row]:
        """All runs that have ended."""
        return [row for runs in self.runs.values() for _, row in runs]

    def rows_of(self, *points: Point) -> list[Row]:
        """Return the runs of some points that have ended."""
        return [row for point in points for _, row in self.runs[point.name]]

    def summary(self, row: Row) -> dict[str, Any]:
        """Return the result of a run; empty without its folder."""
        return read_summary(self.path / RUNS / row.run)

    @property
    def left_out(self) -> list[Row]:
        """The runs that are in no sample."""
        return [row for row in self.rows if not row.counts]

    @property
    def complete(self) -> bool:
        """Whether all runs have ended."""
        return len(self.rows) == self.planned


def read_summary(folder: Path) -> dict[str, Any]:
    """Return the result in a run's folder; empty without one."""
    try:
        values: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    except OSError:
        return {}
    return values


def read_campaign(path: Path) -> Campaigned:
    """Return the campaign in a folder. Raises FadelabError for another folder."""
    plan = open_plan(path)
    schedule = Schedule(plan, read_rows(path, plan))
    runs: dict[str, list[tuple[Run, Row]]] = {point.name: [] for point in plan.points}
    for run, row in schedule.rows():
        runs[run.point.name].append((run, row))
    return Campaigned(path, plan, runs, schedule.planned)


@dataclass(frozen=True, slots=True)
class Tested:
    """A hypothesis at one pair of points."""

    hypothesis: Hypothesis
    greater: Point
    than: Point
    #: the metric at `greater` minus that at `than`
    difference: Paired
    #: two-sided, adjusted; None: no pairs
    p: float | None
    #: 1 - the confidence of the interval, from `level`
    alpha: float

    @property
    def interval(self) -> Interval | NoInterval:
        """The interval of the difference."""
        return self.difference.interval(self.alpha)

    @property
    def verdict(self) -> str:
        """The outcome in words."""
        if not self.difference.n:
            return "no pairs"
        return {1: "holds", 0: "not shown", -1: "the opposite holds"}[side(self.interval)]


def judge(campaign: Campaigned) -> list[Tested]:
    """Test all hypotheses at all their pairs of points, by the seeds that both points have."""
    found = [
        (hypothesis, greater, than, difference(campaign, greater, campaign, than, hypothesis.metric))
        for hypothesis in campaign.plan.campaign.hypotheses
        for greater, than in campaign.plan.pairs(hypothesis.greater, hypothesis.than)
    ]
    probabilities = [pair.p for *_, pair in found]
    alpha = level(probabilities)
    return [Tested(*each, p, alpha) for each, p in zip(found, adjust(probabilities), strict=True)]


def difference(ours: Campaigned, point: Point, theirs: Campaigned, other: Point, metric: str) -> Paired:
    """Compare a metric at two points, seed by seed."""
    mine, yours = ours.values(point, metric), theirs.values(other, metric)
    seeds = sorted(mine.keys() & yours.keys())
    return paired([mine[seed] for seed in seeds], [yours[seed] for seed in seeds])


def adjust(probabilities: Sequence[float | None]) -> list[float | None]:
    """Adjust p values for their number, so that they bound the rate of false discoveries; None stays None."""
    known = [p for p in probabilities if p is not None]
    if not known:
        return list(probabilities)
    from scipy import stats

    adjusted = map(float, stats.false_discovery_control(known, method="bh"))
    return [None if p is None else next(adjusted) for p in probabilities]


def level(probabilities: Sequence[float | None]) -> float:
    """Return the p value up to which differences are found at `SIGNIFICANT`; with none found, that of the first.

    It is the level of all intervals of the table, so that they hold the false coverage rate.
    """
    known = sorted(p for p in probabilities if p is not None)
    # room for rounding where a p value is the limit itself
    limits = [SIGNIFICANT * rank / len(known) * (1 + 1e-9) for rank in range(1, len(known) + 1)]
    return max(
        (limit for p, limit in zip(known, limits, strict=True) if p <= limit), default=min(limits, default=SIGNIFICANT)
    )


def side(interval: Interval | NoInterval) -> int:
    """Return on which side of 0 an interval is, 1 or -1; 0 for one that contains 0, and for none."""
    return 0 if isinstance(interval, NoInterval) else interval.side(0)
