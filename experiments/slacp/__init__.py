"""The SLACP paper's tables 2, 3 and 4 and its figures 3 and 4, in virtual time.

| file | what it is |
|---|---|
| `parameters.py` | every choice, the paper's and ours: the one place to turn a knob |
| `cells.py` | the cells, and the paper's figures for them (`reference/`) |
| `jobs.py` | a cell's scenario, and the measurement in a run of it |
| `findings.py` | ours against the paper's: how many medians agree, in which rows the order does |
| `tables.py` | the tables in the paper's layout |
| `figures.py` | the plots, figure 3 among them: one transfer, segment by segment |
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from experiments.slacp import cells, figures, findings, jobs, parameters, tables
from testbed.papers.paper import Paper
from testbed.papers.results import Cell, Finding, Job, Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Slacp(Paper):
    """Tables 2, 3 and 4."""

    name = "slacp"
    title = (
        "Kojo, Astuti, Daniel, Nyrhinen, Raatikainen, "
        '"Improving TCP performance over wireless WANs using TCP/IP-friendly link layer", ICETE 2004'
    )
    unit = "s"
    heading = "The SLACP paper's tables, in virtual time"
    notes = (
        "Seconds, ours / the paper's, with quartiles; bold: more than 25 % apart.",
        "`never`: not finished within three hours.",
    )
    parameters: ClassVar = {"all": parameters.SCENARIO}

    def read(self) -> Iterable[Cell]:
        """Read the rows of the reference tables."""
        return cells.read()

    def job(self, cell: Cell, settings: Sequence[str]) -> Job:
        """Return what computes a replication of a cell."""
        return jobs.job(cell.case, settings)

    def findings(self, results: Results) -> Sequence[Finding]:
        """Compare medians, the order of TCPs and links, and the reductions of the abstract."""
        return findings.findings(results)

    def tables(self, results: Results) -> Iterator[str]:
        """Yield tables 2, 3 and 4."""
        return tables.tables(results.by_case())

    def plots(self, results: Results) -> "Iterator[tuple[str, Figure]]":
        """Draw table 2, figures 3 and 4, and the ratios of all cells."""
        return figures.draw(results)


PAPER = Slacp()
