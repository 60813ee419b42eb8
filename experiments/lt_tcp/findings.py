"""Ours against the paper's, and against our own goal.

Rules kept
- A finding counts only cells that were computed, and says of how many.
- A scheme collapses at a PER where LT-TCP has four times its goodput or more.
"""

from collections.abc import Callable, Iterator
from operator import gt, le

from experiments.lt_tcp import parameters
from experiments.lt_tcp.cells import Case, Cases
from testbed.papers.results import Finding, Results, Tally, agreement, tally

#: times a scheme's goodput: LT-TCP's, where that scheme has collapsed
COLLAPSED = 4


def findings(results: Results) -> list[Finding]:
    """Return the findings of the cells that were computed."""
    cases: Cases = results.by_case()
    return [*_reached(cases), *_collapse(cases), *_components(cases), *_near(results)]


def _reached(cases: Cases) -> Iterator[Tally]:
    ours = {case: result for case, result in cases.items() if case[:2] == ("goodput", "lt-tcp")}
    at_least = [(case.name, r.ours.median >= r.cell.paper.median) for case, r in ours.items()]
    yield from tally("reached", "LT-TCP's goodput: the paper's, or more", at_least)
    goals = [
        (case.name, result.ours.median >= parameters.GOALS[case.per_pct])
        for case, result in ours.items()
        if case.per_pct in parameters.GOALS
    ]
    words = ", ".join(f"{goal:.1f} at {per} %" for per, goal in parameters.GOALS.items())
    yield from tally("goal", f"LT-TCP's goodput: our goal, in Mbps {words}, or more", goals)


def _collapse(cases: Cases) -> Iterator[Tally]:
    checks = []
    for case, result in cases.items():
        best = cases.get(Case("goodput", "lt-tcp", case.per_pct))
        if case.metric != "goodput" or best is None or not result.cell.paper.known:
            continue
        if COLLAPSED * result.cell.paper.median <= best.cell.paper.median:
            checks.append((case.name, COLLAPSED * result.ours.median <= best.ours.median))
    yield from tally("collapse", "the other schemes collapse where they do in the paper", checks)


def _components(cases: Cases) -> Iterator[Tally]:
    per = parameters.COMPONENTS_PER_PCT
    better: tuple[tuple[str, str, Callable[[float, float], bool]], ...] = (
        ("goodput", "more goodput", gt),
        ("timeouts", "no more timeouts", le),
    )
    for metric, words, holds in better:
        checks = []
        for scheme, base in parameters.ADDS_TO.items():
            with_it, without = cases.get(Case(metric, scheme, per)), cases.get(Case(metric, base, per))
            if with_it is not None and without is not None:
                checks.append((f"{scheme} over {base}", holds(with_it.ours.median, without.ours.median)))
        yield from tally(f"components/{metric}", f"component study: each part gives {words}", checks)


def _near(results: Results) -> Iterator[Tally]:
    for metric in ("goodput", "throughput", "timeouts"):
        yield from agreement(f"near/{metric}", f"{metric} within 25 % of the paper's", results.below(f"{metric}/"))
