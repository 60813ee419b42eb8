"""The statements of the SLACP paper: its tables' figures, the order of its columns, and the shares in its abstract.

Rule kept: a transfer that did not end within three hours is longer than one that did, on both sides.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product
from operator import lt

from experiments.slacp.cells import COLUMNS, DAMA, ERRORS, WORKLOADS, Case
from testbed.papers.results import Cell, Headline, Results
from testbed.papers.statements import Statement, near

#: times of the paper this close are no difference
TIED = 0.05


def statements(cells: Sequence[Cell]) -> Iterator[Statement]:
    """Yield all statements."""
    times = {cell.case: cell.paper.median for cell in cells}
    for table in (2, 3, 4):
        part = [cell for cell in cells if cell.case.table == table]
        words = f"table {table}: medians within 25 %"
        yield near(f"table{table}/within_25_percent", f"table {table}", words, part)
    rows = [
        [Case(2, dama, errors, tcp, workload, link) for tcp, link in COLUMNS]
        for dama, errors, workload in product(DAMA, ERRORS, WORKLOADS)
    ]
    yield Statement(
        name="table2/order",
        place="table 2",
        words="table 2: columns of a row (TCP, link layer) in order, pairs more than 5 % apart",
        cases=[(fast, slow) for row in rows for fast, slow in _ordered(row, times)],
        holds=lt,
    )


def _ordered(row: Sequence[Case], times: dict[Case, float]) -> Iterator[list[Case]]:
    """Yield the pairs of a row that differ in the paper, the faster one first."""
    for pair in combinations(row, 2):
        fast, slow = sorted(pair, key=lambda case: times[case])
        if times[fast] < times[slow] * (1 - TIED):
            yield [fast, slow]


def headlines(results: Results) -> list[Headline]:
    """The reductions of the transfer time that the paper's abstract names."""
    medians = results.medians()
    found = []
    for errors in ("high", "vhigh"):
        name = f"reduction/slacp/rbdc/{errors}"
        without, with_ = (Case(2, "rbdc", errors, "ref", "1x1MB", link).name for link in ("none", "slacp"))
        if without in medians and with_ in medians:
            label = f"SLACP shortens 1 MB at rbdc/{errors}, reference TCP, by"
            found.append(Headline(name, label, *_reductions(medians[without], medians[with_])))
    gains = [
        _reductions(medians[ref], medians[enh])
        for dama, errors in product(DAMA, ERRORS)
        for ref, enh in [[Case(2, dama, errors, tcp, "1x1MB", "none").name for tcp in ("ref", "enh")]]
        if ref in medians and enh in medians
    ]
    if gains:
        label = "enhancements alone shorten 1 MB by, at most"
        ours, theirs = (_largest(side) for side in zip(*gains, strict=True))
        found.append(Headline("reduction/enhancements/best", label, ours, theirs))
    return found


def _reductions(before: tuple[float, float], after: tuple[float, float]) -> tuple[float | None, float | None]:
    """Return the share by which a time became shorter, ours and the paper's."""
    ours, theirs = (
        1 - new / old if math.isfinite(old) and math.isfinite(new) else None
        for old, new in zip(before, after, strict=True)
    )
    return ours, theirs


def _largest(reductions: Iterable[float | None]) -> float | None:
    return max((reduction for reduction in reductions if reduction is not None), default=None)
