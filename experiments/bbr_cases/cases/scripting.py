"""What scripts share."""

from collections.abc import Callable
from math import inf
from typing import Final

from common.units import SECOND
from experiments.bbr_cases.flow import Flow, Seen
from hosts.tcp.growth.bbr3 import State
from tcpip.segment import Segment

DRAIN, DOWN, CRUISE = State.DRAIN, State.PROBE_BW_DOWN, State.PROBE_BW_CRUISE
REFILL, UP, PROBE_RTT = State.PROBE_BW_REFILL, State.PROBE_BW_UP, State.PROBE_RTT
#: section 2.8, LossThresh
LOSS_THRESH: Final = 0.02
#: section 2.16.2, ProbeRTTInterval (s)
PROBE_RTT_INTERVAL_S: Final = 5.0


def every(flow: Flow, nth: int) -> Callable[[Segment], bool]:
    """Lose each nth segment with data."""
    count = [0]

    def drop(segment: Segment) -> bool:
        count[0] += 1
        return count[0] % nth == 0

    return drop


def lose_none(segment: Segment) -> bool:
    return False


def enter(flow: Flow, state: State, ahead_s: float = 1.0, also: Callable[[], bool] = lambda: True) -> bool:
    """Run until a state is entered that no ProbeRTT ends within the next `ahead_s`."""
    for _ in range(100):
        if not flow.enter(state):
            return False
        if until_probe_rtt_s(flow) > ahead_s and also():
            return True
    return False


def until_probe_rtt_s(flow: Flow) -> float:
    return PROBE_RTT_INTERVAL_S - (flow.clock.now - flow.bbr.probe_rtt_min_stamp) / SECOND


def passed_down(flow: Flow, left: Seen) -> bool:
    """Whether ProbeBW_UP was left to ProbeBW_DOWN, through which an ACK may pass at once."""
    return left.state is DOWN or (left.state is CRUISE and flow.bbr.cycle_stamp == left.at)


def is_bounded(flow: Flow) -> bool:
    return flow.bbr.inflight_longterm < inf


def ahead_s(flow: Flow) -> float:
    """Ten round trips, the longest that a probe lasts here."""
    return 10 * flow.rtt_ns / SECOND


def utilisation(flow: Flow, seconds: float) -> float:
    """The share of the bottleneck's payload that is acknowledged in the next seconds."""
    before = flow.connection.bytes_acked
    flow.after(seconds)
    return (flow.connection.bytes_acked - before) / flow.payload_rate / seconds
