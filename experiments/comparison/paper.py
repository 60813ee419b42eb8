"""COMPARISON as the command line knows it (testbed/papers/paper.py)."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from experiments.comparison import cells as tables
from experiments.comparison.findings import findings
from testbed.papers.paper import Cell, Finding, Job, Paper, Results


class Comparison:
    """Tables 2 to 5 and figure 12."""

    title = (
        "Balakrishnan, Padmanabhan, Seshan, Katz, "
        '"A comparison of mechanisms for improving TCP performance over wireless links", ToN 1997'
    )
    #: throughput in Mbps, goodput in percent
    unit = ""
    tier = "model"

    @cached_property
    def _cases(self) -> dict[str, tables.Case]:
        return {cell.name: case for case, cell in tables.read().items()}

    @cached_property
    def cells(self) -> Sequence[Cell]:
        """All rows of the reference tables."""
        return tuple(tables.read().values())

    def job(self, cell: Cell, settings: Sequence[str]) -> Job:
        """Return what computes a replication of a cell."""
        from experiments.comparison.jobs import job

        return job(self._cases[cell.name], settings)

    def findings(self, results: Results) -> Sequence[Finding]:
        """Compare with the paper."""
        return findings(results)

    def write_report(self, results: Results, folder: Path) -> Sequence[Path]:
        """Write report.md and the plots that these cells allow."""
        from experiments.comparison.report import write

        return write(results, self.findings(results), folder)


PAPER: Paper = Comparison()
