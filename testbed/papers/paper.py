"""Papers recomputed: a module or a folder in `experiments/` that declares a `PAPER`.

A paper in a folder has these files, and some of its own:

| file | content |
|---|---|
| `parameters.py` | every choice, one set for all cells; what the paper does not say is `ours`, with its reason |
| `cells.py`, `reference/` | the cells, and the paper's figures for them |
| `jobs.py` | a cell's scenario or network, and the measurement in a run of it |
| `findings.py` | the paper's statements (`statements.py`) |
| `tables.py`, `figures.py`, `traces.py` | the tables in the paper's layout, the plots, single runs over time |

The rest is here: runs and their seeds (`computing.py`), scenarios (`runs.py`), report (`report.py`), help for plots
(`plots.py`), JSON and CSV (`outputs.py`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from common.registry import Registry
from testbed.papers import report
from testbed.papers.results import Cell, Headline, Job, PaperError, Results
from testbed.papers.runs import Parameter
from testbed.papers.statements import Finding, Statement, findings, near

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class Quick:
    """A short computation that tells whether a paper's statements still stand (`gates.py`).

    Rule kept: cells, settings and statements are the same for every seed.
    """

    #: shell patterns of cells; default: all
    only: Sequence[str] = ()
    #: for all cells, as in `papers --set`
    settings: Sequence[str] = ()
    #: enough that each gate can fail (`gates.level`)
    replications: int
    #: shell patterns of the statements that are true of these settings, too
    statements: Sequence[str] = ("*",)


@dataclass(frozen=True, kw_only=True)
class Paper:
    """One paper."""

    #: its name on the command line
    name: str
    #: authors, title and year, in one line
    title: str
    #: headline of the report, and paragraphs below it
    heading: str
    notes: Sequence[str] = ()
    #: unit of all cells, as in `s`; empty: each cell has its own
    unit: str = ""
    tier: str = "model"
    #: the choices behind the scenarios, by the cells they apply to
    parameters: Mapping[str, Sequence[Parameter]]
    #: yields all cells, in the paper's order
    read: Callable[[], Iterable[Cell]]
    #: (case of a cell, settings) -> the computation of a replication, its scenario changed by `key=value` settings;
    #: raises FadelabError in one line for settings that are refused
    job: Callable[[Any, Sequence[str]], Job]
    #: (all cells) -> the statements of the paper's text and tables
    state: Callable[[Sequence[Cell]], Iterable[Statement]] = lambda cells: [
        near("near", "its figures", "medians near the paper's", cells)
    ]
    #: shares that the text names, ours beside them, as far as their cells were computed
    headlines: Callable[[Results], Sequence[Headline]] = lambda results: ()
    #: yields the results as lines of Markdown
    tables: Callable[[Results], Iterator[str]] = report.cells
    #: yields the plots that these cells permit, each with the name of its file
    plots: "Callable[[Results], Iterator[tuple[str, Figure]]]" = lambda results: iter(())
    #: other sets of parameters that `papers --all` computes and docs/results.md scores, too: settings by a name
    variants: Mapping[str, Sequence[str]] = field(default_factory=dict)
    #: the computation and the gates of `papers --quick`
    quick: Quick
    #: for docs/results.md: shell patterns of the cells in its tables, and its plots
    brief: Sequence[str] = ()
    main_plots: Sequence[str] = ()
    #: yields lines of Markdown that follow the parameters
    appendix: Callable[[], Iterator[str]] = lambda: iter(())

    @cached_property
    def cells(self) -> Sequence[Cell]:
        """All cells, in the paper's order."""
        return tuple(self.read())

    @cached_property
    def statements(self) -> Sequence[Statement]:
        """All statements, in the paper's order."""
        return tuple(self.state(self.cells))

    def findings(self, results: Results) -> list[Finding]:
        """Judge the statements of which a case was computed."""
        return findings(self.statements, results)

    def choices(self) -> Iterator[str]:
        """Yield the choices as lines of Markdown."""
        yield from report.parameters(self.parameters)
        yield from self.appendix()


PAPERS: Final = Registry("experiments", "PAPER", Paper)


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
