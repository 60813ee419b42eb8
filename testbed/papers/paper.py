"""Papers made again: what a paper is to the command line, and how its cells are computed.

Every folder `experiments/NAME` whose module has an object `PAPER` is a paper; `testbed` finds it by name, since it may
not import from there. A new paper is a new folder, and nothing else changes.

Rules kept
- A cell is one number of a paper: its name is a path (table2/cra/high/...), chosen by shell patterns. Several may be
  numbers of the same runs.
- Replication n of every cell has the seed base + n, so that cells compare under the same conditions (paired).
- The same question gives the same answer, to the last digit, on however many processes.
- A paper's figure beside ours: what cannot be measured, because it takes too long, is infinite on either side.
"""

import importlib
import math
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import fmean
from typing import Protocol

from testbed.errors import FadelabError
from testbed.papers.workers import call_all
from testbed.paths import root

#: replications that go to a process at a time
_BATCH = 4


class PaperError(FadelabError):
    """A paper or a cell that there is not."""


@dataclass(frozen=True, slots=True)
class Quartiles:
    """A figure: median and quartiles, in the paper's unit; None: not known; inf: more than could be measured."""

    p25: float | None
    median: float
    p75: float | None


@dataclass(frozen=True, slots=True)
class Cell:
    """One number of a paper."""

    name: str
    paper: Quartiles
    #: how often the paper measured it
    replications: int
    #: its own, in a paper whose cells have different ones
    unit: str = ""
    #: which counter of a run it is; empty: the run's value
    counter: str = ""
    #: a median of ours agrees that differs by this share at most or, where it is given, by so much in the unit
    near_share: float = 0.25
    near_by: float | None = None

    def agrees(self, ours: float) -> bool:
        """Whether a median of ours is near the paper's."""
        theirs = self.paper.median
        if self.near_by is None or math.isinf(ours):
            return near(ours, theirs, self.near_share)
        return abs(ours - theirs) <= self.near_by

    def sample(self, run: "Sample") -> "Sample":
        """Return what a run is to this cell."""
        return replace(run, value=run.counts[self.counter]) if self.counter else run


@dataclass(frozen=True, slots=True)
class Sample:
    """One replication: its value (inf: not finished), and counters that help to understand it."""

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
        """Our median over the paper's; None where one of them could not be measured."""
        ours, theirs = self.ours.median, self.cell.paper.median
        return ours / theirs if math.isfinite(ours) and math.isfinite(theirs) else None

    @property
    def unfinished(self) -> int:
        """How many replications did not finish."""
        return sum(not math.isfinite(sample.value) for sample in self.samples)

    def means(self) -> dict[str, float]:
        """The mean of every counter over the replications that have it."""
        names = sorted({name for sample in self.samples for name in sample.counts})
        return {name: fmean(sample.counts[name] for sample in self.samples if name in sample.counts) for name in names}


@dataclass(frozen=True, slots=True)
class Tally:
    """How often something holds: `hits` of `of`, and where it does not."""

    name: str
    label: str
    hits: int
    of: int
    misses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Headline:
    """A share the paper puts in its text, ours beside theirs; None: its cells were not computed, or did not finish."""

    name: str
    label: str
    ours: float | None
    paper: float | None


Finding = Tally | Headline


@dataclass(frozen=True, slots=True)
class Results:
    """What was computed of a paper."""

    paper: str
    cells: tuple[CellResult, ...]
    settings: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> CellResult:
        return next(result for result in self.cells if result.cell.name == name)

    def medians(self) -> dict[str, tuple[float, float]]:
        """Our median and the paper's, by cell."""
        return {result.cell.name: (result.ours.median, result.cell.paper.median) for result in self.cells}


class Paper(Protocol):
    """One paper: the object `PAPER` of its folder in `experiments/`."""

    @property
    def title(self) -> str:
        """Authors, title and year, in one line."""

    @property
    def unit(self) -> str:
        """Of all its cells, as in `s`; empty: each has its own."""

    @property
    def tier(self) -> str:
        """What computes it."""

    @property
    def cells(self) -> Sequence[Cell]:
        """All of them, in the paper's order."""

    def job(self, cell: Cell, settings: Sequence[str]) -> Job:
        """Return what computes a replication, with every scenario changed by `key=value` settings.

        Raises FadelabError in one line for settings that cannot be.
        """

    def findings(self, results: Results) -> Sequence[Finding]:
        """Compare what was computed with what the paper says, as far as it was computed."""

    def write_report(self, results: Results, folder: Path) -> Sequence[Path]:
        """Write tables and plots into an existing folder; return what was written."""


def papers() -> list[str]:
    """The names of all papers."""
    return sorted(module.name for module in pkgutil.iter_modules([str(root() / "experiments")]) if module.ispkg)


def find(name: str) -> Paper:
    """Return the paper of that name. Raises PaperError naming those there are."""
    if name not in papers():
        raise PaperError(f"no paper {name!r}: choose from {', '.join(papers())}")
    found: Paper = importlib.import_module(f"experiments.{name}").PAPER
    return found


def chosen(paper: Paper, only: Sequence[str]) -> list[Cell]:
    """Return the cells that match one of the shell patterns (none given: all). Raises PaperError for one in vain."""
    for pattern in only:
        if not any(fnmatchcase(cell.name, pattern) for cell in paper.cells):
            first, last = paper.cells[0].name, paper.cells[-1].name
            raise PaperError(f"no cell matches {pattern!r}: there are {first} to {last}; --list shows all")
    return [cell for cell in paper.cells if not only or any(fnmatchcase(cell.name, pattern) for pattern in only)]


def reproduce(
    name: str,
    paper: Paper,
    cells: Sequence[Cell],
    *,
    replications: int | None = None,
    first_seed: int = 1,
    settings: Sequence[str] = (),
    workers: int = 1,
    done: Callable[[int, int], None] = lambda runs, of: None,
) -> Results:
    """Compute cells of a paper, as often as the paper did or `replications` times.

    Cells with equal jobs are computed once. `done` hears how many runs are done, of how many. Raises FadelabError for
    settings that cannot be, before anything runs.
    """
    counts = [replications or cell.replications for cell in cells]
    jobs: list[tuple[Job, int]] = []
    #: per cell, which of the jobs is its own
    owners = []
    for cell, count in zip(cells, counts, strict=True):
        job = (paper.job(cell, settings), count)
        if job not in jobs:
            jobs.append(job)
        owners.append(jobs.index(job))
    batches = [
        _Batch(index, job, range(start, min(start + _BATCH, first_seed + count)))
        for index, (job, count) in enumerate(jobs)
        for start in range(first_seed, first_seed + count, _BATCH)
    ]
    total = sum(count for _, count in jobs)
    finished = 0

    def count_runs(batch: _Batch) -> None:
        nonlocal finished
        finished += len(batch.seeds)
        done(finished, total)

    samples: list[list[Sample]] = [[] for _ in jobs]
    for batch, answer in zip(batches, call_all(_run, batches, workers=workers, done=count_runs), strict=True):
        samples[batch.job_index] += answer
    results = (
        CellResult(cell, first_seed, tuple(cell.sample(run) for run in samples[owner]))
        for cell, owner in zip(cells, owners, strict=True)
    )
    return Results(name, tuple(results), tuple(settings))


@dataclass(frozen=True, slots=True)
class _Batch:
    """Some replications of one job."""

    job_index: int
    job: Job
    seeds: range


def _run(batch: _Batch) -> list[Sample]:
    return [batch.job(seed) for seed in batch.seeds]


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


def near(ours: float, theirs: float, share: float) -> bool:
    """Whether ours differs from the paper's by `share` at most; infinite is near to infinite only."""
    if math.isinf(ours) or math.isinf(theirs):
        return ours == theirs
    return abs(ours - theirs) <= share * theirs


def within(label: str, name: str, medians: Mapping[str, tuple[float, float]], share: float) -> Tally:
    """Count our medians that differ from the paper's by `share` at most; both infinite counts, too."""
    misses = tuple(cell for cell, (ours, theirs) in medians.items() if not near(ours, theirs, share))
    return Tally(name, label, len(medians) - len(misses), len(medians), misses)


def same_order(pairs: Sequence[tuple[float, float]], apart: float = 0.0) -> bool:
    """Whether (ours, theirs) are in the same order on both sides.

    Two that are equal in the paper, or whose smaller one is within `apart` of the larger, may be in any order.
    """
    return all(
        ours < other_ours
        for ours, theirs in pairs
        for other_ours, other_theirs in pairs
        if theirs < other_theirs and theirs < other_theirs * (1 - apart)
    )
