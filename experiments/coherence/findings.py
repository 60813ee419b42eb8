"""The statements of COHERENCE's text, each on our medians.

Rules kept: a finding counts only cells that were computed, and names those for which it does not hold.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from operator import gt, lt

from experiments.coherence.cells import PERS, SCHEME_WORDS, Case, Cases
from testbed.papers.results import Finding, Results, tally

#: the ends of the paper's range of error rates
LOW, HIGH = PERS[0], PERS[-1]
#: goodput of CC at the highest error rate, packets, read off the scale of figure 8
LEAST_GOODPUT = 60_000
#: mistake rate of CC at most, %; the paper's is 0.06 to 1.2
MOST_MISTAKES = 2.0
_POSITIONS = {"figure8": "last hop", "first": "first hop", "middle": "in the middle"}

#: (name of the finding, label, cases, whether it holds for their medians)
Statement = tuple[str, str, Sequence[Sequence[Case]], Callable[..., bool]]


def findings(results: Results) -> list[Finding]:
    """Return the findings of the cells that were computed."""
    cases: Cases = results.by_case()
    found: list[Finding] = []
    for name, label, groups, holds in _statements():
        known = [[(case, cases[case].ours.median) for case in each] for each in groups if all(c in cases for c in each)]
        checks = [
            (", ".join(f"{case.name} {median:.4g}" for case, median in each), holds(*(median for _, median in each)))
            for each in known
        ]
        found += tally(name, label, checks)
    return found


def _pairs(place: str, scheme: str, rivals: Sequence[str], *pers: float) -> list[tuple[Case, Case]]:
    return [(Case(place, scheme, per), Case(place, rival, per)) for per in pers or PERS for rival in rivals]


def _statements() -> Iterator[Statement]:
    others = [scheme for scheme in SCHEME_WORDS if scheme != "cc"]
    for place, words in _POSITIONS.items():
        best = _pairs(place, "cc", others)
        yield f"{place}/cc_best", f"{words}: CC has more goodput than each other scheme", best, gt
        halves = [(Case(place, "cc", HIGH), Case(place, rival, HIGH)) for rival in ("tcp", "ecn")]
        yield (
            f"{place}/half",
            f"{words}: at PER {HIGH:g} TCP and ECN have less than half of CC's goodput",
            halves,
            lambda ours, rivals: rivals < ours / 2,
        )
        least = [(Case(place, "cc", per),) for per in PERS]
        yield (
            f"{place}/least",
            f"{words}: CC has more than {LEAST_GOODPUT:,} packets",
            least,
            lambda ours: ours > LEAST_GOODPUT,
        )
    falls = [(Case("figure8", scheme, LOW), Case("figure8", scheme, HIGH)) for scheme in ("tcp", "ecn")]
    yield (
        "figure8/falls",
        f"TCP and ECN lose more than a third of their goodput from PER {LOW:g} to {HIGH:g}",
        falls,
        lambda low, high: high < low * 2 / 3,
    )
    ecn = _pairs("figure10", "cc", ["snoop", "dda"]) + _pairs("figure10", "ecn", ["snoop", "dda"])
    yield "figure10/ecn_fewer", "ECN and CC lose less to congestion than Snoop and DDA", ecn, lt
    windows = [(Case("figure11", s, HIGH), Case("figure11", "tcp", HIGH)) for s in ("snoop", "dda", "cc")]
    yield (
        "figure11/kept",
        f"at PER {HIGH:g} Snoop, DDA and CC have more than twice TCP's window",
        windows,
        lambda ours, tcps: ours > 2 * tcps,
    )
    timeouts = _pairs("figure12", "cc", ["snoop", "dda"])
    yield "figure12/cc_fewest", "CC has fewer timeouts than Snoop and DDA", timeouts, lt
    most = _pairs("figure12", "cc", ["tcp"])
    yield "figure12/cc_tcp", "CC has fewer timeouts than TCP", most, lt
    repeats = _pairs("figure13", "cc", others)
    yield "figure13/cc_fewest", "CC has the fewest end-to-end retransmissions", repeats, lt
    mistakes = [(Case("figure14", "cc", per),) for per in PERS]
    yield "figure14/cc", f"CC's mistake rate is below {MOST_MISTAKES:g} %", mistakes, lambda ours: ours < MOST_MISTAKES
    snoop = [(Case("figure14", "snoop", per),) for per in PERS]
    yield "figure14/snoop", "Snoop makes no mistake", snoop, lambda ours: ours == 0
    dda = [(Case("figure14", "dda", lower), Case("figure14", "dda", higher)) for lower, higher in pairwise(PERS)]
    yield "figure14/dda", "DDA's mistake rate falls with the error rate", dda, gt
