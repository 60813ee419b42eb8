"""Statements of a paper's text, and the evidence of our runs for and against each.

Rules kept
- A statement is the paper's: it names the place of its sentence. It says of each of its cases (cells beside one
  another, or a cell beside a figure) when the case holds in one replication. The cells of a case are paired by seed.
- The tolerance is derived, not chosen. If a statement is true of the medians, then each replication agrees with
  probability 1/2 or more, so the number of hits in n independent replications is binomial at least. A case is
  *contradicted* where so few hits, or fewer, have a probability of `level` at most; *confirmed* where so few misses
  have, by the mirrored test; *undecided* otherwise.
- A condition compares two values. A case of several conditions (a median within a band: not below it, not above it) is
  contradicted by any one of them, each at its share of the level, and confirmed by all together.
- Cases are never pooled: those of one block share seeds, so they are not independent. The level is divided among them
  (Bonferroni), which needs no independence.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, NamedTuple

from testbed.papers.results import Cell, CellResult, PaperError, Results, Sample

#: the probability with which a report calls a true statement contradicted, or a false one confirmed, at most
LEVEL = 0.01

#: (values of one replication, in the order of the case) -> whether the condition holds there
Holds = Callable[..., bool]


class Figure(NamedTuple):
    """A number in the place of a cell: the paper's own, or a bound that its text names."""

    value: float


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One statement of a paper."""

    name: str
    #: of the paper's sentence: section and paragraph, table or figure
    place: str
    #: our wording
    words: str
    #: each: `Cell.case` of the cells that are compared, and figures, in the order in which `holds` takes them
    cases: Sequence[Sequence[Any]]
    #: a condition, or several that must all hold
    holds: Holds | tuple[Holds, ...]
    #: the counter of a run that is compared; empty: the cell's value
    counter: str = ""
    #: why ours does not meet it, as far as that is known, by shell pattern of the cases' names (`Judged.name`); such
    #: cases are shown and not demanded
    disagrees: Mapping[str, str] = field(default_factory=dict)

    @property
    def conditions(self) -> tuple[Holds, ...]:
        """The conditions of a case."""
        return self.holds if isinstance(self.holds, tuple) else (self.holds,)

    def why(self, name: str) -> str:
        """Return why ours disagrees in the case of that name; empty where it is expected to agree."""
        return next((why for pattern, why in self.disagrees.items() if fnmatchcase(name, pattern)), "")


class Verdict(StrEnum):
    """The evidence for a case or a statement."""

    CONFIRMED = "confirmed"
    UNDECIDED = "undecided"
    CONTRADICTED = "contradicted"


@dataclass(frozen=True, slots=True)
class Judged:
    """A case, and how often it held."""

    #: names of its cells, with commas between them
    name: str
    #: replications in which each condition held
    hits: tuple[int, ...]
    #: all replications
    of: int
    #: why ours disagrees; empty where it is expected to agree
    why: str
    #: probability of a wrong verdict, at most
    level: float

    @property
    def holds(self) -> bool:
        """Whether each condition holds in half of the replications or more."""
        return all(2 * hits >= self.of for hits in self.hits)

    @property
    def verdict(self) -> Verdict:
        """The verdict at the case's level."""
        if min(self.hits) <= most_misses(self.of, self.level / len(self.hits)):
            return Verdict.CONTRADICTED
        if self.of - min(self.hits) <= most_misses(self.of, self.level):
            return Verdict.CONFIRMED
        return Verdict.UNDECIDED


@dataclass(frozen=True, slots=True)
class Finding:
    """A statement, and its cases that were computed."""

    statement: Statement
    cases: tuple[Judged, ...]

    @property
    def verdict(self) -> Verdict:
        """Contradicted in a case, confirmed in all, or neither."""
        verdicts = {case.verdict for case in self.cases}
        if Verdict.CONTRADICTED in verdicts:
            return Verdict.CONTRADICTED
        return Verdict.UNDECIDED if Verdict.UNDECIDED in verdicts else Verdict.CONFIRMED

    def count(self, verdict: Verdict) -> int:
        """Return the number of cases with that verdict."""
        return sum(case.verdict == verdict for case in self.cases)

    @property
    def hits(self) -> int:
        """The number of cases that hold in half of the replications or more."""
        return sum(case.holds for case in self.cases)

    @property
    def misses(self) -> tuple[str, ...]:
        """The cases that do not, with the replications in which they hold."""
        return tuple(f"{case.name} ({min(case.hits)}/{case.of})" for case in self.cases if not case.holds)


@cache
def most_misses(runs: int, level: float) -> int:
    """Return the largest k so that k heads or fewer in `runs` tosses have a probability of `level` at most; else -1."""
    from scipy.stats import binom

    below = -1
    while binom.cdf(below + 1, runs, 0.5) <= level:
        below += 1
    return below


def computed(statement: Statement, available: Mapping[Any, Any]) -> list[Sequence[Any]]:
    """Return the cases of a statement that are all of figures and available cells."""
    return [case for case in statement.cases if all(isinstance(part, Figure) or part in available for part in case)]


def judge(statement: Statement, results: Results, level: float | None = None) -> Finding | None:
    """Judge a statement by the cells that were computed; None without a case.

    `level` is that of one case; default: `LEVEL`, divided among the cases.
    """
    found: Mapping[Any, CellResult] = results.by_case()
    cases = computed(statement, found)
    if not cases:
        return None
    each = LEVEL / len(cases) if level is None else level
    return Finding(statement, tuple(_judged(statement, case, found, each) for case in cases))


def _judged(statement: Statement, case: Sequence[Any], found: Mapping[Any, CellResult], level: float) -> Judged:
    cells = [found[part] for part in case if not isinstance(part, Figure)]
    name = ", ".join(result.cell.name for result in cells)
    runs = min(len(result.samples) for result in cells)
    rows = [
        [part.value if isinstance(part, Figure) else _value(statement, found[part].samples[n]) for part in case]
        for n in range(runs)
    ]
    hits = tuple(sum(condition(*row) for row in rows) for condition in statement.conditions)
    return Judged(name, hits, runs, statement.why(name), level)


def _value(statement: Statement, sample: Sample) -> float:
    try:
        return sample.counts[statement.counter] if statement.counter else sample.value
    except KeyError:
        raise PaperError(f"statement {statement.name}: no run counts {statement.counter}") from None


def findings(statements: Iterable[Statement], results: Results) -> list[Finding]:
    """Judge the statements of which a case was computed."""
    found = (judge(statement, results) for statement in statements)
    return [each for each in found if each is not None]


def near(
    name: str, place: str, words: str, cells: Iterable[Cell], *, disagrees: Mapping[str, str] | None = None
) -> Statement:
    """State that our medians are within the bands of the paper's figures; cells without a figure are left out."""
    known = [(cell, *cell.band) for cell in cells if cell.paper.known]
    return Statement(
        name=name,
        place=place,
        words=words,
        cases=[(cell.case, Figure(low), Figure(high)) for cell, low, high in known],
        holds=(lambda ours, low, high: ours >= low, lambda ours, low, high: ours <= high),
        disagrees=disagrees or {},
    )
