"""Cases of spurious losses, and the rest: sections A.18, A.19, A.21 and A.22."""

from collections.abc import Callable, Mapping
from math import inf
from typing import Final

from experiments.bbr_cases.cases.case import New, Number, case, yes
from experiments.bbr_cases.cases.scripting import DOWN, REFILL, UP, ahead_s, enter, every, is_bounded
from experiments.bbr_cases.flow import Flow
from tcpip.segment import Segment

_SPURIOUS: Final = (
    yes("found", "3", "TCP finds the losses spurious"),
    yes("saved", "2", "the short-term bounds and inflight_longterm before the loss are saved"),
    yes("restored", "3", "they are restored"),
    yes("up", "4", "ProbeBW_UP goes on, or begins again after a ProbeBW_REFILL"),
)


def _spurious(flow: Flow, hold: Callable[[], Callable[[Segment], int]]) -> Mapping[str, float]:
    flow.write_all()
    if not enter(flow, UP, 1.5, lambda: is_bounded(flow)):
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
    goes_on = found and (flow.state is UP or (flow.state is REFILL and flow.leave() is not None and flow.state is UP))
    return {
        "found": found,
        "saved": bool(saved) and saved[0] == bounds,
        "restored": bool(saved) and all(now >= before for now, before in zip(back, saved[0], strict=True)),
        "up": goes_on,
    }


@case("a18", "spurious fast recovery", *_SPURIOUS)
def _spurious_recovery(new: New) -> Mapping[str, float]:
    flow = new(buffer_bdp=0.5)

    def hold() -> Callable[[Segment], int]:
        # each tenth segment of a round trip is late by 0.6 of it
        drop, end = every(flow, 10), flow.clock.now + flow.rtt_ns
        return lambda segment: round(0.6 * flow.rtt_ns) if flow.clock.now < end and drop(segment) else 0

    return _spurious(flow, hold)


@case("a19", "spurious timeout", *_SPURIOUS)
def _spurious_timeout(new: New) -> Mapping[str, float]:
    flow = new(buffer_bdp=0.5)

    def hold() -> Callable[[Segment], int]:
        # all that leaves the bottleneck in the next two and a half timeouts arrives when these are over: a tail loss
        # probe goes before the timeout
        end = flow.clock.now + 5 * flow.connection.rto_ns // 2
        return lambda segment: max(end - flow.clock.now, 0)

    return _spurious(flow, hold)


@case(
    "a21",
    "losses in ProbeBW_UP with an inflight_longterm",
    Number(name="bound", step="4", words="inflight_longterm falls, by Beta (0.7) at most", low=0.7, high=1.0,
           unit="share"),
    yes("down", "5", "ProbeBW_DOWN follows"),
    Number(name="flat_rounds", step="3", words="before a plateau: less than three rounds without growth", high=2,
           unit="rounds"),
)  # fmt: skip
def _up_loss_bounded(new: New) -> Mapping[str, float]:
    flow = new(buffer_bdp=0.5)
    flow.write_all()
    if not enter(flow, UP, ahead_s(flow), lambda: is_bounded(flow)):
        return {}
    flow.path.buffer_bytes = inf
    flow.path.drop = every(flow, 10)
    bounds: list[float] = []
    flow.looked = lambda: bounds.append(flow.bbr.inflight_longterm)
    left = flow.leave()
    if left is None:
        return {}
    return {
        "bound": left.inflight_longterm / max(bounds[:-1], default=inf),
        "down": left.state is DOWN,
        "flat_rounds": left.flat_rounds,
    }


@case(
    "a22",
    "application-limited in ProbeBW_REFILL",
    yes("limited", "3", "the first samples after the pause are application-limited"),
    Number(name="bandwidth", step="3", words="max_bw does not fall", low=1.0, unit="share"),
    yes("up", "4", "ProbeBW_UP follows"),
    yes("down", "4", "and ProbeBW_DOWN after it, as data goes on"),
)
def _limited_refill(new: New) -> Mapping[str, float]:
    flow = new()
    flow.write_all()
    if not enter(flow, REFILL, 2 * ahead_s(flow)):
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
    after = flow.leave(20) if flow.state is UP else None
    return {
        "limited": limited,
        "bandwidth": min(least) / before,
        "up": left.state is UP,
        "down": after is not None and after.state is DOWN,
    }
