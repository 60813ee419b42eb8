"""The numbers of a campaign: samples of its points, and its hypotheses tested.

Rules kept
- A number has its n, its interval, and the runs that it is of.
- All p values of a table are adjusted together (Benjamini and Hochberg 1995): of the differences that are found, the
  expected share found by chance is `SIGNIFICANT` at most. Equal differences are one test: to repeat a claim, or to
  state it of a metric or of points by other names, changes no p value.
- A claim is judged once all runs of the plan have ended: who looks after each run finds a difference some time.
- A difference counts if it is found with all pairs, and at the same level without those of which a run was late.
- A run that was cut off is longer than one that ended before that cut. Of one that ended after it nothing is known.
- The intervals of a table have the level at which its differences are found (Benjamini and Yekutieli 2005): a
  difference is found if and only if its interval excludes 0.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from common.plain_json import object_of
from testbed.campaigns.file import Hypothesis
from testbed.campaigns.folder import RUNS, open_plan, read_rows
from testbed.campaigns.plan import CampaignPlan, Point, Run
from testbed.campaigns.rows import Row
from testbed.campaigns.schedule import Schedule
from testbed.results.metrics import SummaryError, bounds, stated
from testbed.results.plain_folders import require_plain
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

    def late(self, point: Point) -> set[int]:
        """Return the seeds of a point's runs that were late."""
        return {run.seed for run, row in self.runs[point.name] if row.on_time is False}

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
    """Return the result in a run's folder; empty without one. Raises SummaryError."""
    try:
        return object_of((folder / "summary.json").read_text())
    except OSError:
        return {}
    except ValueError as error:
        raise SummaryError(f"{folder}: summary.json cannot be read: {error}") from None


def read_campaign(path: Path) -> Campaigned:
    """Return the campaign in a folder. Raises FadelabError for another folder."""
    plan = open_plan(path)
    require_plain(path)
    return campaigned(path, plan, Schedule(plan, read_rows(path, plan)))


def campaigned(path: Path, plan: CampaignPlan, schedule: Schedule) -> Campaigned:
    """Return the campaign in a folder, as far as its schedule is."""
    runs: dict[str, list[tuple[Run, Row]]] = {point.name: [] for point in plan.points}
    for run, row in schedule.rows():
        runs[run.point.name].append((run, row))
    return Campaigned(path, plan, runs, schedule.planned)


@dataclass(frozen=True, slots=True)
class Difference:
    """A metric at one point minus that at another, seed by seed."""

    #: of all pairs
    pairs: Paired
    #: of the pairs without a late run
    on_time: Paired

    def side(self, alpha: float) -> int | None:
        """Return 1 where the first point is greater, -1 for the other, 0: not shown; None: late runs decide it."""
        found, on_time = (side(pairs.interval(alpha)) for pairs in (self.pairs, self.on_time))
        return found if found in (0, on_time) else None


@dataclass(frozen=True, slots=True)
class Tested:
    """A hypothesis at one pair of points."""

    hypothesis: Hypothesis
    greater: Point
    than: Point
    #: the metric at `greater` minus that at `than`
    difference: Difference
    #: two-sided, adjusted; None: no pairs
    p: float | None
    #: 1 - the confidence of the interval, from `level`
    alpha: float
    #: whether all runs of the plan have ended
    complete: bool
    #: of the table: different tests
    tests: int

    @property
    def interval(self) -> Interval | NoInterval:
        """The interval of the difference."""
        return self.difference.pairs.interval(self.alpha)

    @property
    def verdict(self) -> str:
        """The outcome in words."""
        if not self.difference.pairs.n:
            return "no pairs"
        if not self.complete:
            return "not complete"
        undecided = f"not decided: {self.difference.on_time.n} pairs without late runs"
        outcomes = {1: "holds", 0: "not shown", -1: "the opposite holds", None: undecided}
        return outcomes[self.difference.side(self.alpha)]


def judge(campaign: Campaigned) -> list[Tested]:
    """Test all hypotheses at all their pairs of points, by the seeds that both points have."""
    found = [
        (hypothesis, greater, than, difference(campaign, greater, campaign, than, hypothesis.metric))
        for hypothesis in campaign.plan.campaign.hypotheses
        for greater, than in campaign.plan.pairs(hypothesis.greater, hypothesis.than)
    ]
    tests = family([each.pairs for *_, each in found])
    return [
        Tested(*each, p, tests.alpha, campaign.complete, tests.count)
        for each, p in zip(found, tests.adjusted, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Family:
    """The tests of a table."""

    #: p values in the table's order; None: no pairs
    adjusted: Sequence[float | None]
    #: of all intervals: 1 - confidence
    alpha: float
    #: number of different tests, without those that have no pairs
    count: int


def family(pairs: Sequence[Paired]) -> Family:
    """Adjust the tests of a table; those of equal differences, of either sign, count as one."""
    keys = [_evidence(pair) or str(index) for index, pair in enumerate(pairs)]
    tests = {key: pair.p for key, pair in zip(keys, pairs, strict=True)}
    found = dict(zip(tests, adjust(list(tests.values())), strict=True))
    return Family([found[key] for key in keys], level(list(tests.values())), sum(p is not None for p in tests.values()))


def _evidence(pair: Paired) -> str:
    """Return the differences of a pair, the same for either order; empty for none, and for zeros alone."""
    # 0 for both zeros
    ways = ([sign * value + 0.0 for value in pair.differences] for sign in (1, -1))
    return max(map(repr, ways)) if any(pair.differences) else ""


def difference(ours: Campaigned, point: Point, theirs: Campaigned, other: Point, metric: str) -> Difference:
    """Compare a metric at two points, seed by seed; NaN: a run was cut off before the other one ended."""
    mine, yours = ours.values(point, metric), theirs.values(other, metric)
    unknown = _cut_too_early(ours, point, metric, yours) | _cut_too_early(theirs, other, metric, mine)
    late = ours.late(point) | theirs.late(other)
    known = {
        seed: (math.nan, math.nan) if seed in unknown else (mine[seed], yours[seed])
        for seed in sorted(mine.keys() & yours.keys())
    }
    every, on_time = list(known.values()), [pair for seed, pair in known.items() if seed not in late]
    return Difference(*(paired([a for a, _ in pairs], [b for _, b in pairs]) for pairs in (every, on_time)))


def _cut_too_early(campaign: Campaigned, point: Point, metric: str, others: Mapping[int, float]) -> set[int]:
    """Return the seeds at which a run was cut off before that of `others` ended."""
    found = set()
    for run, row in campaign.runs[point.name]:
        end = others.get(run.seed, math.inf)
        if row.value(metric) == math.inf and end < math.inf:
            cut = stated(campaign.summary(row), metric)
            if cut is None or end > cut:
                found.add(run.seed)
    return found


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
