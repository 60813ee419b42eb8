"""Capacity: the rate at which a hop's MAC buffer is served.

Read first: SLACP section 4 (the three DAMA classes); `channel/dama.py` has the two that signal.

A capacity is a piecewise-constant rate. Order of calls: the hop reports its backlog with `handle_backlog`
whenever it accepts a frame and right before each deadline; `handle_deadline` may change the rate, nothing
else does; after it the next deadline lies later than `now`. A capacity that says it is `constant` has no
deadlines and need not be told of the backlog.
"""

from typing import ClassVar, Protocol

from channel.limits import positive


class Capacity(Protocol):
    """A piecewise-constant service rate."""

    constant: ClassVar[bool]

    def rate_bps(self) -> int:
        """Return the present rate in bits on the wire per second; 0 when nothing may be sent."""

    def handle_backlog(self, backlog_bits: int, now: int) -> None:
        """Take note of the backlog: bits on the wire still to be served, the frame being sent included."""

    def next_deadline(self) -> int | None:
        """Return the next instant (ns) at which the rate may change, if there is one."""

    def handle_deadline(self, now: int) -> None:
        """Do what is due by `now`; nothing when early."""


class ConstantRate:
    """A rate that is always there: CRA, and any link that is not shared."""

    __slots__ = ("_rate_bps",)

    constant: ClassVar[bool] = True

    def __init__(self, rate_bps: int) -> None:
        self._rate_bps = positive("rate_bps", rate_bps)

    def rate_bps(self) -> int:
        """Return the rate."""
        return self._rate_bps

    def handle_backlog(self, backlog_bits: int, now: int) -> None:
        """Do nothing: a constant rate takes no requests."""

    def next_deadline(self) -> int | None:
        """Return None: the rate never changes."""
        return None

    def handle_deadline(self, now: int) -> None:
        """Do nothing."""
