"""Lets a program watch the run that it simulates."""

from typing import Any

from channel.hop import Arrival
from common.sides import Side
from hosts.engine.clock import OBSERVER
from hosts.tcp.connection import Connection
from tcpip.segment import IpPacket, Segment

#: includes the types that a watch gets
__all__ = ["OBSERVER", "Arrival", "Connection", "Segment", "Watch"]


class Watch:
    """Gets the segments of a run's TCP flows, by the flow's name, and its frames; times are ns since the run's start.

    A watch overrides the methods that it needs.
    """

    def sent(self, flow: str, segment: Segment, now: int) -> None:
        """A segment leaves the host of the data sender."""

    def received(self, flow: str, segment: Segment, now: int) -> None:
        """A segment arrives at the host of the data sender."""

    def delivered(self, flow: str, nbytes: int, now: int) -> None:
        """The receiving application has read `nbytes` payload octets so far."""

    def carried(self, side: Side, arrival: Arrival[Any], now: int) -> None:
        """A frame has crossed the radio link, or was lost there."""

    def left(self, side: Side, packet: IpPacket, now: int) -> None:
        """A packet sent on this side leaves the far station."""

    def crossed(self, side: Side, delay: int, now: int) -> None:
        """TCP data sent on this side leave the far station, `delay` ns after they left their host; in `timed` runs."""
