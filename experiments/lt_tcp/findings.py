"""The statements of LT-TCP's section 4, and our own goal.

Rule kept: a scheme collapses at a PER where LT-TCP has four times its goodput or more.
"""

from collections.abc import Iterator, Sequence
from operator import ge, gt, le

from experiments.lt_tcp import parameters
from experiments.lt_tcp.cells import Case
from testbed.papers.results import Cell
from testbed.papers.statements import Figure, Statement, near

#: times a scheme's goodput: LT-TCP's, where that scheme has collapsed
COLLAPSED = 4


def statements(cells: Sequence[Cell]) -> Iterator[Statement]:
    """Yield all statements."""
    known = {cell.case: cell.paper.median for cell in cells if cell.paper.known}
    goodputs = {case: figure for case, figure in known.items() if case.metric == "goodput"}
    yield Statement(
        name="reached",
        place="table II",
        words="LT-TCP's goodput: the paper's, or more",
        cases=[(case, Figure(figure)) for case, figure in goodputs.items() if case.scheme == "lt-tcp"],
        holds=ge,
    )
    goals = ", ".join(f"{goal:.1f} at {per} %" for per, goal in parameters.GOALS.items())
    yield Statement(
        name="goal",
        place="ours, not the paper's",
        words=f"LT-TCP's goodput: our goal, in Mbps {goals}, or more",
        cases=[(Case("goodput", "lt-tcp", per), Figure(goal)) for per, goal in parameters.GOALS.items()],
        holds=ge,
    )
    best = {case: Case("goodput", "lt-tcp", case.per_pct) for case in goodputs}
    yield Statement(
        name="collapse",
        place="tables II and III",
        words="the other schemes collapse where they do in the paper",
        cases=[(case, best[case]) for case in goodputs if COLLAPSED * goodputs[case] <= goodputs[best[case]]],
        holds=lambda ours, best: COLLAPSED * ours <= best,
    )
    per = parameters.COMPONENTS_PER_PCT
    for metric, words, holds in (("goodput", "more goodput", gt), ("timeouts", "no more timeouts", le)):
        yield Statement(
            name=f"components/{metric}",
            place="figure 4",
            words=f"component study: each part gives {words}",
            cases=[(Case(metric, scheme, per), Case(metric, base, per)) for scheme, base in parameters.ADDS_TO.items()],
            holds=holds,
        )
    for metric in ("goodput", "throughput", "timeouts"):
        part = [cell for cell in cells if cell.case.metric == metric]
        yield near(f"near/{metric}", "tables II and III", f"{metric} within 25 % of the paper's", part)
