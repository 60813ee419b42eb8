"""A window growth without its connection: a window of segments is acknowledged one by one in each round trip."""

from typing import Any

from common.units import MS, SECOND
from hosts.tcp.config import choose
from hosts.tcp.counters import Counters
from hosts.tcp.growth import GROWTHS, Growth
from hosts.tcp.options import LossOptions, TimerOptions
from hosts.tcp.send_state import INFINITE, SendState

SMSS = 1000


def sender_of(segments: int = 10, srtt_ns: int = 100 * MS) -> SendState:
    """A sender with so many segments under way."""
    sender = SendState(TimerOptions(), LossOptions(), SMSS, Counters(), 1)
    sender.max, sender.window, sender.rto.srtt_ns = sender.una + segments * SMSS, 1 << 30, srtt_ns
    return sender


def grown(name: str, sender: SendState, **options: Any) -> Growth:
    """A growth in slow start, its window under way."""
    growth: Growth = GROWTHS[name].make(sender, choose("growth", name, **options).options)
    growth.start(sender.flight, INFINITE)
    return growth


def lose(growth: Growth) -> None:
    """A loss with the whole window under way, and the recovery from it."""
    growth.hold(growth.handle_loss(growth.cwnd))


def time_out(growth: Growth) -> None:
    """A timeout with the whole window under way."""
    growth.handle_timeout(growth.cwnd, SMSS, first=True, recovering=False)


def avoid(growth: Growth, until_s: float, rtt_ns: int = 100 * MS) -> list[tuple[float, float]]:
    """Acknowledge whole windows until some time; return time and window (segments) after each round trip."""
    now, course = 0, []
    while now < until_s * SECOND:
        count = growth.cwnd // SMSS
        for place in range(count):
            growth.handle_ack(SMSS, now + rtt_ns * place // count)
        now += rtt_ns
        course.append((now / SECOND, growth.cwnd / SMSS))
    return course
