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


_faster, _slower, _fewer, _more = lt, gt, lt, gt


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

#: why ours disagrees; docs/papers/slowlink.md has the figures
_REPAIRS = "NewReno repairs a hole per round trip for 70 s, but new data keeps the link busy meanwhile"
_FIRST = "the first 20 KB differ by 6 % in the overshoot, all 100 KB by 1 %"
_LONG_QUEUE = "a queue of 5 s makes most timeouts longer than the hold of 4 s, so the overshoot decides"
_BUSY = "four flows keep the link busy: 196 s of 204, so the last flow's end has 4 % to vary, and luck decides"
_ACKS = "not found: both have about as many timeouts"
_NO_BURSTS = "not found: at 20 packets it loses no more than SACK alone (40 a run), and limited transmit 50"
_FITS = "four initial windows fit into the queue of 20 packets"
_SHARES = "not found: four packets a run are lost, each with a timeout"


#: all of them
STATEMENTS: Sequence[Statement] = (
    Statement(
        name="one/sack_first",
        place="results, paragraph 3, and table 1",
        words="one flow: SACK clearly faster (5 %) than NewReno over the first 20 KB",
        cases=_ONE("steady", ["first"], ["sack"], ["newreno"]),
        holds=_clearly_faster,
    ),
    Statement(
        name="one/sack_whole",
        place="results, paragraph 3, and table 1",
        words="one flow: SACK faster than NewReno over all 100 KB",
        cases=_ONE("steady", ["whole"], ["sack"], ["newreno"]),
        holds=_faster,
    ),
    Statement(
        name="one/sack_whole_clearly",
        place="results, paragraph 3, and table 1",
        words="one flow: SACK clearly faster (5 %) than NewReno over all 100 KB",
        cases=_ONE("steady", ["whole"], ["sack"], ["newreno"]),
        holds=_clearly_faster,
        disagrees={"*": _REPAIRS},
    ),
    Statement(
        name="one/window_best",
        place="results, paragraph 3, and table 1",
        words="one flow: no other variant beats the well-set window (by more than 1 %)",
        cases=_ONE("steady", _BOTH, ["window"], _PAPERS),
        holds=_not_beaten,
    ),
    Statement(
        name="one/little",
        place="results, paragraph 3, and table 1",
        words="one flow: limited transmit and IW 4 are within 5 % of NewReno",
        cases=_ONE("steady", _BOTH, ["lt", "iw4"], ["newreno"]),
        holds=_alike,
        disagrees={"one/20/steady/*/first, *": _FIRST},
    ),
    Statement(
        name="one/delays_sack_lt",
        place="results, paragraph 4, and table 1",
        words="one flow, excessive delays: SACK + limited transmit faster than NewReno, either alone, and IW 4",
        cases=_ONE("delays", ["whole"], ["sack-lt"], ["newreno", "sack", "lt", "iw4"]),
        holds=_faster,
        disagrees={"one/20/*": _LONG_QUEUE},
    ),
    Statement(
        name="one/delays_sack_lt_window",
        place="results, paragraph 4, and table 1",
        words="one flow, excessive delays: SACK + limited transmit faster than the well-set window",
        cases=_ONE("delays", ["whole"], ["sack-lt"], ["window"]),
        holds=_faster,
        disagrees={"one/20/*": _LONG_QUEUE},
    ),
    Statement(
        name="four/sack",
        place="results, paragraph 7, and table 2",
        words="four flows: SACK's slowest faster than NewReno's",
        cases=_FOUR(["slowest"], ["sack"], ["newreno"]),
        holds=_faster,
        disagrees={"four/7/*": _BUSY},
    ),
    Statement(
        name="four/lt",
        place="results, paragraph 7, and table 2",
        words="four flows: limited transmit's slowest faster than NewReno's",
        cases=_FOUR(["slowest"], ["lt"], ["newreno"]),
        holds=_faster,
        disagrees={"four/7/*": _BUSY},
    ),
    Statement(
        name="four/lt_timeouts",
        place="results, paragraph 7",
        words="four flows: limited transmit has fewer timeouts than NewReno",
        cases=_FOUR(["slowest"], ["lt"], ["newreno"]),
        holds=_fewer,
        counter="tcp_timeouts",
        disagrees={"*": _ACKS},
    ),
    Statement(
        name="four/sack_lt",
        place="results, paragraph 8, and table 2",
        words="four flows: SACK + limited transmit's slowest slower than that of either",
        cases=_FOUR(["slowest"], ["sack-lt"], ["sack", "lt"]),
        holds=_slower,
        disagrees={"*": _BUSY},
    ),
    Statement(
        name="four/sack_lt_losses",
        place="results, paragraph 8",
        words="four flows: SACK + limited transmit loses more packets in the queue than either",
        cases=_FOUR(["slowest"], ["sack-lt"], ["sack", "lt"]),
        holds=_more,
        counter="congestion_losses",
        disagrees={"four/20/steady/sack-lt/slowest, */lt/slowest": _NO_BURSTS},
    ),
    Statement(
        name="four/sack_lt_timeouts",
        place="results, paragraph 8",
        words="four flows: SACK + limited transmit has more timeouts than either",
        cases=_FOUR(["slowest"], ["sack-lt"], ["sack", "lt"]),
        holds=_more,
        counter="tcp_timeouts",
        disagrees={"four/20/*": _NO_BURSTS},
    ),
    Statement(
        name="four/fack_lt",
        place="results, paragraph 8, and table 2",
        words="four flows: the same with FACK, as the paper's SACK was",
        cases=_FOUR(["slowest"], ["fack-lt"], ["fack", "lt"]),
        holds=_slower,
        disagrees={"*/lt/slowest": _BUSY, "four/7/*": _BUSY},
    ),
    Statement(
        name="four/iw4",
        place="results, paragraph 9, and conclusions",
        words="four flows: IW 4's slowest slower than NewReno's",
        cases=_FOUR(["slowest"], ["iw4"], ["newreno"]),
        holds=_slower,
        disagrees={"four/7/*": _BUSY},
    ),
    Statement(
        name="four/iw4_losses",
        place="conclusions, paragraph 2",
        words="four flows: IW 4 loses more packets in the queue than NewReno",
        cases=_FOUR(["slowest"], ["iw4"], ["newreno"]),
        holds=_more,
        counter="congestion_losses",
        disagrees={"four/20/*": _FITS},
    ),
    Statement(
        name="four/iw4_lock_out",
        place="results, paragraph 9",
        words="four flows: with IW 4 the last flow to get its first 1 KB across waits longer than with NewReno",
        cases=_FOUR(["start"], ["iw4"], ["newreno"]),
        holds=_slower,
        disagrees={"four/20/*": _FITS},
    ),
    Statement(
        name="four/window_best",
        place="results, paragraph 10, and table 2",
        words="four flows: the well-set window's slowest faster than that of all without a window",
        cases=_FOUR(["slowest"], ["window"], _UNLIMITED),
        holds=_faster,
    ),
    Statement(
        name="four/window_fairest",
        place="results, paragraph 10, and table 2",
        words="four flows: the well-set window has less than half the spread (slowest - fastest) of all without one",
        cases=[
            (pair[0], pair[0]._replace(metric="fastest"), pair[1], pair[1]._replace(metric="fastest"))
            for pair in _FOUR(["slowest"], ["window"], _UNLIMITED)
        ],
        holds=_half_spread,
    ),
    Statement(
        name="four/window_misset",
        place="results, paragraph 10, and table 2",
        words="four flows, 7 packets: a window set for 20 makes the slowest slower than no limit",
        cases=_FOUR(["slowest"], ["window-misset"], ["newreno"], "7"),
        holds=_slower,
    ),
    Statement(
        name="one/window_misset",
        place="results, paragraph 10",
        words="one flow, excessive delays, 20 packets: a window set for 7 is slower than the well-set one and none",
        cases=_ONE("delays", ["whole"], ["window-misset"], ["window", "newreno"], "20"),
        holds=_slower,
    ),
    Statement(
        name="window/no_losses",
        place="results, paragraphs 3 and 10",
        words="the well-set window loses no packet in the queue",
        cases=[
            (Case(place, queue, "steady", "window", metric), Figure(0))
            for place, metric in (("one", "whole"), ("four", "slowest"))
            for queue in QUEUES
        ],
        holds=eq,
        counter="congestion_losses",
        disagrees={"four/7/*": _SHARES},
    ),
)
