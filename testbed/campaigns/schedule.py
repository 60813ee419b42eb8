"""Which run comes next.

Rules kept
- Which runs a campaign has depends on the results alone: not on the order in which runs end, nor on interruptions.
- Runs come in the order of replications, so that an unfinished campaign has about as many of each point.
- A point with a stopping rule is looked at after whole batches. A failed run counts as a replication, without a value.
"""

import math
from collections import deque
from collections.abc import Iterator, Mapping

from testbed.campaigns.file import Stop
from testbed.campaigns.plan import CampaignPlan, Point, Run
from testbed.campaigns.rows import Row
from testbed.results.metrics import bounds
from testbed.results.statistics import Interval, interval, statistic


class Schedule:
    """Hands out runs: `poll(real_time)` until None, `handle_row` for each that has ended.

    `known` are the rows of runs that ended before.
    """

    def __init__(self, plan: CampaignPlan, known: Mapping[str, Row]) -> None:
        self._plan = plan
        self._rows: dict[str, Row] = {}
        self._waiting: dict[bool, deque[Run]] = {False: deque(), True: deque()}
        self._ended = [0] * len(plan.points)
        self._known = known
        first = plan.campaign.least
        self._targets = [first] * len(plan.points)
        for replication in range(first):
            for point in plan.points:
                self._add(plan.run(point, replication))
        for point in plan.points:
            self._look(point)

    @property
    def planned(self) -> int:
        """Runs planned so far, ended ones included; a stopping rule may ask for more."""
        return sum(self._targets)

    @property
    def ended(self) -> int:
        """Runs that have ended."""
        return sum(self._ended)

    @property
    def left(self) -> dict[bool, int]:
        """Planned runs that have not ended: of tier `model` (False) and in real time (True)."""
        found = {False: 0, True: 0}
        for point, target, ended in zip(self._plan.points, self._targets, self._ended, strict=True):
            found[point.real_time] += target - ended
        return found

    def poll(self, *, real_time: bool) -> Run | None:
        """Return a run to start now; None while there is none."""
        waiting = self._waiting[real_time]
        return waiting.popleft() if waiting else None

    def handle_row(self, run: Run, row: Row) -> None:
        """Take the end of a run."""
        self._note(run, row)
        self._look(run.point)

    def rows(self) -> Iterator[tuple[Run, Row]]:
        """Yield the runs that have ended, in the plan's order: by point, then by replication."""
        for point, target in zip(self._plan.points, self._targets, strict=True):
            for replication in range(target):
                run = self._plan.run(point, replication)
                if run.name in self._rows:
                    yield run, self._rows[run.name]

    def _add(self, run: Run) -> None:
        """Plan a run, unless it has ended before."""
        if (row := self._known.get(run.name)) is not None:
            self._note(run, row)
        else:
            self._waiting[run.point.real_time].append(run)

    def _note(self, run: Run, row: Row) -> None:
        self._rows[run.name] = row
        self._ended[run.point.index] += 1

    def _look(self, point: Point) -> None:
        """Plan the next batch of a point when all its runs have ended, and it needs more."""
        stop, index = self._plan.campaign.stop, point.index
        while stop is not None and self._ended[index] == self._targets[index] and not self._enough(point, stop):
            first = self._targets[index]
            self._targets[index] = min(first + stop.batch, stop.most)
            for replication in range(first, self._targets[index]):
                self._add(self._plan.run(point, replication))

    def _enough(self, point: Point, stop: Stop) -> bool:
        target = self._targets[point.index]
        rows = (self._rows[self._plan.run(point, replication).name] for replication in range(target))
        values = [value for row in rows if (value := row.value(stop.metric)) is not None]
        return target >= stop.most or narrow_enough(stop, values)


def narrow_enough(stop: Stop, values: list[float]) -> bool:
    """Whether the interval of these values has the half-width that was asked for."""
    if stop.of == "mean" and not all(map(math.isfinite, values)):
        # with a transfer that did not end, no number of runs gives a mean
        return True
    found = interval(values, stop.of, stop.confidence, bounds(stop.metric))
    if not isinstance(found, Interval):
        return False
    # both ends may be never
    if found.low == found.high:
        return True
    return math.isfinite(found.high) and found.half_width <= stop.allowed(statistic(values, stop.of))
