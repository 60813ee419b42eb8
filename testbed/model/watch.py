"""Looking at a simulated run from the program that started it."""

from typing import Any

from channel.hop import Arrival
from common.sides import Side
from hosts.engine.clock import OBSERVER
from hosts.tcp.connection import Connection
from tcpip.segment import Segment

#: with the objects that a watch is given
__all__ = ["OBSERVER", "Arrival", "Connection", "Segment", "Watch"]


class Watch:
    """Sees the segments of a run's TCP flows, by the flow's name; times are ns since the run's start.

    A watch overrides the methods that it needs.
    """

    def sent(self, flow: str, segment: Segment, now: int) -> None:
        """See a segment leave the data sender's host."""

    def received(self, flow: str, segment: Segment, now: int) -> None:
        """See a segment come in at the data sender's host."""

    def delivered(self, flow: str, nbytes: int, now: int) -> None:
        """See the receiver's application read: `nbytes` payload octets until now."""

    def carried(self, side: Side, arrival: Arrival[Any], now: int) -> None:
        """See a frame that has crossed the radio link, or was lost there."""
