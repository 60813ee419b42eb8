"""Cases of paths that gather ACKs, are small, or change: sections A.12 to A.17."""

from collections.abc import Mapping
from itertools import pairwise
from math import inf
from typing import Final

from common.units import SECOND
from experiments.bbr_cases.cases.case import New, Number, case, yes
from experiments.bbr_cases.cases.scripting import CRUISE, LOSS_THRESH, UP, ahead_s, enter, is_bounded, utilisation
from experiments.bbr_cases.flow import PROBE_BW

#: ours: how long the ACKs of a path with aggregation wait for one another at most (ns)
BATCH_NS: Final = 30_000_000


@case(
    "a12",
    "Startup over a path that aggregates",
    Number(name="extra", step="3", words="extra_acked is more than 0", low=1e-9, unit="bandwidth · 30 ms"),
    Number(name="cwnd", step="3", words="cwnd is above two BDPs", low=2.0, unit="BDP"),
    Number(name="bandwidth", step="4", words="max_bw is the path's, or more", low=0.98, unit="share"),
)
def _aggregated_startup(new: New) -> Mapping[str, float]:
    flow = new()
    flow.back.batch_ns = BATCH_NS
    flow.write_all()
    left = flow.leave()
    if left is None:
        return {}
    return {
        "extra": left.extra_acked / (flow.payload_rate * BATCH_NS / SECOND),
        "cwnd": left.cwnd / flow.bdp,
        "bandwidth": left.max_bw / flow.payload_rate,
    }


@case(
    "a13",
    "ProbeBW_CRUISE over a path that aggregates",
    Number(name="extra", step="3", words="extra_acked is more than 0", low=1e-9, unit="bandwidth · 30 ms"),
    Number(name="cwnd", step="4", words="cwnd is above two BDPs, by extra_acked", low=2.0, unit="BDP"),
    Number(
        name="utilisation", step="4", words="the path stays full: 95 % in 4 s", low=0.95, unit="share", whose="ours"
    ),
)
def _aggregated_cruise(new: New) -> Mapping[str, float]:
    flow = new()
    flow.write_all()
    if not enter(flow, CRUISE, 4.9 - ahead_s(flow)):
        return {}
    flow.back.batch_ns = BATCH_NS
    start = flow.bbr.round_count
    flow.until(lambda: flow.bbr.round_count >= start + 10)
    extra, cwnd = flow.bbr.extra_acked, flow.connection.cwnd
    return {
        "extra": extra / (flow.payload_rate * BATCH_NS / SECOND),
        "cwnd": cwnd / flow.bdp,
        "utilisation": utilisation(flow, 4),
    }


@case(
    "a14",
    "a BDP of less than a packet",
    Number(name="cwnd", step="3", words="cwnd has four segments at least", low=4.0, unit="segments"),
    Number(
        name="pacing", step="4", words="the pacing rate is the path's, within 5 %", low=0.95, high=1.05, unit="share",
        whose="ours",
    ),
    Number(name="utilisation", step="4", words="the path stays full: 95 %", low=0.95, unit="share", whose="ours"),
    rtt_ms=(5, 20),
    rate_mbps=0.5,
)  # fmt: skip
def _sub_packet(new: New) -> Mapping[str, float]:
    flow = new()
    flow.write_all()
    if not flow.enter(*PROBE_BW):
        return {}
    least = [inf]

    def note() -> None:
        if flow.state in PROBE_BW:
            least[0] = min(least[0], flow.connection.cwnd / flow.smss)

    flow.looked = note
    if not flow.enter(CRUISE):
        return {}
    pacing = flow.bbr.pacing_rate / flow.payload_rate
    return {"cwnd": least[0], "pacing": pacing, "utilisation": utilisation(flow, 20)}


@case(
    "a15",
    "ten times the bandwidth",
    Number(name="steps", step="3", words="with a full window inflight_longterm grows by twice as much each round",
           low=1.5, high=2.5, unit="ratio"),
    Number(name="bandwidth", step="4", words="max_bw is within 2 % of the path's, after a minute", low=0.98, high=1.02,
           unit="share"),
    Number(name="rounds", step="4", words="found in 21 rounds of ProbeBW_UP: twice log 10 / log 1.25", high=21,
           unit="rounds", whose="ours"),
    rate_mbps=4,
    rtt_ms=(60, 100),
)  # fmt: skip
def _ten_times(new: New) -> Mapping[str, float]:
    flow = new(buffer_bdp=0.5)
    flow.write_all()
    if not enter(flow, CRUISE, also=lambda: is_bounded(flow)):
        return {}
    flow.path.rate_bps *= 10
    flow.path.buffer_bytes = inf
    rounds: list[int] = []
    #: of the rounds of each ProbeBW_UP that the window has filled: the bound at their ends, in segments
    courses: list[list[float]] = []

    def note() -> None:
        bbr = flow.bbr
        if flow.state is not UP or not bbr.round_start or (rounds and rounds[-1] == bbr.round_count):
            return
        if not rounds or rounds[-1] != bbr.round_count - 1 or not flow.delivery.is_cwnd_limited:
            courses.append([])
        rounds.append(bbr.round_count)
        courses[-1].append(bbr.inflight_longterm / flow.smss)

    flow.looked = note
    found = flow.until(lambda: flow.bbr.max_bw >= 0.98 * flow.payload_rate)
    in_rounds = len(rounds)
    flow.after(3)
    # a segment more or less is rounding
    ratios = [
        second / first
        for course in courses
        for first, second in pairwise([after - before for before, after in pairwise(course)])
        if first >= 2
    ]
    return {
        "steps": sorted(ratios)[len(ratios) // 2] if ratios else inf,
        "bandwidth": flow.bbr.max_bw / flow.payload_rate,
        "rounds": in_rounds if found else inf,
    }


@case(
    "a16",
    "a tenth of the bandwidth",
    Number(name="sooner", step="3", words="losses halve bw_shortterm before the filter halves max_bw", high=1.0,
           unit="of its time"),
    Number(name="bandwidth", step="4", words="two cycles later max_bw is within 2 % of the path's", low=0.98, high=1.02,
           unit="share"),
    rate_mbps=20,
    rtt_ms=(60, 100),
)  # fmt: skip
def _a_tenth(new: New) -> Mapping[str, float]:
    # a BDP of the later path
    flow = new(buffer_bdp=0.1)
    flow.write_all()
    if not enter(flow, CRUISE, also=lambda: flow.bbr.cycle_count > 1):
        return {}
    flow.path.rate_bps /= 10
    cycles = flow.bbr.cycle_count
    start, before = flow.clock.now, flow.bbr.max_bw
    halved: list[int] = []
    flow.looked = lambda: halved.append(flow.clock.now) if flow.bbr.bw_shortterm < before / 2 else None
    slow = flow.until(lambda: flow.bbr.max_bw < before / 2)
    sooner = (halved[0] - start) / (flow.clock.now - start) if halved and slow else inf
    flow.until(lambda: flow.bbr.cycle_count >= cycles + 2)
    # the filter forgets with the cycle's first sample
    flow.after(1)
    return {"sooner": sooner, "bandwidth": flow.bbr.max_bw / flow.payload_rate}


@case(
    "a17",
    "a token bucket policer",
    yes("adapts", "3", "losses set inflight_shortterm and bw_shortterm"),
    Number(name="lost", step="4", words="losses are not excessive: LossThresh at most, in 20 s", high=LOSS_THRESH,
           unit="share", whose="ours"),
    Number(name="rate", step="4", words="the goodput is the token rate, but for the headroom of 15 %", low=0.85,
           unit="share", whose="ours"),
)  # fmt: skip
def _policer(new: New) -> Mapping[str, float]:
    flow = new()
    tokens = flow.path.rate_bps / 8 / 2
    # full at first: a second of the tokens
    flow.path.policer = tokens, tokens
    adapts = [False]

    def note() -> None:
        if flow.state in PROBE_BW and flow.bbr.bw_shortterm < inf and flow.bbr.inflight_shortterm < inf:
            adapts[0] = True

    flow.looked = note
    flow.write_all()
    flow.after(15)
    came, lost, acked = flow.path.came, flow.path.lost, flow.connection.bytes_acked
    flow.after(20)
    carried = (flow.connection.bytes_acked - acked) / flow.payload_rate * flow.path.rate_bps / 8
    return {
        "adapts": adapts[0],
        "lost": (flow.path.lost - lost) / (flow.path.came - came),
        "rate": carried / tokens / 20,
    }
