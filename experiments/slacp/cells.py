"""The cells of the SLACP paper's tables 2, 3 and 4, and the paper's own figures (`reference/table*.csv`).

Names: `table2/DAMA/ERRORS/TCP/WORKLOAD/LINK`, `table3/ERRORS/TCP/LINK`, `table4/ERRORS/TCP`.

Rule kept: the cells are the rows of the reference files, in their order; none is made up, none left out.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

from experiments.slacp import parameters
from testbed.papers.results import Cell, Quartiles, reference

#: in the paper's order, from the mildest to the worst
ERRORS = ("none", "low", "med", "high", "vhigh", "huge")
DAMA = ("cra", "rbdc", "vbdc")
WORKLOADS = ("1x1MB", "4x250KB")
#: and how tables and plots call them
LINKS = {"none": "bare", "slacp": "SLACP"}
#: TCP and link layer: the four columns that table 2 compares in a row
COLUMNS = (("ref", "none"), ("ref", "slacp"), ("enh", "none"), ("enh", "slacp"))


class Case(NamedTuple):
    """The case that a cell measures, in the paper's words."""

    table: int
    dama: str
    errors: str
    tcp: str
    workload: str
    link: str

    @property
    def name(self) -> str:
        """The cell's name: the values that its table varies."""
        varied = {
            2: (self.dama, self.errors, self.tcp, self.workload, self.link),
            3: (self.errors, self.tcp, self.link),
            4: (self.errors, self.tcp),
        }[self.table]
        return "/".join((f"table{self.table}", *varied))


def read() -> Iterator[Cell]:
    """Yield all cells."""
    for case, figure in _rows():
        yield Cell(case.name, figure, parameters.REPLICATIONS, case=case)


def _rows() -> Iterator[tuple[Case, Quartiles]]:
    for row in reference(__file__, "table2"):
        case = Case(2, row["dama"], row["error_model"], row["tcp"], row["workload"], row["link_layer"])
        figure = Quartiles(_seconds(row["p25_s"]), _median(row), _seconds(row["p75_s"]))
        yield case, figure
    for row in reference(__file__, "table3"):
        case = Case(3, "vbdc", row["error_model"], row["tcp"], row["transfer"], row["link_layer"])
        yield case, Quartiles(None, _median(row), None)
    for row in reference(__file__, "table4"):
        case = Case(4, "vbdc", row["error_model"], row["tcp"], "1x1MB", "slacp")
        figure = Quartiles(_seconds(row["p25_s"]), _median(row), _seconds(row["p75_s"]))
        yield case, figure


def _median(row: dict[str, str]) -> float:
    median = row["median_s"]
    return math.inf if median.startswith(">") else float(median)


def _seconds(text: str) -> float | None:
    return float(text) if text else None
