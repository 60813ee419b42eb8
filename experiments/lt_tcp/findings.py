"""The statements of LT-TCP's abstract and its sections 4 and 5, and our own goals.

Rules kept
- A scheme collapses at a PER where LT-TCP has four times its goodput or more.
- LT-TCP is `lt-tcp-2005`, as the paper has it. Statements of `lt-tcp` are ours.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from operator import ge, gt, le, lt
from typing import Final

from experiments.lt_tcp import parameters
from experiments.lt_tcp.cells import OURS, PERS_PCT, Case
from testbed.papers.results import Cell
from testbed.papers.statements import Figure, Statement, near

#: times a scheme's goodput: LT-TCP's, where that scheme has collapsed
COLLAPSED = 4
_PAPERS: Final = "lt-tcp-2005"
_LOSSY: Final = PERS_PCT[1:]
_ROBUST: Final = (
    "the paper says that timeouts cause its collapse, and not which; ours has a tenth of them, since any FEC segment "
    "repairs a lost retransmission"
)
_FEW: Final = (
    "few packets in 1000 s, after timers of 6, 12, 24 s and so on; ours begins with a SYN, and the paper's throughput "
    "at 50 % is that of data alone: eight timeouts of ten flows, 1040 octets each"
)
_SHORT: Final = "ours waits less (65 timeouts where the paper has 52), and the paper rounds to 0.01"
_OVERHEAD: Final = "ours sends an eighth of the paper's reactive FEC, whose bins are not in the text"
_HARD: Final[dict[str, str]] = {
    "*/lt-tcp-2005/30": _OVERHEAD,
    **{f"*/lt-tcp-2005/{per}": _ROBUST for per in (40, 50)},
    **{f"*/ll-hybrid/{per}": _FEW for per in (30, 40, 50)},
}
_MORE: Final = "it sends three times as much as SACK, and loses as large a share of its retransmissions"


def _goodput(scheme: str, per_pct: int) -> Case:
    return Case("goodput", scheme, per_pct)


def statements(cells: Sequence[Cell]) -> Iterator[Statement]:
    """Yield all statements."""
    known = {cell.case: cell.paper.median for cell in cells if cell.paper.known}
    yield from _against_others({case: figure for case, figure in known.items() if case.metric == "goodput"})
    yield from _by_per()
    yield from _components()
    yield from _near(cells)
    yield from _ours()


def _against_others(goodputs: Mapping[Case, float]) -> Iterator[Statement]:
    yield Statement(
        name="more_than_sack",
        place="section 4.A, paragraph 2",
        words="LT-TCP has more goodput than SACK at all PERs but 0",
        cases=[(_goodput(_PAPERS, per), _goodput("sack", per)) for per in _LOSSY],
        holds=gt,
    )
    yield Statement(
        name="five_times",
        place="section 5, paragraph 4",
        words="at 10 % LT-TCP has five times SACK's goodput (4.88 by tables II and III)",
        cases=[(_goodput(_PAPERS, 10), _goodput("sack", 10))],
        holds=lambda ours, sack: ours >= 4.88 * sack,
    )
    yield Statement(
        name="more_than_links",
        place="figure 5, section 4.C",
        words="LT-TCP has more goodput than link FEC, and beyond 10 % than the hybrid link",
        cases=[
            *((_goodput(_PAPERS, per), _goodput("ll-fec", per)) for per in _LOSSY),
            *((_goodput(_PAPERS, per), _goodput("ll-hybrid", per)) for per in _LOSSY if per > 10),
        ],
        holds=gt,
    )
    yield Statement(
        name="hybrid_best_at_10",
        place="figure 5",
        words="up to 10 % the hybrid link does better than LT-TCP",
        cases=[(_goodput("ll-hybrid", 10), _goodput(_PAPERS, 10))],
        holds=gt,
    )
    best = {case: _goodput(_PAPERS, case.per_pct) for case in goodputs}
    yield Statement(
        name="collapse",
        place="tables II to V",
        words="the other schemes collapse where they do in the paper",
        cases=[(case, best[case]) for case in goodputs if COLLAPSED * goodputs[case] <= goodputs[best[case]]],
        holds=lambda ours, best: COLLAPSED * ours <= best,
    )
    yield Statement(
        name="timeouts_at_10",
        place="section 4.C and figure 9",
        words="at 10 % LT-TCP and the hybrid link have fewer timeouts than SACK, and link FEC more than LT-TCP",
        cases=[
            *((Case("timeouts", scheme, 10), Case("timeouts", "sack", 10)) for scheme in (_PAPERS, "ll-hybrid")),
            (Case("timeouts", _PAPERS, 10), Case("timeouts", "ll-fec", 10)),
        ],
        holds=lt,
    )
    yield Statement(
        name="utilised",
        place="section 4.A, figure 3",
        words="at 20 % LT-TCP fills the bottleneck (9 Mbps, table III)",
        cases=[(Case("throughput", _PAPERS, 20), Figure(9.0))],
        holds=ge,
    )


def _by_per() -> Iterator[Statement]:
    for scheme in ("sack", _PAPERS):
        yield Statement(
            name=f"falls/{scheme}",
            place="tables II and III",
            words=f"{scheme}'s goodput falls with the PER",
            cases=[(_goodput(scheme, less), _goodput(scheme, more)) for less, more in pairwise(PERS_PCT)],
            holds=gt,
        )
    yield Statement(
        name="sack/drops",
        place="section 4.A, paragraph 2",
        words="SACK's goodput drops quickly at 10 % and higher: to a fifth or less at each step to 30 %",
        cases=[(_goodput("sack", less), _goodput("sack", more)) for less, more in ((0, 10), (10, 20), (20, 30))],
        holds=lambda less, more: 5 * more <= 1.25 * less,
    )
    yield Statement(
        name="sack/fewer_timeouts",
        place="table II, caption",
        words="from 20 % on SACK has fewer timeouts at higher PERs, each of them longer",
        cases=[(Case("timeouts", "sack", less), Case("timeouts", "sack", more)) for less, more in pairwise(_LOSSY[1:])],
        holds=gt,
    )
    yield Statement(
        name="lt-tcp/collapse",
        place="table III, caption; section 5, last paragraph",
        words="beyond 30 % LT-TCP's goodput drops off: below half at 40 %, and again at 50 %",
        cases=[(_goodput(_PAPERS, less), _goodput(_PAPERS, more)) for less, more in ((30, 40), (40, 50))],
        holds=lambda less, more: 2 * more < less,
        disagrees={"*": _ROBUST},
    )
    yield Statement(
        name="lt-tcp/more_timeouts",
        place="section 4.A, paragraph 2",
        words="at 40 % and higher LT-TCP's timeouts go up",
        cases=[
            (Case("timeouts", _PAPERS, less), Case("timeouts", _PAPERS, more)) for less, more in ((30, 40), (40, 50))
        ],
        holds=lt,
    )
    yield Statement(
        name="lt-tcp/no_losses",
        place="section 5, paragraph 3; table III",
        words="without losses LT-TCP's overhead is negligible: 2 % of its segments at most",
        cases=[(Case("proactive", _PAPERS, 0), Figure(2.0))],
        holds=le,
    )


def _components() -> Iterator[Statement]:
    per = parameters.COMPONENTS_PER_PCT
    for metric, words, holds in (("goodput", "more goodput", gt), ("timeouts", "no more timeouts", le)):
        yield Statement(
            name=f"components/{metric}",
            place="section 4.B, figure 4",
            words=f"component study: each part gives {words}",
            cases=[(Case(metric, scheme, per), Case(metric, base, per)) for scheme, base in parameters.ADDS_TO.items()],
            holds=holds,
            disagrees=_UNMET.get(f"components/{metric}", {}),
        )


def _near(cells: Sequence[Cell]) -> Iterator[Statement]:
    for metric in ("goodput", "throughput", "timeouts", "proactive", "reactive"):
        part = [cell for cell in cells if cell.case.metric == metric]
        yield near(
            f"near/{metric}",
            "tables II to V",
            f"{metric} within 25 % of the paper's",
            part,
            disagrees=_UNMET.get(f"near/{metric}", {}),
        )


def _ours() -> Iterator[Statement]:
    yield Statement(
        name="improved",
        place="ours, not the paper's",
        words="our LT-TCP has more goodput than the paper's",
        cases=[(_goodput(OURS, per), _goodput(_PAPERS, per)) for per in _LOSSY],
        holds=gt,
    )
    goals = ", ".join(f"{goal:.1f} at {per} %" for per, goal in parameters.GOALS.items())
    yield Statement(
        name="goal",
        place="ours, not the paper's",
        words=f"our LT-TCP's goodput: our goal, in Mbps {goals}, or more",
        cases=[(_goodput(OURS, per), Figure(goal)) for per, goal in parameters.GOALS.items()],
        holds=ge,
    )


#: by statement: reasons by case
_UNMET: Final[Mapping[str, Mapping[str, str]]] = {
    "components/goodput": {"*lt-tcp-2005/10, *": "reactive FEC takes half a percent where proactive FEC suffices"},
    "components/timeouts": {"*lt-ecn-2005/10, *": _MORE, "*lt-mss-2005/10, *": _MORE},
    "near/goodput": _HARD | {"*/sack/40": _SHORT},
    "near/throughput": _HARD | {"*/sack/40": _SHORT, "*/ll-fec/40": "the paper's throughput is its goodput there"},
    "near/timeouts": _HARD | {"*/sack/*": _SHORT, "*/lt-tcp-2005/*": _ROBUST},
    "near/reactive": {"*": _OVERHEAD},
    "near/proactive": {"*/0": "half of the paper's: its bins are not in the text"},
}
