"""Gates: the statements of the papers, tried on a block of seeds on which nothing was developed.

Rules kept
- A gate is a statement. Its cases must not be contradicted (`statements.py`), save those that ours is known not to
  meet.
- The bound is derived: a block of all papers fails with a probability of `ALPHA` at most, if all gated cases are true.
  Papers have equal shares of it, and so have the cases of a paper.
- A gate that cannot fail is refused: with n replications the least probability is 2^-n.

That a change of the program changes no result is a different test, of regression: `tests/experiments/frozen.py`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from random import Random
from typing import Any

from testbed.papers.computing import reproduce
from testbed.papers.paper import PAPERS, Paper, chosen
from testbed.papers.question import Question
from testbed.papers.results import Cell, PaperError, Results
from testbed.papers.statements import Finding, Judged, Statement, Verdict, computed, judge, most_misses

#: the probability that a block of all papers fails although all gated cases are true, at most
ALPHA = 0.01
#: first seed of the block that CI computes; nothing was developed on it
BLOCK = 7001


class GateError(PaperError):
    """A contradicted statement, or a gate that cannot fail."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A statement, tried on a block."""

    paper: str
    finding: Finding

    @property
    def demanded(self) -> list[Judged]:
        """The cases that ours is expected to meet."""
        return [case for case in self.finding.cases if not case.why]

    @property
    def broken(self) -> list[Judged]:
        """Those of them that are contradicted."""
        return [case for case in self.demanded if case.verdict is Verdict.CONTRADICTED]

    @property
    def surprises(self) -> list[Judged]:
        """The cases that are confirmed, although ours is said not to meet them."""
        return [case for case in self.finding.cases if case.why and case.verdict is Verdict.CONFIRMED]

    @property
    def open(self) -> bool:
        """Whether the statement stands."""
        return not self.broken

    def document(self) -> dict[str, Any]:
        """Return the gate for JSON."""
        statement = self.finding.statement
        return {
            "paper": self.paper,
            "name": statement.name,
            "place": statement.place,
            "label": statement.words,
            "open": self.open,
            "cases": [
                {
                    "case": case.name,
                    "hits": min(case.hits),
                    "of": case.of,
                    "verdict": case.verdict,
                    "why": case.why,
                }
                for case in self.finding.cases
            ],
        }


def level(paper: Paper) -> float:
    """Return the probability with which a gated case of a paper is contradicted although it is true, at most."""
    cells = _cells(paper)
    demanded = sum(
        not statement.why(", ".join(cells[part].name for part in case if part in cells))
        for statement in _gated(paper)
        for case in computed(statement, cells)
    )
    return ALPHA / max(len(PAPERS), 1) / max(demanded, 1)


def _gated(paper: Paper) -> list[Statement]:
    patterns = paper.quick.statements
    return [each for each in paper.statements if any(fnmatchcase(each.name, pattern) for pattern in patterns)]


def _cells(paper: Paper) -> Mapping[Any, Cell]:
    """Return the quick cells by their cases."""
    return {cell.case: cell for cell in chosen(paper, paper.quick.only)}


def quick_results(
    paper: Paper, *, first_seed: int = BLOCK, workers: int = 1, done: Callable[[int, int], None] = lambda runs, of: None
) -> Results:
    """Compute the cells that the gates of a paper need."""
    quick = paper.quick
    cells: Sequence[Cell] = list(_cells(paper).values())
    question = Question(paper, cells, replications=quick.replications, first_seed=first_seed, settings=quick.settings)
    return reproduce(question, workers=workers, done=done)


def gates(paper: Paper, results: Results) -> Iterator[Gate]:
    """Yield the gates of a paper. Raises GateError for one that could not fail."""
    each = level(paper)
    for statement in _gated(paper):
        if most_misses(paper.quick.replications, each / len(statement.conditions)) < 0:
            raise GateError(f"{paper.name}: gate {statement.name}: cannot fail with {paper.quick.replications} runs")
        if (finding := judge(statement, results, each)) is not None:
            yield Gate(paper.name, finding)


# -- fresh blocks --------------------------------------------------------------------------------------------


def fresh_blocks(draw: int, blocks: int) -> list[int]:
    """Return the first seeds of so many blocks, drawn from a number; far above those that anything was developed on."""
    random = Random(draw)
    return [random.randrange(10**6, 2**31) for _ in range(blocks)]


def promise(gate: Gate) -> float:
    """Return the probability that a gate holds in a block, at least, if all its cases are true."""
    return 1 - sum(case.level for case in gate.demanded)


def failures_within_bound(failed: int, blocks: int) -> bool:
    """Whether so many blocks may fail by chance: as many or more have a probability above `ALPHA` if each fails so."""
    from scipy.stats import binom

    return bool(binom.sf(failed - 1, blocks, ALPHA) > ALPHA)
