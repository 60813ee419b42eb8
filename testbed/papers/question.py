"""The question of a computation: it alone decides the samples, on any machine and for any output."""

import hashlib
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from testbed.papers.paper import Paper
from testbed.papers.results import Cell
from testbed.sources import sources


@dataclass(frozen=True, slots=True)
class Question:
    """Cells of a paper, how often, and with which seeds and settings."""

    paper: Paper
    cells: Sequence[Cell]
    _: KW_ONLY
    #: of each cell; None: as many as the paper made
    replications: int | None = None
    first_seed: int = 1
    #: KEY=VALUE, of scenarios
    settings: Sequence[str] = ()

    def runs(self, cell: Cell) -> int:
        """Return the replications of a cell."""
        return self.replications or cell.replications

    def digest(self) -> dict[str, Any]:
        """Return the question and the sources of the program, in a form to store and to compare."""
        names = "\n".join(f"{cell.name} {self.runs(cell)}" for cell in self.cells)
        return {
            "paper": self.paper.name,
            "cells": hashlib.sha256(names.encode()).hexdigest(),
            "first_seed": self.first_seed,
            "settings": list(self.settings),
            "fadelab": sources().version,
            "sources": sources().digest,
        }
