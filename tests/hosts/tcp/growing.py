"""A window growth without its connection: a window of segments is acknowledged one by one in each round trip."""

from typing import Any

from common.units import MS, SECOND
from hosts.tcp.config import TcpConfig
from hosts.tcp.counters import Counters
from hosts.tcp.growth import GROWTHS, Growth
from hosts.tcp.send_state import SendState

SMSS = 1000


def sender_of(segments: int = 10, srtt_ns: int = 100 * MS) -> SendState:
    """A sender in slow start with a window of so many segments."""
    sender = SendState(TcpConfig(mss=SMSS), Counters(), 1)
    sender.cwnd, sender.window, sender.rto.srtt_ns = segments * SMSS, 1 << 30, srtt_ns
    return sender


def grown(name: str, sender: SendState, **options: Any) -> Growth:
    return GROWTHS[name].make(sender, TcpConfig(growth=name, **options))


def lose(growth: Growth, sender: SendState) -> None:
    """A loss with the whole window under way, and the recovery from it."""
    sender.ssthresh = growth.handle_loss(sender.cwnd)
    sender.cwnd = sender.ssthresh


def avoid(growth: Growth, sender: SendState, until_s: float, rtt_ns: int = 100 * MS) -> list[tuple[float, float]]:
    """Acknowledge whole windows until some time; return time and window (segments) after each round trip."""
    now, course = 0, []
    while now < until_s * SECOND:
        count = sender.cwnd // SMSS
        for place in range(count):
            growth.handle_ack(SMSS, now + rtt_ns * place // count)
        now += rtt_ns
        course.append((now / SECOND, sender.cwnd / SMSS))
    return course
