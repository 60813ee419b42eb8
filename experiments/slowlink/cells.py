"""The cells of SLOWLINK's tables.

Names: `one/QUEUE/DELAYS/VARIANT/METRIC` (its table 1) and `four/QUEUE/DELAYS/VARIANT/METRIC` (its table 2).

Rule kept: every cell is a number that the paper measured, or, for FACK and for excessive delays with parallel flows,
the same number of a run beside it. The paper's own figures are not in our copy of its text.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import NamedTuple

from experiments.slowlink import parameters
from testbed.papers.results import NO_FIGURE, Cell, CellResult

PLACES = ("one", "four")
#: by place: the quantity, and its counter in a run; empty: the run's value
METRICS: Mapping[str, Mapping[str, str]] = {
    "one": {"whole": "", "first": "first_s"},
    "four": {"slowest": "", "fastest": "fastest_s", "start": "start_s"},
}


class Case(NamedTuple):
    """The case that a cell measures, in the paper's words."""

    #: `one` or `four` flows
    place: str
    #: a key of QUEUES, DELAYS, VARIANTS and METRICS each
    queue: str
    delays: str
    variant: str
    metric: str

    @property
    def name(self) -> str:
        """The cell's name."""
        return "/".join(self)


#: results by their cells' cases
Cases = Mapping[Case, CellResult]


def read() -> Iterator[Cell]:
    """Yield all cells."""
    for place in PLACES:
        for delays, queue, variant in product(parameters.DELAYS, parameters.QUEUES, parameters.VARIANTS):
            for metric, counter in METRICS[place].items():
                case = Case(place, queue, delays, variant, metric)
                yield Cell(case.name, NO_FIGURE, parameters.REPLICATIONS, case=case, counter=counter)
