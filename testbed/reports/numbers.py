"""The numbers of a campaign: samples of its points, and its hypotheses tested.

Rules kept
- A number has its n, its interval, and the runs that it is of.
- All p values of a table are adjusted together (Benjamini and Hochberg 1995): of the differences that are found, the
  expected share found by chance is `SIGNIFICANT` at most.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from testbed.campaigns.file import Hypothesis
from testbed.campaigns.folder import open_plan, read_rows
from testbed.campaigns.plan import CampaignPlan, Point, Run
from testbed.campaigns.rows import Row
from testbed.campaigns.schedule import Schedule
from testbed.results.statistics import Paired, Sample, describe, paired

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
        return describe(list(self.values(point, metric).values()))

    @cached_property
    def rows(self) -> list[Row]:
        """All runs that have ended."""
        return [row for runs in self.runs.values() for _, row in runs]

    @property
    def failed(self) -> list[Row]:
        """The runs that failed."""
        return [row for row in self.rows if row.status == "failed"]

    @property
    def complete(self) -> bool:
        """Whether all runs have ended."""
        return len(self.rows) == self.planned


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

    @property
    def verdict(self) -> str:
        """The outcome in words."""
        if self.p is None or self.difference.mean is None:
            return "no pairs"
        if self.p > SIGNIFICANT:
            return "not shown"
        return "holds" if self.difference.mean > 0 else "the opposite holds"


def judge(campaign: Campaigned) -> list[Tested]:
    """Test all hypotheses at all their pairs of points, by the seeds that both points have."""
    found = [
        (hypothesis, greater, than, difference(campaign, greater, campaign, than, hypothesis.metric))
        for hypothesis in campaign.plan.campaign.hypotheses
        for greater, than in campaign.plan.pairs(hypothesis.greater, hypothesis.than)
    ]
    adjusted = adjust([pair.p for *_, pair in found])
    return [Tested(*each, p) for each, p in zip(found, adjusted, strict=True)]


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
