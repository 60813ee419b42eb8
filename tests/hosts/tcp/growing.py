"""A window growth without its sender: a window of segments is acknowledged one by one in each round trip."""

from dataclasses import dataclass, field
from typing import Any

from hosts.tcp.config import MS, SECOND, TcpConfig
from hosts.tcp.growth import GROWTHS, Growth

SMSS = 1000


@dataclass
class Rto:
    srtt_ns: int | None = 100 * MS


@dataclass
class Sender:
    """What a growth sees of its sender."""

    cwnd: int = 10 * SMSS
    ssthresh: int = 1 << 62
    smss: int = SMSS
    window: int = 1 << 30
    rto: Rto = field(default_factory=Rto)


def grown(name: str, sender: Sender, **options: Any) -> Growth:
    made: Any = GROWTHS[name].make
    return made(sender, TcpConfig(growth=name, **options))


def lose(growth: Growth, sender: Sender) -> None:
    """A loss with the whole window under way, and the recovery from it."""
    sender.ssthresh = growth.handle_loss(sender.cwnd)
    sender.cwnd = sender.ssthresh


def avoid(growth: Growth, sender: Sender, until_s: float, rtt_ns: int = 100 * MS) -> list[tuple[float, float]]:
    """Acknowledge whole windows until some time; return time and window (segments) after each round trip."""
    now, course = 0, []
    while now < until_s * SECOND:
        count = sender.cwnd // SMSS
        for place in range(count):
            growth.handle_ack(SMSS, now + rtt_ns * place // count)
        now += rtt_ns
        course.append((now / SECOND, sender.cwnd / SMSS))
    return course
