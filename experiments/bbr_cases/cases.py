"""The 22 test cases of appendix A of BBR's draft, each as a script over a path, and the numbers it is judged by.

Read first: draft-ietf-ccwg-bbr-06 (July 2026), appendix A; `flow.py`. A script waits for a state of BBR, changes the
path or the application, and returns its numbers, by name. A number is infinite where the case did not get there.

Rule kept: what is expected is the draft's, in our words, with the step that says it. Where a step has no number ("a
reasonable number of round trips"), the bound is ours, and `whose` says so.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Final, Literal, Protocol

from common.units import SECOND
from experiments.bbr_cases.flow import PROBE_BW, Flow, Seen
from hosts.tcp.growth.bbr3 import State
from tcpip.segment import Segment

_DRAIN, _DOWN, _CRUISE = State.DRAIN, State.PROBE_BW_DOWN, State.PROBE_BW_CRUISE
_REFILL, _UP, _PROBE_RTT = State.PROBE_BW_REFILL, State.PROBE_BW_UP, State.PROBE_RTT
#: the unit of facts
FACT: Final = "yes = 1"
#: section 2.8, LossThresh
LOSS_THRESH: Final = 0.02
#: section 2.16.2, ProbeRTTInterval (s)
PROBE_RTT_INTERVAL_S: Final = 5.0
#: ours: how long the ACKs of a path with aggregation wait for one another at most (ns)
BATCH_NS: Final = 30_000_000


class New(Protocol):
    """Makes a flow over the path of a replication, with so many BDPs of buffer."""

    def __call__(self, *, buffer_bdp: float = inf) -> Flow: ...


@dataclass(frozen=True, kw_only=True)
class Number:
    """One number of a case, and the range in which the draft has it; `low` or `high` None: no bound there."""

    name: str
    #: the step of the case
    step: str
    #: in our words
    words: str
    low: float | None = None
    high: float | None = None
    unit: str = FACT
    #: of the bounds
    whose: Literal["draft", "ours"] = "draft"
    #: why ours is not expected to meet it
    disagrees: str = ""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One test case; `name` is the number of its section."""

    name: str
    #: the draft's title, in short
    title: str
    script: Callable[[New], Mapping[str, float]]
    numbers: Sequence[Number]
    #: the path's RTT (ms), where the case asks for a certain range; default: the set's
    rtt_ms: tuple[float, float] | None = None
    #: the path's rate (Mbit/s) likewise
    rate_mbps: float | None = None


CASES: Final[dict[str, Case]] = {}


def _case(
    name: str,
    title: str,
    *numbers: Number,
    rtt_ms: tuple[float, float] | None = None,
    rate_mbps: float | None = None,
) -> Callable[[Callable[[New], Mapping[str, float]]], Callable[[New], Mapping[str, float]]]:
    def declare(script: Callable[[New], Mapping[str, float]]) -> Callable[[New], Mapping[str, float]]:
        CASES[name] = Case(name=name, title=title, script=script, numbers=numbers, rtt_ms=rtt_ms, rate_mbps=rate_mbps)
        return script

    return declare


def _yes(name: str, step: str, words: str, disagrees: str = "") -> Number:
    return Number(name=name, step=step, words=words, low=1.0, disagrees=disagrees)


# -- what scripts share --------------------------------------------------------------------------------------


def _every(flow: Flow, nth: int) -> Callable[[Segment], bool]:
    """Lose each nth segment with data."""
    count = [0]

    def drop(segment: Segment) -> bool:
        count[0] += 1
        return count[0] % nth == 0

    return drop


def _lose_none(segment: Segment) -> bool:
    return False


def _enter(flow: Flow, state: State, ahead_s: float = 1.0, also: Callable[[], bool] = lambda: True) -> bool:
    """Run until a state is entered that no ProbeRTT ends within the next `ahead_s`."""
    for _ in range(100):
        if not flow.enter(state):
            return False
        if _until_probe_rtt_s(flow) > ahead_s and also():
            return True
    return False


def _until_probe_rtt_s(flow: Flow) -> float:
    return PROBE_RTT_INTERVAL_S - (flow.clock.now - flow.bbr.probe_rtt_min_stamp) / SECOND


def _passed_down(flow: Flow, left: Seen) -> bool:
    """Whether ProbeBW_UP was left to ProbeBW_DOWN, through which an ACK may pass at once."""
    return left.state is _DOWN or (left.state is _CRUISE and flow.bbr.cycle_stamp == left.at)


def _is_bounded(flow: Flow) -> bool:
    return flow.bbr.inflight_longterm < inf


def _ahead_s(flow: Flow) -> float:
    """Ten round trips, the longest that a probe lasts here."""
    return 10 * flow.rtt_ns / SECOND


def _utilisation(flow: Flow, seconds: float) -> float:
    """The share of the bottleneck's payload that is acknowledged in the next seconds."""
    before = flow.connection.bytes_acked
    flow.after(seconds)
    return (flow.connection.bytes_acked - before) / flow.payload_rate / seconds


# -- Startup and Drain ---------------------------------------------------------------------------------------


@_case(
    "a01",
    "leaving Startup on a plateau",
    Number(name="bandwidth", step="3", words="max_bw is within 2 % of the path's", low=0.98, high=1.02, unit="share"),
    Number(name="rounds", step="4", words="the third round without 25 % more ends it", low=3, high=3, unit="rounds"),
    _yes("drain", "5", "Drain follows, with full_bw_now and full_bw_reached"),
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
        "drain": left.state is _DRAIN and flow.bbr.full_bw_now and flow.bbr.full_bw_reached,
    }


def _passed_drain(flow: Flow, left: Seen) -> bool:
    """Whether Startup was left to Drain, through which an ACK may pass at once."""
    return left.state is _DRAIN or (left.state in PROBE_BW and flow.bbr.drain_start_round == left.round_count)


@_case(
    "a02",
    "leaving Startup on losses, application-limited",
    _yes("drain", "5", "losses end Startup: Drain follows, with full_bw_now and full_bw_reached"),
    _yes("limited", "2", "the samples are application-limited all the while"),
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
    flow.path.drop = _every(flow, 3)
    left = flow.leave(10 * flow.rtt_ns / SECOND)
    if left is None:
        return {}
    return {
        "drain": _passed_drain(flow, left) and flow.bbr.full_bw_now and flow.bbr.full_bw_reached,
        "limited": all(limited),
    }


@_case(
    "a03",
    "leaving Drain with a BDP in flight",
    Number(name="gain", step="2", words="the pacing gain is 0.5", low=0.5, high=0.5, unit="gain"),
    Number(name="inflight", step="4", words="it ends at BBRInflight(1.0) in flight, or less", high=1.0, unit="share"),
    _yes("probe_bw", "4", "ProbeBW follows"),
)
def _drain_inflight(new: New) -> Mapping[str, float]:
    flow = new()
    flow.write_all()
    if not flow.enter(_DRAIN):
        return {}
    gain = flow.bbr.pacing_gain
    left = flow.leave()
    if left is None:
        return {}
    return {"gain": gain, "inflight": left.inflight / left.target, "probe_bw": left.state in PROBE_BW}


def _rounds_in_drain(flow: Flow, factor: float) -> tuple[float, float]:
    """Return the rounds that Drain lasts at a factor of the bandwidth, and what is in flight in the end, of a BDP."""
    flow.write_all()
    if not flow.enter(_DRAIN):
        return inf, inf
    flow.path.rate_bps *= factor
    start = flow.seen[-1].round_count
    left = flow.leave()
    if left is None or left.state not in PROBE_BW:
        return inf, inf
    return left.round_count - start, left.inflight / left.target


@_case(
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


# -- ProbeBW -------------------------------------------------------------------------------------------------


@_case(
    "a05",
    "leaving ProbeBW_UP on a plateau",
    Number(name="rounds", step="4", words="the third round without 25 % more ends it", low=3, high=3, unit="rounds"),
    Number(name="lost", step="2", words="nothing is lost", high=0, unit="segments"),
    _yes("down", "5", "ProbeBW_DOWN follows"),
)
def _up_plateau(new: New) -> Mapping[str, float]:
    flow = new()
    flow.write_all()
    if not _enter(flow, _UP, _ahead_s(flow)):
        return {}
    left = flow.leave()
    if left is None:
        return {}
    return {"rounds": left.flat_rounds, "lost": flow.delivery.lost / flow.smss, "down": left.state is _DOWN}


@_case(
    "a06",
    "leaving ProbeBW_UP on losses, application-limited",
    _yes("down", "5", "losses end ProbeBW_UP: ProbeBW_DOWN follows"),
    _yes("limited", "2", "the sample that ends it is application-limited"),
    _yes(
        "updated",
        "5",
        "inflight_longterm is updated all the same",
        "the draft's HandleInflightTooHigh (section 5.5.10.2) leaves it as it is by an application-limited sample",
    ),
)
def _up_loss(new: New) -> Mapping[str, float]:
    flow = new()
    flow.write_all()
    if not _enter(flow, _UP, _ahead_s(flow)):
        return {}
    flow.write_at(0.8 * flow.payload_rate)
    if not flow.until(lambda: flow.bbr._rs.is_app_limited, 1) or flow.state is not _UP:
        return {}
    flow.path.drop = _every(flow, 5)
    left = flow.leave()
    if left is None:
        return {}
    return {
        "down": _passed_down(flow, left),
        "limited": left.is_app_limited,
        "updated": left.inflight_longterm < inf,
    }


@_case(
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
        return sum(each.before is state and each.state is not _PROBE_RTT for each in flow.seen[before:])

    startup = exits(new(), State.STARTUP)
    flow = new()
    flow.write_all()
    if not _enter(flow, _UP, _ahead_s(flow)):
        return {"startup": startup}
    return {"startup": startup, "up": exits(flow, _UP)}


@_case(
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
    _yes("cruise", "5", "ProbeBW_CRUISE follows"),
)
def _down_inflight(new: New) -> Mapping[str, float]:
    # a buffer that a probe overruns, so that there is an inflight_longterm
    flow = new(buffer_bdp=0.5)
    flow.write_all()
    if not _enter(flow, _DOWN, _ahead_s(flow), lambda: _is_bounded(flow)):
        return {}
    gain = flow.bbr.pacing_gain
    left = flow.leave()
    if left is None:
        return {}
    return {"gain": gain, "inflight": left.inflight / min(left.target, left.headroom), "cruise": left.state is _CRUISE}


@_case(
    "a09",
    "leaving ProbeBW_DOWN after the longest time",
    _yes("refill", "4", "ProbeBW_REFILL follows, without ProbeBW_CRUISE"),
    Number(name="wait", step="3", words="when bw_probe_wait has passed", low=1.0, unit="bw_probe_wait"),
    # 63 round trips are longer than bw_probe_wait, and a BDP has as many segments
    rtt_ms=(50, 60),
    rate_mbps=20,
)
def _down_time(new: New) -> Mapping[str, float]:
    flow = new()
    flow.write_all()
    # what is left until ProbeRTT comes is longer than bw_probe_wait
    if not _enter(flow, _DOWN, also=lambda: _until_probe_rtt_s(flow) > flow.bbr.bw_probe_wait_ns / SECOND + 0.1):
        return {}
    flow.path.rate_bps *= 0.9
    start, wait_ns = flow.clock.now, flow.bbr.bw_probe_wait_ns
    left = flow.leave()
    if left is None:
        return {}
    return {"refill": left.state is _REFILL, "wait": (left.at - start) / wait_ns}


# -- ProbeRTT ------------------------------------------------------------------------------------------------


@_case(
    "a10",
    "entering and leaving ProbeRTT",
    Number(
        name="interval", step="2", words="it comes when 5 s have brought no lower delay, 0.1 s later at most",
        low=PROBE_RTT_INTERVAL_S, high=PROBE_RTT_INTERVAL_S + 0.1, unit="s", whose="ours",
    ),
    Number(name="gain", step="3", words="the cwnd gain is 0.5", low=0.5, high=0.5, unit="gain"),
    Number(name="duration", step="4", words="it lasts 200 ms or more", low=0.2, unit="s"),
    Number(name="rounds", step="4", words="and a round trip or more", low=1, unit="rounds"),
    _yes("probe_bw", "5", "ProbeBW follows"),
    Number(
        name="resumed", step="5", words="the next second carries half of the path or more", low=0.5, unit="share",
        whose="ours",
    ),
)  # fmt: skip
def _probe_rtt(new: New) -> Mapping[str, float]:
    flow = new()
    flow.write_all()
    stamps = [0]

    def note() -> None:
        if flow.state is not _PROBE_RTT:
            stamps[0] = flow.bbr.probe_rtt_min_stamp

    if not flow.enter(*PROBE_BW):
        return {}
    flow.looked = note
    if not flow.enter(_PROBE_RTT):
        return {}
    entered, gain = flow.seen[-1], flow.bbr.cwnd_gain
    interval = (entered.at - stamps[0]) / SECOND
    left = flow.leave()
    if left is None:
        return {}
    return {
        "interval": interval,
        "gain": gain,
        "duration": (left.at - entered.at) / SECOND,
        "rounds": left.round_count - entered.round_count,
        "probe_bw": left.state in PROBE_BW,
        "resumed": _utilisation(flow, 1),
    }


@_case(
    "a11",
    "no ProbeRTT after an idle time",
    _yes("idle_restart", "4", "the first segment after 6 s without data sets idle_restart"),
    Number(name="probe_rtts", step="5", words="no ProbeRTT in the 4 s after it", high=0, unit="times"),
)
def _idle(new: New) -> Mapping[str, float]:
    flow = new()
    flow.write_all()
    if not _enter(flow, _CRUISE):
        return {}
    flow.write_at(0)
    flow.after(6)
    if flow.delivery.inflight:
        return {}
    restarts: list[bool] = []
    flow.left = lambda: restarts.append(flow.bbr.idle_restart)
    before = len(flow.seen)
    flow.write_all()
    flow.after(4)
    return {
        "idle_restart": restarts[0],
        "probe_rtts": sum(each.state is _PROBE_RTT for each in flow.seen[before:]),
    }


@_case(
    "a20",
    "entering and leaving ProbeRTT in Startup",
    _yes("entered", "1", "ProbeRTT comes in a slow Startup, before full_bw_reached"),
    _yes("startup", "3", "Startup follows, and not ProbeBW"),
)
def _probe_rtt_in_startup(new: New) -> Mapping[str, float]:
    flow = new()
    flow.write_at(0.2 * flow.payload_rate)
    if not flow.enter(_PROBE_RTT, most_s=20):
        return {}
    entered, early = flow.seen[-1], not flow.bbr.full_bw_reached
    left = flow.leave()
    if left is None:
        return {}
    return {"entered": entered.before is State.STARTUP and early, "startup": left.state is State.STARTUP}


# -- aggregation, small and changing paths -------------------------------------------------------------------


@_case(
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


@_case(
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
    if not _enter(flow, _CRUISE, 4.9 - _ahead_s(flow)):
        return {}
    flow.back.batch_ns = BATCH_NS
    start = flow.bbr.round_count
    flow.until(lambda: flow.bbr.round_count >= start + 10)
    extra, cwnd = flow.bbr.extra_acked, flow.connection.cwnd
    return {
        "extra": extra / (flow.payload_rate * BATCH_NS / SECOND),
        "cwnd": cwnd / flow.bdp,
        "utilisation": _utilisation(flow, 4),
    }


@_case(
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
    if not flow.enter(_CRUISE):
        return {}
    pacing = flow.bbr.pacing_rate / flow.payload_rate
    return {"cwnd": least[0], "pacing": pacing, "utilisation": _utilisation(flow, 20)}


@_case(
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
    if not _enter(flow, _CRUISE, also=lambda: _is_bounded(flow)):
        return {}
    flow.path.rate_bps *= 10
    flow.path.buffer_bytes = inf
    rounds: list[int] = []
    #: of the rounds of each ProbeBW_UP that the window has filled: the bound at their ends, in segments
    courses: list[list[float]] = []

    def note() -> None:
        bbr = flow.bbr
        if flow.state is not _UP or not bbr.round_start or (rounds and rounds[-1] == bbr.round_count):
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


@_case(
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
    if not _enter(flow, _CRUISE, also=lambda: flow.bbr.cycle_count > 1):
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


@_case(
    "a17",
    "a token bucket policer",
    _yes("adapts", "3", "losses set inflight_shortterm and bw_shortterm"),
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


# -- spurious losses and the rest ----------------------------------------------------------------------------


_SPURIOUS: Final = (
    _yes("found", "3", "TCP finds the losses spurious"),
    _yes("saved", "2", "the short-term bounds and inflight_longterm before the loss are saved"),
    _yes("restored", "3", "they are restored"),
    _yes("up", "4", "ProbeBW_UP goes on, or begins again after a ProbeBW_REFILL"),
)


def _spurious(flow: Flow, hold: Callable[[], Callable[[Segment], int]]) -> Mapping[str, float]:
    flow.write_all()
    if not _enter(flow, _UP, 1.5, lambda: _is_bounded(flow)):
        return {}
    flow.path.buffer_bytes = inf
    bbr, counters = flow.bbr, flow.connection.counters
    bounds = [bbr.bw_shortterm, bbr.inflight_shortterm, bbr.inflight_longterm]
    saved: list[list[float]] = []

    def note() -> None:
        if not bbr._has_saved and not saved:
            bounds[:] = bbr.bw_shortterm, bbr.inflight_shortterm, bbr.inflight_longterm
        elif not saved:
            saved.append([bbr.undo_bw_shortterm, bbr.undo_inflight_shortterm, bbr.undo_inflight_longterm])

    flow.looked = note
    flow.path.hold = hold()
    found = flow.until(lambda: counters.reductions_taken_back + counters.spurious_timeouts > 0, 2)
    back = [bbr.bw_shortterm, bbr.inflight_shortterm, bbr.inflight_longterm] if found else [0.0, 0.0, 0.0]
    flow.path.hold = lambda segment: 0
    goes_on = found and (
        flow.state is _UP or (flow.state is _REFILL and flow.leave() is not None and flow.state is _UP)
    )
    return {
        "found": found,
        "saved": bool(saved) and saved[0] == bounds,
        "restored": bool(saved) and all(now >= before for now, before in zip(back, saved[0], strict=True)),
        "up": goes_on,
    }


@_case("a18", "spurious fast recovery", *_SPURIOUS)
def _spurious_recovery(new: New) -> Mapping[str, float]:
    flow = new(buffer_bdp=0.5)

    def hold() -> Callable[[Segment], int]:
        # each tenth segment of a round trip is late by 0.6 of it
        drop, end = _every(flow, 10), flow.clock.now + flow.rtt_ns
        return lambda segment: round(0.6 * flow.rtt_ns) if flow.clock.now < end and drop(segment) else 0

    return _spurious(flow, hold)


@_case("a19", "spurious timeout", *_SPURIOUS)
def _spurious_timeout(new: New) -> Mapping[str, float]:
    flow = new(buffer_bdp=0.5)

    def hold() -> Callable[[Segment], int]:
        # all that leaves the bottleneck in the next two and a half timeouts arrives when these are over: a tail loss
        # probe goes before the timeout
        end = flow.clock.now + 5 * flow.connection.rto_ns // 2
        return lambda segment: max(end - flow.clock.now, 0)

    return _spurious(flow, hold)


@_case(
    "a21",
    "losses in ProbeBW_UP with an inflight_longterm",
    Number(name="bound", step="4", words="inflight_longterm falls, by Beta (0.7) at most", low=0.7, high=1.0,
           unit="share"),
    _yes("down", "5", "ProbeBW_DOWN follows"),
    Number(name="flat_rounds", step="3", words="before a plateau: less than three rounds without growth", high=2,
           unit="rounds"),
)  # fmt: skip
def _up_loss_bounded(new: New) -> Mapping[str, float]:
    flow = new(buffer_bdp=0.5)
    flow.write_all()
    if not _enter(flow, _UP, _ahead_s(flow), lambda: _is_bounded(flow)):
        return {}
    flow.path.buffer_bytes = inf
    flow.path.drop = _every(flow, 10)
    bounds: list[float] = []
    flow.looked = lambda: bounds.append(flow.bbr.inflight_longterm)
    left = flow.leave()
    if left is None:
        return {}
    return {
        "bound": left.inflight_longterm / max(bounds[:-1], default=inf),
        "down": left.state is _DOWN,
        "flat_rounds": left.flat_rounds,
    }


@_case(
    "a22",
    "application-limited in ProbeBW_REFILL",
    _yes("limited", "3", "the first samples after the pause are application-limited"),
    Number(name="bandwidth", step="3", words="max_bw does not fall", low=1.0, unit="share"),
    _yes("up", "4", "ProbeBW_UP follows"),
    _yes("down", "4", "and ProbeBW_DOWN after it, as data goes on"),
)
def _limited_refill(new: New) -> Mapping[str, float]:
    flow = new()
    flow.write_all()
    if not _enter(flow, _REFILL, 2 * _ahead_s(flow)):
        return {}
    flow.write_at(0)
    before = flow.bbr.max_bw
    least = [before]
    flow.looked = lambda: least.append(flow.bbr.max_bw)
    left = flow.leave(10)
    if left is None:
        return {}
    flow.write_all()
    limited = flow.until(lambda: flow.bbr._rs.is_app_limited, 1)
    after = flow.leave(20) if flow.state is _UP else None
    return {
        "limited": limited,
        "bandwidth": min(least) / before,
        "up": left.state is _UP,
        "down": after is not None and after.state is _DOWN,
    }
