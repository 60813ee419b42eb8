"""Window growth: how ACKs open the congestion window, and the ssthresh that a loss leaves. Each growth is a file, which
declares a `GROWTH`; `TcpConfig.growth` is its name.

Loss recovery is another seam (`recovery/`): it finds losses, and sends the segments that repair them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mypy_extensions import mypyc_attr

from common.registry import Registry
from hosts.tcp.config import TcpConfig
from hosts.tcp.send_state import SendState


@mypyc_attr(allow_interpreted_subclasses=True)
class Growth(ABC):
    """How one sender's window grows; it sets `cwnd` (octets) of its sender, and `ssthresh` where it ends slow start."""

    __slots__ = ("_sender",)

    def __init__(self, sender: SendState) -> None:
        self._sender = sender

    @abstractmethod
    def handle_ack(self, acked: int, now: int) -> None:
        """Open the window for an ACK of `acked` new octets, which had filled it."""

    @abstractmethod
    def handle_loss(self, flight: int) -> int:
        """Take a loss, or a mark of ECN in its place, with `flight` octets under way; return the new ssthresh."""

    def handle_timeout(self) -> None:  # noqa: B027 (a growth may have no memory)
        """Take a timeout; where it means a loss, `handle_loss` was called before. `cwnd` is a segment now."""


@dataclass(frozen=True, kw_only=True)
class GrowthPlugin:
    """A growth by its name."""

    name: str
    #: for the table in docs/tcp.md
    summary: str
    make: Callable[[SendState, TcpConfig], Growth]


GROWTHS: Final = Registry("hosts.tcp.growth", "GROWTH", GrowthPlugin)
