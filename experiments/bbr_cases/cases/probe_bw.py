"""Cases of ProbeBW: sections A.5 to A.9."""

from collections.abc import Mapping
from math import inf

from common.units import SECOND
from experiments.bbr_cases.cases.case import New, Number, case, yes
from experiments.bbr_cases.cases.scripting import (
    CRUISE,
    DOWN,
    PROBE_RTT,
    REFILL,
    UP,
    ahead_s,
    enter,
    every,
    is_bounded,
    passed_down,
    until_probe_rtt_s,
)
from experiments.bbr_cases.flow import Flow
from hosts.tcp.growth.bbr3 import State


@case(
    "a05",
    "leaving ProbeBW_UP on a plateau",
    Number(name="rounds", step="4", words="the third round without 25 % more ends it", low=3, high=3, unit="rounds"),
    Number(name="lost", step="2", words="nothing is lost", high=0, unit="segments"),
    yes("down", "5", "ProbeBW_DOWN follows"),
)
def _up_plateau(new: New) -> Mapping[str, float]:
    flow = new()
    flow.write_all()
    if not enter(flow, UP, ahead_s(flow)):
        return {}
    left = flow.leave()
    if left is None:
        return {}
    return {"rounds": left.flat_rounds, "lost": flow.delivery.lost / flow.smss, "down": left.state is DOWN}


@case(
    "a06",
    "leaving ProbeBW_UP on losses, application-limited",
    yes("down", "5", "losses end ProbeBW_UP: ProbeBW_DOWN follows"),
    yes("limited", "2", "the sample that ends it is application-limited"),
    yes(
        "updated",
        "5",
        "inflight_longterm is updated all the same",
        "the draft's HandleInflightTooHigh (section 5.5.10.2) leaves it as it is by an application-limited sample",
    ),
)
def _up_loss(new: New) -> Mapping[str, float]:
    flow = new()
    flow.write_all()
    if not enter(flow, UP, ahead_s(flow)):
        return {}
    flow.write_at(0.8 * flow.payload_rate)
    if not flow.until(lambda: flow.bbr._rs.is_app_limited, 1) or flow.state is not UP:
        return {}
    flow.path.drop = every(flow, 5)
    left = flow.leave()
    if left is None:
        return {}
    return {
        "down": passed_down(flow, left),
        "limited": left.is_app_limited,
        "updated": left.inflight_longterm < inf,
    }


@case(
    "a07",
    "never leaving ProbeBW_UP or Startup while application-limited without losses",
    Number(name="startup", step="3", words="Startup is left to ProbeRTT alone, in 20 s", high=0, unit="times"),
    Number(name="up", step="3", words="ProbeBW_UP is left to ProbeRTT alone, in 20 s", high=0, unit="times"),
)
def _limited_without_end(new: New) -> Mapping[str, float]:
    def exits(flow: Flow, state: State) -> int:
        before = len(flow.seen)
        flow.write_at(0.5 * flow.payload_rate)
        flow.after(20)
        return sum(each.before is state and each.state is not PROBE_RTT for each in flow.seen[before:])

    startup = exits(new(), State.STARTUP)
    flow = new()
    flow.write_all()
    if not enter(flow, UP, ahead_s(flow)):
        return {"startup": startup}
    return {"startup": startup, "up": exits(flow, UP)}


@case(
    "a08",
    "leaving ProbeBW_DOWN with a BDP in flight",
    Number(name="gain", step="2", words="the pacing gain is 0.9", low=0.9, high=0.9, unit="gain"),
    Number(
        name="inflight",
        step="4",
        words="it ends at BBRInflightWithHeadroom() and BBRInflight(1.0) in flight, or less",
        high=1.0,
        unit="share",
    ),
    yes("cruise", "5", "ProbeBW_CRUISE follows"),
)
def _down_inflight(new: New) -> Mapping[str, float]:
    # a buffer that a probe overruns, so that there is an inflight_longterm
    flow = new(buffer_bdp=0.5)
    flow.write_all()
    if not enter(flow, DOWN, ahead_s(flow), lambda: is_bounded(flow)):
        return {}
    gain = flow.bbr.pacing_gain
    left = flow.leave()
    if left is None:
        return {}
    return {"gain": gain, "inflight": left.inflight / min(left.target, left.headroom), "cruise": left.state is CRUISE}


@case(
    "a09",
    "leaving ProbeBW_DOWN after the longest time",
    yes("refill", "4", "ProbeBW_REFILL follows, without ProbeBW_CRUISE"),
    Number(name="wait", step="3", words="when bw_probe_wait has passed", low=1.0, unit="bw_probe_wait"),
    # 63 round trips are longer than bw_probe_wait, and a BDP has as many segments
    rtt_ms=(50, 60),
    rate_mbps=20,
)
def _down_time(new: New) -> Mapping[str, float]:
    flow = new()
    flow.write_all()
    # what is left until ProbeRTT comes is longer than bw_probe_wait
    if not enter(flow, DOWN, also=lambda: until_probe_rtt_s(flow) > flow.bbr.bw_probe_wait_ns / SECOND + 0.1):
        return {}
    flow.path.rate_bps *= 0.9
    start, wait_ns = flow.clock.now, flow.bbr.bw_probe_wait_ns
    left = flow.leave()
    if left is None:
        return {}
    return {"refill": left.state is REFILL, "wait": (left.at - start) / wait_ns}
