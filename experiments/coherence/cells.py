"""The cells of COHERENCE's figures 7 to 14.

Names: `figureN/SCHEME/PER` with N from 8 to 14, the wireless link being the last hop; `first/SCHEME/PER` and
`middle/SCHEME/PER`, the goodput with the link elsewhere; `figure7/SCHEME/METRIC`, averages of its 40 s traces.

Rule kept: the paper's plots are lost, but for the labels on their axes; so no cell has a figure to compare with, and
the axes are statements (`findings.py`).
"""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

from experiments.coherence import parameters
from testbed.papers.results import NO_FIGURE, Cell, CellResult

PERS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
#: of the first hop and the middle, of which the paper says that CC's performance is similar
ELSEWHERE_PERS = (0.001, 0.01, 0.1)
#: of the traces
TRACE_PER = 0.1
SCHEME_WORDS: Mapping[str, str] = {"tcp": "TCP", "ecn": "ECN", "snoop": "Snoop", "dda": "DDA", "cc": "CC"}
#: by place: counter of a run (empty: its value), unit, title
METRICS: Mapping[str, tuple[str, str, str]] = {
    "figure8": ("", "packets", "goodput"),
    "figure9": ("wireless_losses", "packets", "wireless losses"),
    "figure10": ("congestion_losses", "packets", "congestion losses"),
    "figure11": ("mean_cwnd", "packets", "average congestion window"),
    "figure12": ("timeouts", "timeouts", "timeouts"),
    "figure13": ("retransmissions", "packets", "end-to-end retransmissions"),
    "figure14": ("mistake_rate", "%", "mistake rate"),
    "first": ("", "packets", "goodput, wireless link as first hop"),
    "middle": ("", "packets", "goodput, wireless link in the middle"),
}
#: the averages of figure 7
TRACED: Mapping[str, str] = {"cwnd": "mean_cwnd", "queue": "mean_queue"}


class Case(NamedTuple):
    """The case that a cell measures, in the paper's words."""

    #: `figure7` or a key of METRICS
    place: str
    scheme: str
    per: float
    #: of figure 7: a key of TRACED
    metric: str = ""

    @property
    def name(self) -> str:
        """The cell's name: the values that its place varies."""
        return f"{self.place}/{self.scheme}/{self.metric or f'{self.per:g}'}"

    @property
    def position(self) -> Any:
        """Where the wireless link is."""
        return self.place if self.place in ("first", "middle") else "last"


#: results by their cells' cases
Cases = Mapping[Case, CellResult]


def read() -> Iterator[Cell]:
    """Yield all cells."""
    for scheme, (metric, counter) in product(SCHEME_WORDS, TRACED.items()):
        yield _cell(Case("figure7", scheme, TRACE_PER, metric), counter, "packets")
    for place, (counter, unit, _) in METRICS.items():
        pers = PERS if place.startswith("figure") else ELSEWHERE_PERS
        for scheme, per in product(SCHEME_WORDS, pers):
            yield _cell(Case(place, scheme, per), counter, unit)


def _cell(case: Case, counter: str, unit: str) -> Cell:
    return Cell(case.name, NO_FIGURE, parameters.REPLICATIONS, case=case, unit=unit, counter=counter)
