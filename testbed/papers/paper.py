"""Papers made again: a module or a folder in `experiments/` that declares `PAPER`, an object of a subclass of `Paper`.

A paper is its choices, its cells, a job for each, findings, and tables and plots in its own layout. The rest is
here: runs and their seeds (`computing.py`), scenarios (`runs.py`), report (`report.py`), help for plots (`plots.py`),
JSON and CSV (`outputs.py`).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final

from common.registry import Registry
from testbed.papers import report
from testbed.papers.results import Cell, Finding, Job, PaperError, Results, agreement
from testbed.papers.runs import Parameter

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Paper(ABC):
    """One paper."""

    #: what the command line calls it
    name: str
    #: authors, title and year, in one line
    title: str
    #: of all cells, as in `s`; empty: each has its own
    unit = ""
    tier = "model"
    #: headline of the report, and paragraphs below it
    heading: str
    notes: Sequence[str] = ()
    #: the choices behind the scenarios, by the cells that they are for
    parameters: ClassVar[Mapping[str, Sequence[Parameter]]]

    @abstractmethod
    def read(self) -> Iterable[Cell]:
        """Read all cells, in the paper's order."""

    @abstractmethod
    def job(self, cell: Cell, settings: Sequence[str]) -> Job:
        """Return what computes a replication, with the scenario changed by `key=value` settings.

        Raises FadelabError in one line for settings that are refused.
        """

    @cached_property
    def cells(self) -> Sequence[Cell]:
        """All cells, in the paper's order."""
        return tuple(self.read())

    def findings(self, results: Results) -> Sequence[Finding]:
        """Compare with the paper, as far as cells were computed."""
        return [*agreement("near", "medians near the paper's", results.cells)]

    def tables(self, results: Results) -> Iterator[str]:
        """Yield the results as lines of Markdown."""
        rows = (([f"`{result.cell.name}`"], [result]) for result in results.cells)
        return report.section("Cells", ["cell", "ours / the paper's"], rows, report.entry)

    def plots(self, results: Results) -> "Iterator[tuple[str, Figure]]":
        """Yield the plots that these cells permit, each with the name of its file."""
        return iter(())

    def choices(self) -> Iterator[str]:
        """Yield the choices as lines of Markdown."""
        chosen = ((group, choice) for group, choices in self.parameters.items() for choice in choices)
        return report.parameters(chosen, grouped=len(self.parameters) > 1)


PAPERS: Final = Registry("experiments", "PAPER", Paper)  # type: ignore[type-abstract]


def find(name: str) -> Paper:
    """Return the paper of that name. Raises PaperError naming those that exist."""
    if name not in PAPERS:
        raise PaperError(f"no paper {name!r}: choose from {', '.join(PAPERS)}")
    return PAPERS[name]


def chosen(paper: Paper, only: Sequence[str]) -> list[Cell]:
    """Return the cells that match one of the shell patterns; without patterns, all.

    Raises PaperError for a pattern that matches no cell.
    """
    for pattern in only:
        if not any(fnmatchcase(cell.name, pattern) for cell in paper.cells):
            first, last = paper.cells[0].name, paper.cells[-1].name
            raise PaperError(f"no cell matches {pattern!r}: there are {first} to {last}; --list shows all")
    return [cell for cell in paper.cells if not only or any(fnmatchcase(cell.name, pattern) for pattern in only)]
