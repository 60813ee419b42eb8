"""The cells of COMPARISON's tables 2 to 5 and of figure 12, and the paper's own figures (`reference/*.csv`).

Names: `tableN/SCHEME/SETTING/METRIC` with N 2 (link layer), 3 (end-to-end) and 4 (split connections), `table5/SCHEME/
BURST` and `figure12/SCHEME/SPACING`.

Rule kept: the cells are the rows of the reference files, in the paper's order; none is made up, none left out.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from experiments.comparison import parameters
from testbed.papers.results import Cell, CellResult, Quartiles, reference

#: the twelve schemes, under the paper's names, by the table that has them
FAMILIES: Mapping[int, tuple[str, ...]] = {
    2: ("ll", "ll-tcp-aware", "ll-smart", "ll-smart-tcp-aware"),
    3: ("e2e", "e2e-newreno", "e2e-smart", "e2e-ietf-sack", "e2e-eln", "e2e-eln-rxmt"),
    4: ("split", "split-smart"),
}
SETTINGS = ("lan-8k", "lan-32k", "wan-32k")
#: of a cell of tables 2 to 4: column of the reference, unit, and the difference at which medians agree: a share, or in
#: the unit
METRICS: Mapping[str, tuple[str, str, float, float | None]] = {
    "throughput": ("throughput_mbps", "Mbps", 0.20, None),
    "wireless": ("wireless_goodput_pct", "%", 0.0, 2.0),
    "wired": ("wired_goodput_pct", "%", 0.0, 2.0),
}
#: where table 5 and figure 12 were measured
BURSTS_SETTING = SWEEP_SETTING = "lan-32k"


class Case(NamedTuple):
    """The case that a cell measures, in the paper's words."""

    #: as in `table2`
    place: str
    scheme: str
    setting: str
    metric: str = "throughput"
    #: frames of a burst, where errors are bursts
    burst: int | None = None
    #: mean distance of errors, KB of 1024 octets
    spacing_kb: int = 64

    @property
    def name(self) -> str:
        """The cell's name: the values that its table varies."""
        if self.place == "table5":
            return f"table5/{self.scheme}/{self.burst}"
        if self.place == "figure12":
            return f"figure12/{self.scheme}/{self.spacing_kb}"
        return f"{self.place}/{self.scheme}/{self.setting}/{self.metric}"


#: results by their cells' cases
Cases = Mapping[Case, CellResult]


def read() -> Iterator[Cell]:
    """Yield all cells."""
    for case, figure in _rows():
        _, unit, share, by = METRICS[case.metric]
        yield Cell(
            case.name,
            Quartiles(None, figure, None),
            parameters.REPLICATIONS,
            case=case,
            unit=unit,
            counter="" if case.metric == "throughput" else f"{case.metric}_goodput",
            near_share=share,
            near_by=by,
        )


def _rows() -> Iterator[tuple[Case, float]]:
    table_of = {scheme: table for table, schemes in FAMILIES.items() for scheme in schemes}
    for row in reference(__file__, "tables2-4"):
        for metric, (column, *_) in METRICS.items():
            place = f"table{table_of[row['scheme']]}"
            yield Case(place, row["scheme"], row["setting"], metric), float(row[column])
    for row in reference(__file__, "table5"):
        case = Case("table5", row["scheme"], BURSTS_SETTING, burst=int(row["burst_packets"]))
        yield case, float(row["throughput_mbps"])
    for row in reference(__file__, "figure12"):
        case = Case("figure12", row["scheme"], SWEEP_SETTING, spacing_kb=int(row["mean_error_spacing_kb"]))
        yield case, float(row["throughput_mbps"])
