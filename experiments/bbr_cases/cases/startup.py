"""Cases of Startup and of Drain: sections A.1 to A.4."""

from collections.abc import Mapping
from math import inf

from common.units import SECOND
from experiments.bbr_cases.cases.case import New, Number, case, yes
from experiments.bbr_cases.cases.scripting import DRAIN, every
from experiments.bbr_cases.flow import PROBE_BW, Flow, Seen


@case(
    "a01",
    "leaving Startup on a plateau",
    Number(name="bandwidth", step="3", words="max_bw is within 2 % of the path's", low=0.98, high=1.02, unit="share"),
    Number(name="rounds", step="4", words="the third round without 25 % more ends it", low=3, high=3, unit="rounds"),
    yes("drain", "5", "Drain follows, with full_bw_now and full_bw_reached"),
)
def _startup_plateau(new: New) -> Mapping[str, float]:
    flow = new()
    flow.write_all()
    left = flow.leave()
    if left is None:
        return {}
    return {
        "bandwidth": left.max_bw / flow.payload_rate,
        "rounds": left.flat_rounds,
        "drain": left.state is DRAIN and flow.bbr.full_bw_now and flow.bbr.full_bw_reached,
    }


def _passed_drain(flow: Flow, left: Seen) -> bool:
    """Whether Startup was left to Drain, through which an ACK may pass at once."""
    return left.state is DRAIN or (left.state in PROBE_BW and flow.bbr.drain_start_round == left.round_count)


@case(
    "a02",
    "leaving Startup on losses, application-limited",
    yes("drain", "5", "losses end Startup: Drain follows, with full_bw_now and full_bw_reached"),
    yes("limited", "2", "the samples are application-limited all the while"),
    # six ranges within a round trip, of each third segment
    rtt_ms=(40, 100),
)
def _startup_loss(new: New) -> Mapping[str, float]:
    flow = new()
    flow.write_at(0.8 * flow.payload_rate)
    flow.after(12 * flow.rtt_ns / SECOND)
    if flow.seen:
        return {}
    limited = [True]
    flow.looked = lambda: limited.append(flow.bbr._rs.is_app_limited)
    flow.path.drop = every(flow, 3)
    left = flow.leave(10 * flow.rtt_ns / SECOND)
    if left is None:
        return {}
    return {
        "drain": _passed_drain(flow, left) and flow.bbr.full_bw_now and flow.bbr.full_bw_reached,
        "limited": all(limited),
    }


@case(
    "a03",
    "leaving Drain with a BDP in flight",
    Number(name="gain", step="2", words="the pacing gain is 0.5", low=0.5, high=0.5, unit="gain"),
    Number(name="inflight", step="4", words="it ends at BBRInflight(1.0) in flight, or less", high=1.0, unit="share"),
    yes("probe_bw", "4", "ProbeBW follows"),
)
def _drain_inflight(new: New) -> Mapping[str, float]:
    flow = new()
    flow.write_all()
    if not flow.enter(DRAIN):
        return {}
    gain = flow.bbr.pacing_gain
    left = flow.leave()
    if left is None:
        return {}
    return {"gain": gain, "inflight": left.inflight / left.target, "probe_bw": left.state in PROBE_BW}


def _rounds_in_drain(flow: Flow, factor: float) -> tuple[float, float]:
    """Return the rounds that Drain lasts at a factor of the bandwidth, and what is in flight in the end, of a BDP."""
    flow.write_all()
    if not flow.enter(DRAIN):
        return inf, inf
    flow.path.rate_bps *= factor
    start = flow.seen[-1].round_count
    left = flow.leave()
    if left is None or left.state not in PROBE_BW:
        return inf, inf
    return left.round_count - start, left.inflight / left.target


@case(
    "a04",
    "leaving Drain after three round trips",
    Number(
        name="rounds_10",
        step="5",
        words="with a tenth less bandwidth Drain lasts three round trips or more, and ProbeBW follows",
        low=3,
        unit="rounds",
        disagrees="at half the pace the queue that Startup leaves, 1.3 BDPs, is gone within 3.2 round trips of the "
        "empty path, which are one and a half of the full one",
    ),
    Number(
        name="rounds_50",
        step="5",
        words="with half the bandwidth, which is all that Drain sends, it does",
        low=3,
        unit="rounds",
    ),
    Number(
        name="inflight_50",
        step="3",
        words="and more than BBRInflight(1.0) is still in flight",
        low=1.0,
        unit="share",
    ),
)
def _drain_time(new: New) -> Mapping[str, float]:
    tenth, _ = _rounds_in_drain(new(), 0.9)
    rounds, inflight = _rounds_in_drain(new(), 0.5)
    return {"rounds_10": tenth, "rounds_50": rounds, "inflight_50": inflight}
