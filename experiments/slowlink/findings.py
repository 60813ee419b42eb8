"""The statements of SLOWLINK's text.

Rule kept: times are those of the same seeds, so a difference is one of the variants. `CLEAR` is a clear difference,
less than `LITTLE` is none.
"""

from collections.abc import Sequence
from functools import partial
from operator import eq, gt, lt

from experiments.slowlink.cells import Case
from experiments.slowlink.parameters import QUEUES, VARIANTS
from testbed.papers.statements import Figure, Statement

CLEAR = LITTLE = 0.05
#: less than this is a tie between the best ones
TIE = 0.01


_faster, _slower, _more = lt, gt, gt


def _clearly_faster(ours: float, rivals: float) -> bool:
    return ours < rivals * (1 - CLEAR)


def _half_spread(slowest: float, fastest: float, rivals_slowest: float, rivals_fastest: float) -> bool:
    return slowest - fastest < (rivals_slowest - rivals_fastest) / 2


def _alike(ours: float, rivals: float) -> bool:
    return abs(ours - rivals) <= LITTLE * rivals


def _not_beaten(ours: float, rivals: float) -> bool:
    return ours <= rivals * (1 + TIE)


def _pairs(
    place: str, delays: str, metrics: Sequence[str], variants: Sequence[str], rivals: Sequence[str], *queues: str
) -> list[tuple[Case, Case]]:
    return [
        (Case(place, queue, delays, variant, metric), Case(place, queue, delays, rival, metric))
        for queue in queues or QUEUES
        for metric in metrics
        for variant in variants
        for rival in rivals
        if variant != rival
    ]


#: those that the paper compares
_PAPERS = tuple(name for name in VARIANTS if "fack" not in name)
#: and those without any window
_UNLIMITED = tuple(name for name in _PAPERS if VARIANTS[name].window == "none")
_ONE, _FOUR, _BOTH = partial(_pairs, "one"), partial(_pairs, "four", "steady"), ("whole", "first")

#: all of them
STATEMENTS: Sequence[Statement] = (
    Statement(
        name="one/sack_first",
        place="text",
        words="one flow: SACK clearly faster (5 %) than NewReno over the first 20 KB",
        cases=_ONE("steady", ["first"], ["sack"], ["newreno"]),
        holds=_clearly_faster,
    ),
    Statement(
        name="one/sack_whole",
        place="text",
        words="one flow: SACK faster than NewReno over all 100 KB",
        cases=_ONE("steady", ["whole"], ["sack"], ["newreno"]),
        holds=_faster,
    ),
    Statement(
        name="one/sack_whole_clearly",
        place="text",
        words="one flow: SACK clearly faster (5 %) than NewReno over all 100 KB",
        cases=_ONE("steady", ["whole"], ["sack"], ["newreno"]),
        holds=_clearly_faster,
    ),
    Statement(
        name="one/window_best",
        place="text",
        words="one flow: no other variant beats the well-set window (by more than 1 %)",
        cases=_ONE("steady", _BOTH, ["window"], _PAPERS),
        holds=_not_beaten,
    ),
    Statement(
        name="one/little",
        place="text",
        words="one flow: limited transmit and IW 4 are within 5 % of NewReno",
        cases=_ONE("steady", _BOTH, ["lt", "iw4"], ["newreno"]),
        holds=_alike,
    ),
    Statement(
        name="one/delays_sack_lt",
        place="text",
        words="one flow, excessive delays: SACK + limited transmit faster than NewReno, either alone, and IW 4",
        cases=_ONE("delays", ["whole"], ["sack-lt"], ["newreno", "sack", "lt", "iw4"]),
        holds=_faster,
    ),
    Statement(
        name="one/delays_sack_lt_window",
        place="text",
        words="one flow, excessive delays: SACK + limited transmit faster than the well-set window",
        cases=_ONE("delays", ["whole"], ["sack-lt"], ["window"]),
        holds=_faster,
    ),
    Statement(
        name="four/sack",
        place="text",
        words="four flows: SACK's slowest faster than NewReno's",
        cases=_FOUR(["slowest"], ["sack"], ["newreno"]),
        holds=_faster,
    ),
    Statement(
        name="four/lt",
        place="text",
        words="four flows: limited transmit's slowest faster than NewReno's",
        cases=_FOUR(["slowest"], ["lt"], ["newreno"]),
        holds=_faster,
    ),
    Statement(
        name="four/sack_lt",
        place="text",
        words="four flows: SACK + limited transmit's slowest slower than that of either",
        cases=_FOUR(["slowest"], ["sack-lt"], ["sack", "lt"]),
        holds=_slower,
    ),
    Statement(
        name="four/sack_lt_losses",
        place="text",
        words="four flows: SACK + limited transmit loses more packets in the queue than either",
        cases=_FOUR(["slowest"], ["sack-lt"], ["sack", "lt"]),
        holds=_more,
        counter="congestion_losses",
    ),
    Statement(
        name="four/fack_lt",
        place="text",
        words="four flows: the same with FACK, as the paper's SACK was",
        cases=_FOUR(["slowest"], ["fack-lt"], ["fack", "lt"]),
        holds=_slower,
    ),
    Statement(
        name="four/iw4",
        place="text",
        words="four flows: IW 4's slowest slower than NewReno's",
        cases=_FOUR(["slowest"], ["iw4"], ["newreno"]),
        holds=_slower,
    ),
    Statement(
        name="four/iw4_lock_out",
        place="text",
        words="four flows: with IW 4 the last flow to get its first 1 KB across waits longer than with NewReno",
        cases=_FOUR(["start"], ["iw4"], ["newreno"]),
        holds=_slower,
    ),
    Statement(
        name="four/window_best",
        place="text",
        words="four flows: the well-set window's slowest faster than that of all without a window",
        cases=_FOUR(["slowest"], ["window"], _UNLIMITED),
        holds=_faster,
    ),
    Statement(
        name="four/window_fairest",
        place="text",
        words="four flows: the well-set window has less than half the spread (slowest - fastest) of all without one",
        cases=[
            (pair[0], pair[0]._replace(metric="fastest"), pair[1], pair[1]._replace(metric="fastest"))
            for pair in _FOUR(["slowest"], ["window"], _UNLIMITED)
        ],
        holds=_half_spread,
    ),
    Statement(
        name="four/window_misset",
        place="text",
        words="four flows, 7 packets: a window set for 20 makes the slowest slower than no limit",
        cases=_FOUR(["slowest"], ["window-misset"], ["newreno"], "7"),
        holds=_slower,
    ),
    Statement(
        name="one/window_misset",
        place="text",
        words="one flow, excessive delays, 20 packets: a window set for 7 is slower than the well-set one and none",
        cases=_ONE("delays", ["whole"], ["window-misset"], ["window", "newreno"], "20"),
        holds=_slower,
    ),
    Statement(
        name="window/no_losses",
        place="text",
        words="the well-set window loses no packet in the queue",
        cases=[
            (Case(place, queue, "steady", "window", metric), Figure(0))
            for place, metric in (("one", "whole"), ("four", "slowest"))
            for queue in QUEUES
        ],
        holds=eq,
        counter="congestion_losses",
    ),
)
