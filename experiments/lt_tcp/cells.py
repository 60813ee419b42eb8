"""The cells of LT-TCP's tables, and the paper's own figures (`reference/tables.csv`).

Names: `METRIC/SCHEME/PER` with PER in percent; the component study is the cells of the schemes that are parts of
LT-TCP. Of these the paper has a figure only, without numbers. `lt-tcp-2005` is the paper's LT-TCP, and `lt-tcp` ours,
with improvements that the paper does not have.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from experiments.lt_tcp import parameters
from testbed.papers.results import NO_FIGURE, Cell, CellResult, Quartiles, reference

#: column of the reference and unit; the counter of a run has the metric's name
METRICS: Mapping[str, tuple[str, str]] = {
    "goodput": ("goodput_mbps", "Mbps"),
    "throughput": ("throughput_mbps", "Mbps"),
    "timeouts": ("timeouts", ""),
    "proactive": ("proactive_fec_pct", "%"),
    "reactive": ("reactive_fec_pct", "%"),
}
#: the scheme that is no paper's: LT-TCP with our improvements
OURS = "lt-tcp"
PERS_PCT = (0, 10, 20, 30, 40, 50)


class Case(NamedTuple):
    """The case that a cell measures, in the paper's words."""

    #: a key of METRICS
    metric: str
    #: TCP, or link scheme
    scheme: str
    per_pct: int

    @property
    def name(self) -> str:
        """The cell's name."""
        return f"{self.metric}/{self.scheme}/{self.per_pct}"


#: results by their cells' cases
Cases = Mapping[Case, CellResult]


def read() -> Iterator[Cell]:
    """Yield all cells."""
    for row in reference(__file__, "tables"):
        for metric, (column, _) in METRICS.items():
            if row[column]:
                # the paper's zeros are no figures to be near to
                yield _cell(Case(metric, parameters.PAPERS[row["scheme"]], int(row["per_pct"])), float(row[column]))
    for metric in METRICS:
        for per_pct in PERS_PCT:
            yield _cell(Case(metric, OURS, per_pct), 0.0)
    for scheme in parameters.ADDS_TO:
        if scheme not in parameters.PAPERS.values():
            for metric in ("goodput", "throughput", "timeouts"):
                yield _cell(Case(metric, scheme, parameters.COMPONENTS_PER_PCT), 0.0)


def _cell(case: Case, figure: float) -> Cell:
    return Cell(
        case.name,
        Quartiles(None, figure, None) if figure else NO_FIGURE,
        parameters.REPLICATIONS,
        case=case,
        unit=METRICS[case.metric][1] or "timeouts",
        counter="" if case.metric == "goodput" else case.metric,
    )
