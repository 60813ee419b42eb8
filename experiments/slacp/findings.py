"""Ours against the paper's.

Rules kept
- A finding counts only cells that were computed, and says of how many.
- A transfer that did not end within three hours is longer than one that did, on both sides.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import product

from experiments.slacp.cells import COLUMNS, DAMA, ERRORS, WORKLOADS, Case
from testbed.papers.results import Finding, Headline, Results, Tally, agreement, same_order, tally

#: columns that are this close in the paper may be in any order in the lenient count
TIED = 0.05

#: (ours, paper's) median by cell name
Medians = Mapping[str, tuple[float, float]]


def findings(results: Results) -> list[Finding]:
    """Return the findings of the cells that were computed."""
    found: list[Finding] = []
    for table in (2, 3, 4):
        label = f"table {table}: medians within 25 %"
        found += agreement(f"table{table}/within_25_percent", label, results.below(f"table{table}/"))
    found += orders(results.medians())
    found += headlines(results.medians())
    return found


def orders(medians: Medians) -> Iterator[Tally]:
    """Count the rows of table 2 whose four columns (TCP, link layer) are in the paper's order."""
    rows = {
        f"{dama}/{errors}/{workload}": [Case(2, dama, errors, tcp, workload, link).name for tcp, link in COLUMNS]
        for dama, errors, workload in product(DAMA, ERRORS, WORKLOADS)
    }
    rows = {row: cells for row, cells in rows.items() if all(cell in medians for cell in cells)}
    for name, words, apart in (
        ("order", "rows with the four columns in order", 0.0),
        ("order_but_ties", "the same, with columns that lie within 5 % in the paper in any order", TIED),
    ):
        checks = [(row, same_order([medians[cell] for cell in cells], apart)) for row, cells in rows.items()]
        yield from tally(f"table2/{name}", f"table 2: {words}", checks)


def headlines(medians: Medians) -> list[Headline]:
    """The reductions of the transfer time that the paper's abstract names."""
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
