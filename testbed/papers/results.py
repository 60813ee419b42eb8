"""The figures of a paper, and ours beside them: cells, samples, headlines.

Rules kept
- A cell is one number of a paper. Its name is a path (table2/cra/high/...), chosen by shell patterns. Several cells may
  be numbers of the same runs.
- A figure that cannot be measured, because it takes too long, is infinite, the paper's and ours.
"""

import csv
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from testbed.errors import FadelabError


class PaperError(FadelabError):
    """A paper or a cell that does not exist, or a setting that makes a cell another one."""


@dataclass(frozen=True, slots=True)
class Quartiles:
    """A figure: median and quartiles, in the paper's unit; None: not known; inf: more than could be measured."""

    p25: float | None
    #: NaN: the paper's is not known
    median: float
    p75: float | None

    @property
    def known(self) -> bool:
        """Whether there is a figure."""
        return not math.isnan(self.median)


#: of a cell whose figure is lost, or that the paper does not have
NO_FIGURE = Quartiles(None, math.nan, None)

#: the relative difference at which our median agrees with the paper's, unless a cell says otherwise
NEAR = 0.25


@dataclass(frozen=True, slots=True)
class Cell:
    """One number of a paper."""

    name: str
    paper: Quartiles
    #: runs that the paper's figure is of
    replications: int
    _: KW_ONLY
    #: its meaning in the paper's words; any value that the paper's own code understands
    case: Any = None
    #: its own, in a paper whose cells have different ones
    unit: str = ""
    #: the counter of a run that it is; empty: the run's value
    counter: str = ""
    #: largest relative difference at which our median agrees with the paper's
    near_share: float = NEAR
    #: instead of that, the largest difference in the unit
    near_by: float | None = None

    def agrees(self, ours: float) -> bool:
        """Whether a median of ours is near the paper's; infinite is near to infinite only.

        Where the paper's is not known, nothing contradicts it.
        """
        if not self.paper.known:
            return True
        low, high = self.band
        return low <= ours <= high

    @property
    def band(self) -> tuple[float, float]:
        """The medians that are near the paper's, from and to."""
        theirs = self.paper.median
        if math.isinf(theirs):
            return theirs, theirs
        by = self.near_share * theirs if self.near_by is None else self.near_by
        return theirs - by, theirs + by

    def sample(self, run: "Sample") -> "Sample":
        """Return the sample of this cell that a run gives."""
        return replace(run, value=run.counts[self.counter]) if self.counter else run


@dataclass(frozen=True, slots=True)
class Sample:
    """One replication: its value (inf: not finished), and counters that explain it."""

    value: float
    counts: Mapping[str, float] = field(default_factory=dict)


#: computes one replication from its seed; goes to other processes by pickle, and is equal to one that does the same
Job = Callable[[int], Sample]


@dataclass(frozen=True, slots=True)
class CellResult:
    """One cell, ours beside the paper's; the samples are in the order of their seeds."""

    cell: Cell
    first_seed: int
    samples: tuple[Sample, ...]

    @property
    def ours(self) -> Quartiles:
        """Our median and quartiles."""
        values = [sample.value for sample in self.samples]
        return Quartiles(quantile(values, 0.25), quantile(values, 0.5), quantile(values, 0.75))

    @property
    def ratio(self) -> float | None:
        """Our median over the paper's; None where one of them could not be measured or is not known."""
        ours, theirs = self.ours.median, self.cell.paper.median
        return ours / theirs if math.isfinite(ours) and math.isfinite(theirs) else None

    @property
    def unfinished(self) -> int:
        """The number of replications that did not finish."""
        return sum(not math.isfinite(sample.value) for sample in self.samples)

    def means(self) -> dict[str, float]:
        """The mean of every counter over the replications that have it."""
        names = sorted({name for sample in self.samples for name in sample.counts})
        return {name: fmean(sample.counts[name] for sample in self.samples if name in sample.counts) for name in names}


@dataclass(frozen=True, slots=True)
class Headline:
    """A share that the paper's text names, ours beside it; None: a cell it needs did not finish."""

    name: str
    label: str
    ours: float | None
    paper: float | None


@dataclass(frozen=True, slots=True)
class Results:
    """The cells of a paper that were computed, in the paper's order."""

    paper: str
    cells: tuple[CellResult, ...]
    settings: tuple[str, ...] = ()

    def by_case(self) -> dict[Any, CellResult]:
        """Return the results by their cells' cases."""
        return {result.cell.case: result for result in self.cells}

    def below(self, prefix: str, suffix: str = "") -> list[CellResult]:
        """Return the results of cells with such a beginning and end of the name."""
        return [r for r in self.cells if r.cell.name.startswith(prefix) and r.cell.name.endswith(suffix)]

    def __getitem__(self, name: str) -> CellResult:
        return next(result for result in self.cells if result.cell.name == name)

    def medians(self) -> dict[str, tuple[float, float]]:
        """Our median and the paper's, by cell."""
        return {result.cell.name: (result.ours.median, result.cell.paper.median) for result in self.cells}


# -- figures -------------------------------------------------------------------------------------------------


def quantile(values: Iterable[float], share: float) -> float:
    """Return a quantile, interpolated between the two nearest values; infinite where one it needs is.

    Raises ValueError without values.
    """
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values have no quantile")
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    weight = place - below
    if not weight or ordered[below] == ordered[below + 1]:
        return ordered[below]
    # written so that equal neighbours and infinite ones come out as themselves
    return ordered[below] + weight * (ordered[below + 1] - ordered[below])


def reference(module: str, table: str) -> list[dict[str, str]]:
    """Read a table of the paper, `reference/TABLE.csv` beside a module's file."""
    with (Path(module).parent / "reference" / f"{table}.csv").open(newline="") as file:
        return list(csv.DictReader(file))
