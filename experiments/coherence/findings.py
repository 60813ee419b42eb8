"""The statements of COHERENCE's sections 4 and 5, each with the place of its sentence.

Rules kept
- All statements that name something measurable are here, whether ours meets them or not. Sentences on causes, such as
  those that lead to a timeout, are not.
- The paper's adverbs are the same numbers everywhere, and the same as in `clues.py`.
- The bounds of figures 8 to 12 are the ends of their axes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import ge, gt, le, lt

from experiments.coherence.cells import ELSEWHERE_PERS, PERS, SCHEME_WORDS, Case
from experiments.coherence.clues import DRAMATICALLY, HARDLY, MUCH
from testbed.papers.statements import Figure, Holds, Statement

#: the ends of the paper's range of error rates
LOW, HIGH = PERS[0], PERS[-1]
#: very small error rates, those of figure 10's left half, and those below the crossing of figure 12
SMALL, LEFT, BELOW = PERS[:2], PERS[:3], PERS[:4]
#: relative difference of counts that are almost the same, of rates that are equal but for chance, and of goodputs that
#: are similar
ALMOST, CHANCE, SIMILAR = 1.25, 0.25, 0.1
#: a tenth of figure 12's scale: very few timeouts
FEW_TIMEOUTS = 30
#: packets: the window that the path supports
PATH = 10
_OTHERS = tuple(scheme for scheme in SCHEME_WORDS if scheme != "cc")
#: axes of the figures: lowest and highest label, and our words
_AXES = {
    "figure8": (10_000, 80_000, "goodput"),
    "figure9": (0, 6_000, "wireless losses"),
    "figure10": (0, 900, "congestion losses"),
    "figure11": (0, 20, "average window (labels in steps of 2)"),
    "figure12": (0, 350, "timeouts (300 is the highest label left)"),
}
#: why ours does not meet some cases, by statement and pattern of the cases' names
_BRIDGE = "a window halved at the fitted threshold does not cover the 40 ms of a retransmission; DDA's queue does"
_SNOOP = "probably Snoop's timer is no shorter than TCP's, which the fit has made as short as a round trip"
_FEW_DUPACKS = "small windows bring fewer than three dupacks before link ARQ fills the hole"
_FEWER = "timeouts follow the congestion losses, which become fewer"
_DISAGREES: Mapping[str, Mapping[str, str]] = {
    "figure7/cc_timeouts": {
        "*": "a second retransmission of the link takes longer than the fitted timers, of no least RTO"
    },
    "figure8/cc_best": {"figure8/cc/0.1, figure8/dda/0.1": _BRIDGE},
    "figure9/axis": {"figure9/*/0.1": "DDA and CC send 64,000 to 70,000 frames; the axis allows 60,000"},
    "figure11/kept": {"figure11/snoop/0.001, figure11/snoop/0.1": _SNOOP},
    "figure11/drop": {
        "figure11/dda/*": "half as many congestion losses as at PER 0.01 leave DDA's window a little larger"
    },
    "figure12/grow": {
        "figure12/tcp/*": "at the lowest PER congestion losses cost half as many timeouts as there are at the highest"
    },
    "figure12/cc_fewest": {"figure12/cc/0.00?, figure12/ecn/0.00?": "both have one or two in 500 s"},
    "figure12/axis": {"figure12/snoop/0.1": _SNOOP},
    "figure12/constant": {
        "figure12/snoop/*, figure12/snoop/0.05": _SNOOP,
        "figure12/snoop/*, figure12/snoop/0.1": _SNOOP,
        "figure12/dda/*, figure12/dda/0.05": _FEWER,
        "figure12/dda/*, figure12/dda/0.1": _FEWER,
    },
    "figure13/ecn": {
        "figure13/ecn/0.05, *": _FEW_DUPACKS,
        "figure13/ecn/0.1, *": _FEW_DUPACKS,
    },
    "figure14/cc": {"*": "no burst of UDP fills the room from threshold to limit between two packets of TCP"},
}


def statements() -> Iterator[Statement]:
    """Yield all statements, in the paper's order."""
    yield from _positions()
    yield from _traces()
    yield from _goodputs()
    yield from _losses()
    yield from _windows()
    yield from _timeouts()
    yield from _retransmissions()
    yield from _mistakes()
    yield from _conclusion()


def _cells(place: str, schemes: Sequence[str], pers: Sequence[float] = PERS) -> list[Case]:
    return [Case(place, scheme, per) for scheme in schemes for per in pers]


def _pairs(
    place: str, schemes: Sequence[str], rivals: Sequence[str], pers: Sequence[float] = PERS
) -> list[tuple[Case, Case]]:
    """Return cells of schemes beside those of rivals, at the same error rates."""
    return [(Case(place, s, per), Case(place, r, per)) for s in schemes for per in pers for r in rivals]


def _ends(place: str, schemes: Sequence[str]) -> list[tuple[Case, Case]]:
    """Return cells at the lowest and the highest error rate."""
    return [(Case(place, scheme, LOW), Case(place, scheme, HIGH)) for scheme in schemes]


def _said(
    name: str,
    place: str,
    words: str,
    cases: Sequence[Sequence[Case | Figure]],
    holds: Holds | tuple[Holds, ...],
    counter: str = "",
) -> Statement:
    disagrees = _DISAGREES.get(name, {})
    return Statement(
        name=name, place=place, words=words, cases=cases, holds=holds, counter=counter, disagrees=disagrees
    )


def _times(factor: float) -> Callable[[float, float], bool]:
    """Return whether the first is so many times the second, or more."""
    return lambda more, less: more >= factor * less


def _within(factor: float) -> tuple[Holds, Holds]:
    """Return whether neither of two is more than so many times the other."""
    return (lambda one, other: one <= factor * other, lambda one, other: other <= factor * one)


def _axis(place: str) -> Statement:
    low, high, words = _AXES[place]
    return _said(
        f"{place}/axis",
        f"figure {place.removeprefix('figure')}, axis",
        f"{words}: on the axis, {low:,} to {high:,}",
        [(case, Figure(low), Figure(high)) for case in _cells(place, tuple(SCHEME_WORDS))],
        (lambda ours, low, high: ours >= low, lambda ours, low, high: ours <= high),
    )


def _positions() -> Iterator[Statement]:
    yield _said(
        "positions",
        "4.1, paragraph 8",
        f"CC's goodput as first hop and in the middle is similar to that as last hop: within {SIMILAR:.0%}",
        [
            (Case(place, "cc", per), Case("figure8", "cc", per))
            for place in ("first", "middle")
            for per in ELSEWHERE_PERS
        ],
        _within(1 + SIMILAR),
    )


def _traces() -> Iterator[Statement]:
    where = "4.2, paragraph 1 (figure 7)"

    def trace(scheme: str, metric: str) -> Case:
        return Case("figure7", scheme, HIGH, metric)

    yield _said(
        "figure7/reduced",
        where,
        f"windows of TCP and ECN are below the {PATH} packets that the path supports",
        [(trace(scheme, "cwnd"), Figure(PATH)) for scheme in ("tcp", "ecn")],
        lt,
    )
    yield _said(
        "figure7/empty",
        where,
        "the queue of TCP and ECN is almost always empty: below a packet on average",
        [(trace(scheme, "queue"), Figure(1)) for scheme in ("tcp", "ecn")],
        lt,
    )
    yield _said(
        "figure7/increased",
        where,
        f"windows of Snoop and DDA are significantly larger than TCP's: {HARDLY:g} times",
        [(trace(scheme, "cwnd"), trace("tcp", "cwnd")) for scheme in ("snoop", "dda")],
        _times(HARDLY),
    )
    yield _said(
        "figure7/utilised",
        where,
        "Snoop and DDA utilise the bottleneck better than TCP: longer queues",
        [(trace(scheme, "queue"), trace("tcp", "queue")) for scheme in ("snoop", "dda")],
        gt,
    )
    yield _said(
        "figure7/spikes",
        where,
        "Snoop and DDA suffer from timeouts: two in 40 s, or more",
        [(trace(scheme, "cwnd"), Figure(2)) for scheme in ("snoop", "dda")],
        ge,
        counter="timeouts",
    )
    yield _said(
        "figure7/cc_timeouts",
        where,
        "CC avoids timeouts: none in 40 s",
        [(trace("cc", "cwnd"), Figure(0))],
        le,
        counter="timeouts",
    )
    yield _said(
        "figure7/cc_window",
        where,
        f"CC avoids unnecessary reductions of the window: {HARDLY:g} times TCP's",
        [(trace("cc", "cwnd"), trace("tcp", "cwnd"))],
        _times(HARDLY),
    )
    yield _said(
        "figure7/cc_queue",
        where,
        "CC has a high link efficiency: its queue is longer than TCP's and ECN's",
        [(trace("cc", "queue"), trace(scheme, "queue")) for scheme in ("tcp", "ecn")],
        gt,
    )


def _goodputs() -> Iterator[Statement]:
    where = "4.2, paragraph 2 (figure 8)"
    yield _axis("figure8")
    yield _said(
        "figure8/tcp_good",
        where,
        "TCP performs reasonably at very small error rates: half of the scale, 40,000 packets",
        [(case, Figure(40_000)) for case in _cells("figure8", ["tcp"], SMALL)],
        ge,
    )
    yield _said(
        "figure8/falls",
        where,
        f"TCP and ECN degrade quickly: by a factor of {MUCH:g} from PER {LOW:g} to {HIGH:g}",
        _ends("figure8", ["tcp", "ecn"]),
        _times(MUCH),
    )
    yield _said(
        "figure8/ecn_tcp",
        where,
        "ECN performs better than TCP at very small error rates",
        _pairs("figure8", ["ecn"], ["tcp"], SMALL),
        gt,
    )
    yield _said(
        "figure8/dda_keeps",
        where,
        f"DDA does not degrade much: at most by a factor of {HARDLY:g}",
        [(Case("figure8", "dda", LOW), case) for case in _cells("figure8", ["dda"], PERS[1:])],
        lambda first, later: later * HARDLY >= first,
    )
    yield _said(
        "figure8/dda_low",
        where,
        "DDA's goodput at small error rates is low: below ECN's and CC's",
        _pairs("figure8", ["dda"], ["ecn", "cc"], SMALL),
        lt,
    )
    yield _said(
        "figure8/cc_best",
        where,
        "CC has more goodput than each other scheme at all error rates",
        _pairs("figure8", ["cc"], _OTHERS),
        gt,
    )


def _losses() -> Iterator[Statement]:
    where = "4.2, paragraph 4 (figures 9 and 10)"
    yield _axis("figure9")
    yield _said(
        "figure9/share",
        where,
        f"wireless losses are packets transmitted times PER: within {CHANCE:.0%}",
        [(case, Figure(100 * case.per)) for case in _cells("figure9", tuple(SCHEME_WORDS))],
        (lambda rate, per: rate >= (1 - CHANCE) * per, lambda rate, per: rate <= (1 + CHANCE) * per),
        counter="wireless_rate",
    )
    yield _axis("figure10")
    yield _said(
        "figure10/more",
        where,
        f"TCP (left half), Snoop and DDA lose significantly more to congestion than ECN and CC: {HARDLY:g} times",
        [*_pairs("figure10", ["tcp"], ["ecn", "cc"], LEFT), *_pairs("figure10", ["snoop", "dda"], ["ecn", "cc"])],
        _times(HARDLY),
    )
    yield _said(
        "figure10/tcp_falls",
        where,
        f"TCP's congestion losses in the right half are fewer than at PER {LOW:g}: by a factor of {MUCH:g}",
        [(Case("figure10", "tcp", LOW), case) for case in _cells("figure10", ["tcp"], PERS[4:])],
        _times(MUCH),
    )
    yield _said(
        "figure10/seldom",
        where,
        "ECN and CC lose to congestion seldom: below 100, the first label of the axis",
        [(case, Figure(100)) for case in _cells("figure10", ["ecn", "cc"])],
        lt,
    )


def _windows() -> Iterator[Statement]:
    where = "4.2, paragraph 5 (figure 11)"
    yield _axis("figure11")
    yield _said(
        "figure11/falls",
        where,
        "the windows of TCP and ECN fall as the error rate rises",
        [pair for scheme in ("tcp", "ecn") for pair in pairwise(_cells("figure11", [scheme]))],
        gt,
    )
    yield _said(
        "figure11/kept",
        where,
        f"the windows of Snoop, DDA and CC are not affected much: within a factor of {HARDLY:g} of that at PER {LOW:g}",
        [
            (Case("figure11", s, LOW), case)
            for s in ("snoop", "dda", "cc")
            for case in _cells("figure11", [s], PERS[1:])
        ],
        _within(HARDLY),
    )
    yield _said(
        "figure11/drop",
        where,
        f"their windows drop slightly in the right upper corner: lower at PER {HIGH:g} than at 0.01",
        [(Case("figure11", scheme, HIGH), Case("figure11", scheme, 0.01)) for scheme in ("snoop", "dda", "cc")],
        lt,
    )


def _timeouts() -> Iterator[Statement]:
    where = "4.2, paragraph 6 (figure 12)"
    yield _axis("figure12")
    yield _said(
        "figure12/most",
        where,
        "TCP, Snoop and DDA have more timeouts than ECN and CC at small error rates",
        _pairs("figure12", ["tcp", "snoop", "dda"], ["ecn", "cc"], SMALL),
        gt,
    )
    yield _said(
        "figure12/few",
        where,
        f"ECN and CC have very few timeouts at small error rates: {FEW_TIMEOUTS} at most",
        [(case, Figure(FEW_TIMEOUTS)) for case in _cells("figure12", ["ecn", "cc"], SMALL)],
        le,
    )
    yield _said(
        "figure12/grow",
        where,
        f"timeouts of TCP and ECN increase dramatically: {DRAMATICALLY:g} times from PER {LOW:g} to {HIGH:g}",
        _ends("figure12", ["tcp", "ecn"]),
        lambda first, last: last > 0 and last >= DRAMATICALLY * first,
    )
    yield _said(
        "figure12/tcp_ecn",
        where,
        "TCP has more timeouts than ECN below PER 0.014",
        _pairs("figure12", ["tcp"], ["ecn"], BELOW),
        gt,
    )
    yield _said(
        "figure12/alike",
        where,
        f"TCP's timeouts are almost ECN's above PER 0.014: within a factor of {ALMOST:g}",
        _pairs("figure12", ["tcp"], ["ecn"], PERS[4:]),
        _within(ALMOST),
    )
    yield _said(
        "figure12/constant",
        where,
        f"timeouts of Snoop and DDA remain constant: within a factor of {HARDLY:g} of those at PER {LOW:g}",
        [(Case("figure12", s, LOW), case) for s in ("snoop", "dda") for case in _cells("figure12", [s], PERS[1:])],
        _within(HARDLY),
    )
    yield _said(
        "figure12/cc_fewest",
        where,
        "CC has fewer timeouts than each other scheme",
        _pairs("figure12", ["cc"], _OTHERS),
        lt,
    )


def _retransmissions() -> Iterator[Statement]:
    where = "4.2, paragraph 7 (figure 13)"
    yield _said(
        "figure13/ecn",
        where,
        "ECN sends all packets again that the air has lost: 0.8 of its wireless losses, or more",
        [(Case("figure13", "ecn", per), Case("figure9", "ecn", per)) for per in PERS],
        _times(0.8),
    )
    yield _said(
        "figure13/cc_fewest",
        where,
        "CC has the fewest end-to-end retransmissions",
        _pairs("figure13", ["cc"], _OTHERS),
        lt,
    )


def _mistakes() -> Iterator[Statement]:
    where = "4.2, paragraph 8 (figure 14)"
    yield _said(
        "figure14/number",
        where,
        f"ECN makes almost as many mistakes as TCP, all their wireless losses: within a factor of {ALMOST:g}",
        _pairs("figure9", ["ecn"], ["tcp"]),
        _within(ALMOST),
    )
    yield _said(
        "figure14/ecn",
        where,
        f"ECN's mistake rate is much higher than TCP's in the left half: {HARDLY:g} times",
        _pairs("figure14", ["ecn"], ["tcp"], LEFT),
        _times(HARDLY),
    )
    dda = list(pairwise(_cells("figure14", ["dda"])))
    yield _said("figure14/dda", where, "DDA's mistake rate falls as the error rate rises", dda, gt)
    snoop = [(case, Figure(0)) for case in _cells("figure14", ["snoop"])]
    yield _said("figure14/snoop", where, "Snoop's mistake rate is zero", snoop, le)
    yield _said(
        "figure14/cc",
        where,
        "CC's mistake rate is from 0.06 to 1.2 %",
        [(case, Figure(0.06), Figure(1.2)) for case in _cells("figure14", ["cc"])],
        (lambda ours, low, high: ours >= low, lambda ours, low, high: ours <= high),
    )
    yield _said(
        "figure14/cc_least",
        where,
        f"CC's mistake rate is very small beside those of TCP, ECN and DDA: by a factor of {DRAMATICALLY:g}",
        _pairs("figure14", ["tcp", "ecn", "dda"], ["cc"]),
        _times(DRAMATICALLY),
    )


def _conclusion() -> Iterator[Statement]:
    where = "4.2, paragraph 9, and 5"
    yield _said(
        "conclusion/congestion",
        where,
        f"CC avoids the majority of congestion losses that Snoop and DDA have: by a factor of {MUCH:g}",
        _pairs("figure10", ["snoop", "dda"], ["cc"]),
        _times(MUCH),
    )
    for place, words in (("figure13", "end-to-end retransmissions"), ("figure12", "timeouts")):
        yield _said(
            f"conclusion/{place}",
            where,
            f"CC eliminates the majority of {words} that transmission errors cause: by {MUCH:g} at PER {HIGH:g}",
            [(Case(place, "ecn", HIGH), Case(place, "cc", HIGH))],
            lambda theirs, ours: theirs > 0 and theirs >= MUCH * ours,
        )
    yield _said(
        "conclusion/figure11",
        where,
        f"CC eliminates the majority of unnecessary window reductions: {HARDLY:g} times ECN's window at PER {HIGH:g}",
        [(Case("figure11", "cc", HIGH), Case("figure11", "ecn", HIGH))],
        _times(HARDLY),
    )
