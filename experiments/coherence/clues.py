"""The clues: all that COHERENCE's text tells about the size and the shape of its curves, and how well runs fit them.

The paper's plots are lost, but the labels on their axes are in the text. gnuplot, whose lines these plots have, ends an
axis at the tick beyond the data, so the last label bounds the largest value (`scale`); a step of 2 is its choice for
data that spans 10 to 20.

Rules kept
- No clue compares congestion coherence with another scheme, and none compares goodputs of two schemes: the fit cannot
  know who wins. Clues are of one scheme, of the largest or smallest of all, or of TCP and ECN, the two baselines.
- All clues weigh the same. One is fitted if its value lies between its bounds; a value beside them earns less, down to
  nothing at half of the lower or twice the upper one.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

#: the error rates at which the clues are taken
LOW, MIDDLE, HIGH = CLUE_PERS = (0.001, 0.01, 0.1)
#: counters of runs by scheme and error rate, as of 500 s; `goodput` among them
Observed = Mapping[tuple[str, float], Mapping[str, float]]


class Clue(NamedTuple):
    """A value that runs have, between bounds that the text gives."""

    name: str
    #: section, paragraph or figure of the paper
    place: str
    words: str
    low: float
    high: float
    value: Callable[[Observed], float]

    def credit(self, seen: Observed) -> float:
        """Return 1 for a value between the bounds, and less beside them."""
        return credit(self.value(seen), self.low, self.high)


def credit(value: float, low: float, high: float) -> float:
    """Return 1 between the bounds, else 1 less the distance to the nearer one in powers of two, at least 0."""
    if low <= value <= high:
        return 1.0
    bound = low if value < low else high
    if value <= 0 or bound <= 0 or math.isinf(value):
        return 0.0
    return max(0.0, 1 - abs(math.log2(value / bound)))


def fit(seen: Observed) -> float:
    """Return the mean credit of all clues: 1 where all of them are fitted."""
    return sum(clue.credit(seen) for clue in CLUES) / len(CLUES)


def _most(counter: str) -> Callable[[Observed], float]:
    return lambda seen: max(counts[counter] for counts in seen.values())


def _least(counter: str) -> Callable[[Observed], float]:
    return lambda seen: min(counts[counter] for counts in seen.values())


def _of(scheme: str, per: float, counter: str) -> Callable[[Observed], float]:
    return lambda seen: seen[scheme, per][counter]


def _ratio(above: tuple[str, float], below: tuple[str, float], counter: str) -> Callable[[Observed], float]:
    """Return one value over another; with nothing below, infinite, or 1 with nothing above either."""

    def value(seen: Observed) -> float:
        return _divided(seen[above][counter], seen[below][counter])

    return value


def _spread(schemes: Sequence[str], counter: str) -> Callable[[Observed], float]:
    """Return the largest over the smallest value of a scheme at all error rates; of several schemes the largest."""

    def value(seen: Observed) -> float:
        ratios = []
        for scheme in schemes:
            values = [seen[scheme, per][counter] for per in CLUE_PERS]
            ratios.append(_divided(max(values), min(values)))
        return max(ratios)

    return value


def _divided(above: float, below: float) -> float:
    if below:
        return above / below
    return math.inf if above else 1.0


def _dda_falls(seen: Observed) -> float:
    rates = [seen["dda", per]["mistake_rate"] for per in CLUE_PERS]
    return sum(higher > lower for higher, lower in pairwise(rates))


def _mistakes(end: Callable[[list[float]], float]) -> Callable[[Observed], float]:
    return lambda seen: end([seen["cc", per]["mistake_rate"] for per in CLUE_PERS])


#: values that "much", "dramatically" and "not much" stand for
MUCH, DRAMATICALLY, HARDLY = 2.0, 3.0, 1.5

CLUES: Final = (
    Clue(
        "goodput_scale",
        "figure 8, axis",
        "the largest goodput: labels every 10,000 up to 80,000",
        70_000,
        80_000,
        _most("goodput"),
    ),
    Clue(
        "goodput_floor",
        "figure 8, axis",
        "the smallest goodput: the axis starts at 10,000",
        10_000,
        20_000,
        _least("goodput"),
    ),
    Clue(
        "wireless_scale",
        "figure 9, axis",
        "the most wireless losses: labels every 1,000 up to 6,000",
        5_000,
        6_000,
        _most("wireless_losses"),
    ),
    Clue(
        "congestion_scale",
        "figure 10, axis",
        "the most congestion losses: labels every 100 up to 900",
        800,
        900,
        _most("congestion_losses"),
    ),
    Clue(
        "window_scale",
        "figure 11, axis",
        "the largest average window: labels every 2 packets from 0",
        10,
        20,
        _most("mean_cwnd"),
    ),
    Clue(
        "timeout_scale",
        "figure 12, axis",
        "the most timeouts: 300 is the highest label left, the next would be 350",
        250,
        350,
        _most("timeouts"),
    ),
    Clue(
        "queue_empty",
        "4.2, paragraph 1",
        "TCP's and ECN's queue at the highest PER is almost always empty: mean, packets",
        0,
        1,
        lambda seen: max(seen[scheme, HIGH]["mean_queue"] for scheme in ("tcp", "ecn")),
    ),
    Clue(
        "tcp_good",
        "4.2, paragraph 2",
        "TCP's goodput is reasonable at the lowest PER: half of the scale at least",
        40_000,
        80_000,
        _of("tcp", LOW, "goodput"),
    ),
    Clue(
        "tcp_degrades",
        "4.2, paragraph 2",
        "TCP's goodput, lowest over highest PER, degrades quickly",
        MUCH,
        math.inf,
        _ratio(("tcp", LOW), ("tcp", HIGH), "goodput"),
    ),
    Clue(
        "ecn_degrades",
        "4.2, paragraph 2",
        "ECN's goodput, lowest over highest PER, degrades quickly",
        MUCH,
        math.inf,
        _ratio(("ecn", LOW), ("ecn", HIGH), "goodput"),
    ),
    Clue(
        "dda_keeps",
        "4.2, paragraph 2",
        "DDA's goodput, largest over smallest, does not degrade much",
        1,
        HARDLY,
        _spread(["dda"], "goodput"),
    ),
    Clue(
        "tcp_losses_fall",
        "4.2, figure 10",
        "TCP's congestion losses, lowest over highest PER: fewer in the right half",
        MUCH,
        math.inf,
        _ratio(("tcp", LOW), ("tcp", HIGH), "congestion_losses"),
    ),
    Clue(
        "ecn_losses",
        "4.2, figure 10",
        "TCP's congestion losses over ECN's at the lowest PER: significantly more",
        MUCH,
        math.inf,
        _ratio(("tcp", LOW), ("ecn", LOW), "congestion_losses"),
    ),
    Clue(
        "windows_fall",
        "4.2, figure 11",
        "TCP's and ECN's window, lowest over highest PER: reduced by wireless losses",
        MUCH,
        math.inf,
        lambda seen: min(_divided(seen[s, LOW]["mean_cwnd"], seen[s, HIGH]["mean_cwnd"]) for s in ("tcp", "ecn")),
    ),
    Clue(
        "windows_kept",
        "4.2, figure 11",
        "windows of Snoop, DDA and CC, each its largest over its smallest: not affected much",
        1,
        HARDLY,
        _spread(["snoop", "dda", "cc"], "mean_cwnd"),
    ),
    Clue(
        "tcp_timeouts",
        "4.2, figure 12",
        "TCP's timeouts, highest over lowest PER, increase dramatically",
        DRAMATICALLY,
        math.inf,
        _ratio(("tcp", HIGH), ("tcp", LOW), "timeouts"),
    ),
    Clue(
        "ecn_timeouts",
        "4.2, figure 12",
        "ECN's timeouts, highest over lowest PER, increase dramatically",
        DRAMATICALLY,
        math.inf,
        _ratio(("ecn", HIGH), ("ecn", LOW), "timeouts"),
    ),
    Clue(
        "few_timeouts",
        "4.2, figure 12",
        "timeouts of ECN and of CC at the lowest PER: very few, a tenth of the scale at most",
        0,
        30,
        lambda seen: max(seen[scheme, LOW]["timeouts"] for scheme in ("ecn", "cc")),
    ),
    Clue(
        "timeouts_constant",
        "4.2, figure 12",
        "timeouts of Snoop and of DDA, each its most over its least: constant",
        1,
        HARDLY,
        _spread(["snoop", "dda"], "timeouts"),
    ),
    Clue(
        "timeouts_meet",
        "4.2, figure 12",
        "TCP's timeouts over ECN's at PER 0.01, just below 0.014 where they meet",
        1,
        HARDLY,
        _ratio(("tcp", MIDDLE), ("ecn", MIDDLE), "timeouts"),
    ),
    Clue(
        "alike",
        "4.2, figure 12",
        "TCP's timeouts over ECN's at the highest PER: TCP behaves almost like ECN",
        0.8,
        1.25,
        _ratio(("tcp", HIGH), ("ecn", HIGH), "timeouts"),
    ),
    Clue(
        "all_sent_again",
        "4.2, figure 13",
        "ECN's retransmissions over its wireless losses at PER 0.01: all are sent again end to end",
        0.8,
        2,
        lambda seen: _divided(seen["ecn", MIDDLE]["retransmissions"], seen["ecn", MIDDLE]["wireless_losses"]),
    ),
    Clue(
        "mistakes_alike",
        "4.2, figure 14",
        "mistakes of ECN over those of TCP, their wireless losses, at PER 0.01: almost the same",
        0.8,
        1.25,
        _ratio(("ecn", MIDDLE), ("tcp", MIDDLE), "wireless_losses"),
    ),
    Clue(
        "ecn_mistakes",
        "4.2, figure 14",
        "ECN's mistake rate over TCP's at the lowest PER: much higher",
        MUCH,
        math.inf,
        _ratio(("ecn", LOW), ("tcp", LOW), "mistake_rate"),
    ),
    Clue(
        "dda_mistakes",
        "4.2, figure 14",
        "DDA's mistake rate falls from each of three error rates to the next",
        2,
        2,
        _dda_falls,
    ),
    Clue(
        "snoop_mistakes",
        "4.2, figure 14",
        "Snoop's mistake rate is zero: the largest, %",
        0,
        0.05,
        lambda seen: max(seen["snoop", per]["mistake_rate"] for per in CLUE_PERS),
    ),
    Clue(
        "cc_mistakes_most",
        "4.2, figure 14",
        "CC's largest mistake rate, %: 1.2",
        0.6,
        1.8,
        _mistakes(max),
    ),
    Clue(
        "cc_mistakes_least",
        "4.2, figure 14",
        "CC's smallest mistake rate, %: 0.06",
        0.03,
        0.12,
        _mistakes(min),
    ),
)
