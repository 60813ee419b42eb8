"""The statements of COMPARISON: its tables' figures, and the order of its schemes.

Rule kept: schemes are ranked within a setting, all twelve together; two that the paper has within 5 % of one another
may be in any order.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from operator import lt

from experiments.comparison.cells import FAMILIES, SETTINGS, Case
from testbed.papers.results import Cell
from testbed.papers.statements import Statement, near

#: throughputs of the paper this close are no difference
TIED = 0.05
_WORDS = {
    "throughput": "throughput within 20 %",
    "wireless": "wireless goodput within 2 points",
    "wired": "wired goodput within 2 points",
}


def statements(cells: Sequence[Cell]) -> Iterator[Statement]:
    """Yield all statements."""
    yield from _figures(cells)
    yield from _ranking({cell.case: cell.paper.median for cell in cells})


def _figures(cells: Sequence[Cell]) -> Iterator[Statement]:
    for table in FAMILIES:
        for metric, words in _WORDS.items():
            part = [cell for cell in cells if cell.case.place == f"table{table}" and cell.case.metric == metric]
            yield near(f"table{table}/{metric}", f"table {table}", f"table {table}: {words}", part)
    for place, label in (("table5", "table 5"), ("figure12", "figure 12")):
        part = [cell for cell in cells if cell.case.place == place]
        yield near(f"{place}/throughput", label, f"{label}: {_WORDS['throughput']}", part)


def _ranking(throughputs: dict[Case, float]) -> Iterator[Statement]:
    """Rank the schemes by setting."""
    for setting in SETTINGS:
        known = [
            case
            for table, schemes in FAMILIES.items()
            for scheme in schemes
            if (case := Case(f"table{table}", scheme, setting)) in throughputs
        ]
        ordered = [sorted(pair, key=lambda case: throughputs[case]) for pair in combinations(known, 2)]
        yield Statement(
            name=f"{setting}/ranking",
            place="tables 2 to 4",
            words=f"{setting}: pairs of schemes in the order of the tables, of those more than 5 % apart",
            cases=[(slow, fast) for slow, fast in ordered if throughputs[slow] < throughputs[fast] * (1 - TIED)],
            holds=lt,
        )
