"""Gates: bounds for a few runs of a paper's cells, so that a change does not lose the paper's rankings.

Rules kept
- A gate is a statement of the paper: all its cases, or those that the full run confirms (docs/results.md) less the
  closest ones.
- It holds for other seeds as well. Tier `model` repeats: seeds that passed pass again, until something has changed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from testbed.papers.computing import reproduce
from testbed.papers.paper import Paper, chosen
from testbed.papers.question import Question
from testbed.papers.results import PaperError, Results, Tally


class GateError(PaperError):
    """A finding with fewer hits than it must have."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A finding and the least number of its hits."""

    paper: str
    tally: Tally
    least: int

    @property
    def open(self) -> bool:
        """Whether it has that many."""
        return self.tally.hits >= self.least


def quick_results(
    paper: Paper, *, first_seed: int = 1, workers: int = 1, done: Callable[[int, int], None] = lambda runs, of: None
) -> Results:
    """Compute the cells that the gates of a paper need."""
    quick = paper.quick
    cells = chosen(paper, quick.only)
    question = Question(paper, cells, replications=quick.replications, first_seed=first_seed, settings=quick.settings)
    return reproduce(question, workers=workers, done=done)


def gates(paper: Paper, results: Results) -> Iterator[Gate]:
    """Yield the gates of a paper. Raises GateError for a gate without a finding."""
    found = {finding.name: finding for finding in paper.findings(results) if isinstance(finding, Tally)}
    for name, least in paper.quick.gates.items():
        if name not in found:
            raise GateError(f"{paper.name}: gate {name}: no finding of that name counts hits")
        yield Gate(paper.name, found[name], least)
