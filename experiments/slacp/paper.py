"""The SLACP paper as the command line knows it (testbed/papers/paper.py)."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from experiments.slacp import cells as tables
from experiments.slacp.findings import findings
from testbed.papers.paper import Cell, Finding, Job, Paper, Results


class Slacp:
    """Tables 2, 3 and 4."""

    title = (
        "Kojo, Astuti, Daniel, Nyrhinen, Raatikainen, "
        '"Improving TCP performance over wireless WANs using TCP/IP-friendly link layer", ICETE 2004'
    )
    unit = "s"
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
        from experiments.slacp.jobs import job

        return job(self._cases[cell.name], settings)

    def findings(self, results: Results) -> Sequence[Finding]:
        """Compare with the paper."""
        return findings(results.medians())

    def write_report(self, results: Results, folder: Path) -> Sequence[Path]:
        """Write report.md and the plots that these cells allow."""
        from experiments.slacp.report import write

        return write(results, self.findings(results), folder)


PAPER: Paper = Slacp()
