"""COMPARISON's tables 2 to 5 and figure 12, in virtual time.

| file | what it is |
|---|---|
| `parameters.py` | every choice, the paper's and ours: the one place to turn a knob |
| `cells.py` | the cells, and the paper's figures for them (`reference/`) |
| `jobs.py` | a cell's scenario, and the measurement in a run of it |
| `findings.py` | ours against the paper's: how many medians agree, and which schemes are in the paper's order |
| `tables.py` | the tables in the paper's layout |
| `traces.py` | single transfers: segments, retransmissions and windows over time |
| `figures.py` | the plots |
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from experiments.comparison import cells, figures, findings, jobs, parameters, tables
from testbed.papers.paper import Paper
from testbed.papers.report import table
from testbed.papers.results import Cell, Finding, Job, Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Comparison(Paper):
    """Tables 2 to 5 and figure 12: throughput in Mbps, goodput in percent."""

    name = "comparison"
    title = (
        "Balakrishnan, Padmanabhan, Seshan, Katz, "
        '"A comparison of mechanisms for improving TCP performance over wireless links", ToN 1997'
    )
    heading = "COMPARISON's tables, in virtual time"
    notes = ("Medians, ours / the paper's; bold: throughput more than 20 %, or goodput more than 2 points, apart.",)
    parameters: ClassVar = {"all": parameters.SCENARIO, **parameters.SETTINGS}

    def read(self) -> Iterable[Cell]:
        """Read the rows of the reference tables."""
        return cells.read()

    def job(self, cell: Cell, settings: Sequence[str]) -> Job:
        """Return what computes a replication of a cell."""
        return jobs.job(cell.case, settings)

    def findings(self, results: Results) -> Sequence[Finding]:
        """Compare medians, and the order of schemes."""
        return findings.findings(results)

    def tables(self, results: Results) -> Iterator[str]:
        """Yield tables 2 to 5 and figure 12."""
        return tables.tables(results.by_case())

    def plots(self, results: Results) -> "Iterator[tuple[str, Figure]]":
        """Draw tables 2 to 5, figure 12, and transfers over time."""
        return figures.draw(results)

    def choices(self) -> Iterator[str]:
        """Yield the parameters, and what the paper's schemes are here."""
        yield from super().choices()
        rows = ((scheme, *(f"`{name}`" for name in names)) for scheme, names in parameters.SCHEMES.items())
        yield from ("", *table(["scheme", "`link.scheme`", "`tcp`", "`link.eln`"], rows))


PAPER = Comparison()
