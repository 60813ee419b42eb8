"""The statements of COHERENCE's text."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import gt, lt

from experiments.coherence.cells import PERS, SCHEME_WORDS, Case
from testbed.papers.statements import Figure, Holds, Statement

#: the ends of the paper's range of error rates
LOW, HIGH = PERS[0], PERS[-1]
#: goodput of CC at the highest error rate, packets, read off the scale of figure 8
LEAST_GOODPUT = 60_000
#: mistake rate of CC at most, %; the paper's is 0.06 to 1.2
MOST_MISTAKES = 2.0
_POSITIONS = {"figure8": "last hop", "first": "first hop", "middle": "in the middle"}


def _pairs(place: str, scheme: str, rivals: Sequence[str], *pers: float) -> list[tuple[Case, Case]]:
    return [(Case(place, scheme, per), Case(place, rival, per)) for per in pers or PERS for rival in rivals]


def _said(name: str, place: str, words: str, cases: Sequence[Sequence[Case | Figure]], holds: Holds) -> Statement:
    return Statement(name=name, place=place, words=words, cases=cases, holds=holds)


def statements() -> Iterator[Statement]:
    """Yield all statements."""
    others = [scheme for scheme in SCHEME_WORDS if scheme != "cc"]
    for place, words in _POSITIONS.items():
        where = "figure 8" if place == "figure8" else "section 5"
        best = _pairs(place, "cc", others)
        yield _said(f"{place}/cc_best", where, f"{words}: CC has more goodput than each other scheme", best, gt)
        yield _said(
            f"{place}/half",
            where,
            f"{words}: at PER {HIGH:g} TCP and ECN have less than half of CC's goodput",
            [(Case(place, "cc", HIGH), Case(place, rival, HIGH)) for rival in ("tcp", "ecn")],
            lambda ours, rivals: rivals < ours / 2,
        )
        yield _said(
            f"{place}/least",
            where,
            f"{words}: CC has more than {LEAST_GOODPUT:,} packets",
            [(Case(place, "cc", per), Figure(LEAST_GOODPUT)) for per in PERS],
            gt,
        )
    yield _said(
        "figure8/falls",
        "figure 8",
        f"TCP and ECN lose more than a third of their goodput from PER {LOW:g} to {HIGH:g}",
        [(Case("figure8", scheme, LOW), Case("figure8", scheme, HIGH)) for scheme in ("tcp", "ecn")],
        lambda low, high: high < low * 2 / 3,
    )
    ecn = _pairs("figure10", "cc", ["snoop", "dda"]) + _pairs("figure10", "ecn", ["snoop", "dda"])
    yield _said("figure10/ecn_fewer", "figure 10", "ECN and CC lose less to congestion than Snoop and DDA", ecn, lt)
    yield _said(
        "figure11/kept",
        "figure 11",
        f"at PER {HIGH:g} Snoop, DDA and CC have more than twice TCP's window",
        [(Case("figure11", scheme, HIGH), Case("figure11", "tcp", HIGH)) for scheme in ("snoop", "dda", "cc")],
        lambda ours, tcps: ours > 2 * tcps,
    )
    timeouts = _pairs("figure12", "cc", ["snoop", "dda"])
    yield _said("figure12/cc_fewest", "figure 12", "CC has fewer timeouts than Snoop and DDA", timeouts, lt)
    most = _pairs("figure12", "cc", ["tcp"])
    yield _said("figure12/cc_tcp", "figure 12", "CC has fewer timeouts than TCP", most, lt)
    repeats = _pairs("figure13", "cc", others)
    yield _said("figure13/cc_fewest", "figure 13", "CC has the fewest end-to-end retransmissions", repeats, lt)
    yield _said(
        "figure14/cc",
        "figure 14",
        f"CC's mistake rate is below {MOST_MISTAKES:g} %",
        [(Case("figure14", "cc", per), Figure(MOST_MISTAKES)) for per in PERS],
        lt,
    )
    snoop = [(Case("figure14", "snoop", per), Figure(0)) for per in PERS]
    yield _said("figure14/snoop", "figure 14", "Snoop makes no mistake", snoop, lambda ours, none: ours == none)
    dda = [(Case("figure14", "dda", lower), Case("figure14", "dda", higher)) for lower, higher in pairwise(PERS)]
    yield _said("figure14/dda", "figure 14", "DDA's mistake rate falls with the error rate", dda, gt)
