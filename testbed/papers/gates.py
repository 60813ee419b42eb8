"""Gates: what a few runs of each cell of a paper must reach, so that a change does not lose the paper's rankings.

Rule kept: runs of tier `model` repeat, so a gate is the number of hits that the same runs had, and not a guess at luck.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from testbed.papers.paper import Paper
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


def gates(paper: Paper, results: Results) -> Iterator[Gate]:
    """Yield the gates of a paper. Raises GateError for a gate without a finding."""
    found = {finding.name: finding for finding in paper.findings(results) if isinstance(finding, Tally)}
    for name, least in paper.gates.items():
        if name not in found:
            raise GateError(f"{paper.name}: gate {name}: no finding of that name counts hits")
        yield Gate(paper.name, found[name], least)
