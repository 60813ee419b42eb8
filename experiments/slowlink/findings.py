"""The findings of the paper's text, each on our medians.

Rules kept
- A finding is a statement on pairs of cells; each pair for which it does not hold is named.
- A finding counts only pairs with both cells computed.
- `spread` is the slowest flow's median less the fastest's, `losses` are congestion losses of a run, on average.
- Times are those of the same seeds, so a difference is one of the variants. `CLEAR` is a clear difference, less than
  `LITTLE` is none.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import gt, lt

from experiments.slowlink.cells import Case
from experiments.slowlink.parameters import QUEUES, VARIANTS
from testbed.papers.results import Finding, Results, Tally, tally

CLEAR = LITTLE = 0.05
#: less than this is a tie between the best ones
TIE = 0.01

#: (figure, its rival's) -> whether the statement holds
Holds = Callable[[float, float], bool]


_faster, _slower, _more = lt, gt, gt


def _clearly_faster(ours: float, rivals: float) -> bool:
    return ours < rivals * (1 - CLEAR)


def _half(ours: float, rivals: float) -> bool:
    return ours < rivals / 2


def _alike(ours: float, rivals: float) -> bool:
    return abs(ours - rivals) <= LITTLE * rivals


def _not_beaten(ours: float, rivals: float) -> bool:
    return ours <= rivals * (1 + TIE)


#: (label, whether it holds for the medians of each pair of cells, the pairs)
Statement = tuple[str, Holds, Sequence[tuple[Case, Case]]]


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

#: by the name of the finding
STATEMENTS: Mapping[str, Statement] = {
    "one/sack_first": (
        "one flow: SACK clearly faster (5 %) than NewReno over the first 20 KB",
        _clearly_faster,
        _ONE("steady", ["first"], ["sack"], ["newreno"]),
    ),
    "one/sack_whole": (
        "one flow: SACK faster than NewReno over all 100 KB",
        _faster,
        _ONE("steady", ["whole"], ["sack"], ["newreno"]),
    ),
    "one/sack_whole_clearly": (
        "one flow: SACK clearly faster (5 %) than NewReno over all 100 KB",
        _clearly_faster,
        _ONE("steady", ["whole"], ["sack"], ["newreno"]),
    ),
    "one/window_best": (
        "one flow: no other variant beats the well-set window (by more than 1 %)",
        _not_beaten,
        _ONE("steady", _BOTH, ["window"], _PAPERS),
    ),
    "one/little": (
        "one flow: limited transmit and IW 4 are within 5 % of NewReno",
        _alike,
        _ONE("steady", _BOTH, ["lt", "iw4"], ["newreno"]),
    ),
    "one/delays_sack_lt": (
        "one flow, excessive delays: SACK + limited transmit faster than NewReno, SACK, limited transmit and IW 4",
        _faster,
        _ONE("delays", ["whole"], ["sack-lt"], ["newreno", "sack", "lt", "iw4"]),
    ),
    "one/delays_sack_lt_window": (
        "one flow, excessive delays: SACK + limited transmit faster than the well-set window",
        _faster,
        _ONE("delays", ["whole"], ["sack-lt"], ["window"]),
    ),
    "four/sack": (
        "four flows: SACK's slowest faster than NewReno's",
        _faster,
        _FOUR(["slowest"], ["sack"], ["newreno"]),
    ),
    "four/lt": (
        "four flows: limited transmit's slowest faster than NewReno's",
        _faster,
        _FOUR(["slowest"], ["lt"], ["newreno"]),
    ),
    "four/sack_lt": (
        "four flows: SACK + limited transmit's slowest slower than that of either",
        _slower,
        _FOUR(["slowest"], ["sack-lt"], ["sack", "lt"]),
    ),
    "four/sack_lt_losses": (
        "four flows: SACK + limited transmit loses more packets in the queue than either",
        _more,
        _FOUR(["losses"], ["sack-lt"], ["sack", "lt"]),
    ),
    "four/fack_lt": (
        "four flows: the same with FACK, as the paper's SACK was",
        _slower,
        _FOUR(["slowest"], ["fack-lt"], ["fack", "lt"]),
    ),
    "four/iw4": (
        "four flows: IW 4's slowest slower than NewReno's",
        _slower,
        _FOUR(["slowest"], ["iw4"], ["newreno"]),
    ),
    "four/iw4_lock_out": (
        "four flows: with IW 4 the last flow to get its first 1 KB across waits longer than with NewReno",
        _slower,
        _FOUR(["start"], ["iw4"], ["newreno"]),
    ),
    "four/window_best": (
        "four flows: the well-set window's slowest faster than that of all without a window",
        _faster,
        _FOUR(["slowest"], ["window"], _UNLIMITED),
    ),
    "four/window_fairest": (
        "four flows: the well-set window has less than half the spread, fastest to slowest, of all without a window",
        _half,
        _FOUR(["spread"], ["window"], _UNLIMITED),
    ),
    "four/window_misset": (
        "four flows, 7 packets: a window set for 20 makes the slowest slower than no limit",
        _slower,
        _FOUR(["slowest"], ["window-misset"], ["newreno"], "7"),
    ),
    "one/window_misset": (
        "one flow, excessive delays, 20 packets: a window set for 7 is slower than the well-set one and than no limit",
        _slower,
        _ONE("delays", ["whole"], ["window-misset"], ["window", "newreno"], "20"),
    ),
}


def findings(results: Results) -> list[Finding]:
    """Return the findings of the cells that were computed."""
    return [*_statements(results), *_losses(results)]


def _statements(results: Results) -> Iterator[Tally]:
    cases = results.by_case()

    def figure(case: Case) -> float | None:
        slowest, fastest = (cases.get(case._replace(metric=metric)) for metric in ("slowest", "fastest"))
        if case.metric == "spread":
            return None if slowest is None or fastest is None else slowest.ours.median - fastest.ours.median
        if case.metric == "losses":
            return None if slowest is None else slowest.means().get("congestion_losses")
        return cases[case].ours.median if case in cases else None

    for name, (label, holds, pairs) in STATEMENTS.items():
        checks = [
            (f"{case.name} {ours:.1f}, {rival.variant} {rivals:.1f}", holds(ours, rivals))
            for case, rival in pairs
            if (ours := figure(case)) is not None and (rivals := figure(rival)) is not None
        ]
        yield from tally(name, label, checks)


def _losses(results: Results) -> Iterator[Tally]:
    """The well-set window avoids congestion losses."""
    windows = {
        case.name: result.means().get("congestion_losses", 0.0)
        for case, result in results.by_case().items()
        if (case.variant, case.delays) == ("window", "steady") and case.metric in ("whole", "slowest")
    }
    checks = [(f"{name} {losses:.1f} a run", not losses) for name, losses in windows.items()]
    return tally("window/no_losses", "the well-set window loses no packet in the queue", checks)
