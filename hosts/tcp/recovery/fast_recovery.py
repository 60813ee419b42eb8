"""Fast retransmit and fast recovery: the common part of Reno, NewReno, SACK and SMART.

Read first: RFC 5681 section 3.2, RFC 3042 (limited transmit); COMPARISON sections 2.3 and 3.1 (ELN).

A `FastRecovery` counts duplicates, says when a recovery begins, and reduces the window or keeps it. Its `Repair` says
which segments are sent while the recovery lasts, and which acknowledgement ends it. Three duplicates are a loss; a
subclass with its own `_is_lost` and `_may_begin` finds losses in another way.

Rules: `recover` is the octet behind the highest one sent when the present recovery or the last timeout began (RFC
6582's recover + 1, RFC 6675's RecoveryPoint + 1), and with Reno when the window was last reduced.

ELN, with every repair: a recovery begins with a hole, and each further one shows as a partial acknowledgement. While
all holes are corruption the window stays as it is; the first that is congestion reduces it, once in a recovery. A
timeout reduces it always.
"""

# ruff: noqa: B027 (methods that do nothing are the defaults)

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from mypy_extensions import mypyc_attr
from typing_extensions import override

from hosts.tcp.recovery import Recovery
from hosts.tcp.recovery.corruption import Corruption
from hosts.tcp.scoreboard import DUP_THRESH
from hosts.tcp.send_state import SendState
from tcpip.segment import Segment

#: RFC 3042: new segments the first two dupacks may each clock out
_LIMITED_SEGMENTS: Final = 2


@mypyc_attr(allow_interpreted_subclasses=True)
@dataclass(frozen=True, kw_only=True)
class FastRecoveryOptions:
    """The options of fast recovery."""

    #: without SACK and SMART: a segment sent before the last reduction of the window or before the last timeout causes
    #: no fast retransmit (RFC 6582 section 3.2, RFC 5681's advice); in 4.4BSD it does
    one_reduction_per_window: bool = True


@mypyc_attr(allow_interpreted_subclasses=True)
class Repair(ABC):
    """The segments sent during the fast recoveries of one connection."""

    def __init__(self, recovery: "FastRecovery") -> None:
        self.recovery = recovery
        self.sender = recovery.sender

    @abstractmethod
    def begin(self, dupacks: int) -> None:
        """Begin, `dupacks` duplicates after the loss: set `cwnd`, and `recover` of the recovery."""

    @abstractmethod
    def handle_ack(self, acked: int, now: int) -> bool:
        """Take an acknowledgement of `acked` new octets; return whether the retransmission timer starts again."""

    @abstractmethod
    def poll(self) -> tuple[int, int] | None:
        """Return the octets to send next, [start, end), or None."""

    def handle_dupack(self) -> None:
        """Take a duplicate: the segment that caused it has left the network."""

    def handle_reduction(self) -> None:
        """The window that this recovery had kept is reduced."""


@mypyc_attr(allow_interpreted_subclasses=True)
class FastRecovery(Recovery):
    """Fast retransmit at the third duplicate; then `repair` has its turn."""

    def __init__(
        self, sender: SendState, options: FastRecoveryOptions, repair: Callable[["FastRecovery", Any], Repair]
    ) -> None:
        super().__init__(sender)
        # only the SYN was sent before: losses of the first window begin a recovery
        self.recover = sender.una - 1
        #: the window after this recovery
        self.window = 0
        #: holes, and which of them are corruption
        self.holes = Corruption(sender.loss, sender.una)
        self._after_timeout = False
        self._dupacks = 0
        #: FlightSize when the first dupack came
        self._flight = 0
        self._limited_transmit = sender.loss.limited_transmit
        self._once = options.one_reduction_per_window
        self._at_once = sender.loss.eln == "retransmit"
        if sender.loss.eln != "ignore":
            sender.track_resent()
        self.repair = repair(self, options)

    def handle_dupack(self, segment: Segment, now: int) -> None:
        if self.active:
            self.repair.handle_dupack()
            return
        sender = self.sender
        if not self._dupacks:
            self._flight = sender.flight
        self._dupacks += 1
        if self._is_lost():
            if self._may_begin():
                self._begin()
        elif self._limited_transmit and self._dupacks <= _LIMITED_SEGMENTS and sender.nxt == sender.max:
            # only new data (RFC 3042), not segments that a timeout sends again
            sender.limited = self._limit()

    def _is_lost(self) -> bool:
        """Whether the duplicates show that the first hole is lost."""
        return self._dupacks == DUP_THRESH or (self._at_once and self._is_news())

    def _may_begin(self) -> bool:
        """Whether a loss found now begins a recovery.

        RFC 6582 section 3.2 step 1: not for segments sent before a timeout; also RFC 5681's advice.
        """
        return not self._once or self.sender.una > self.recover or self._is_news()

    def _is_news(self) -> bool:
        """Whether the first hole is corruption, and was not sent again yet: then nothing can be a duplicate of it."""
        una, resent = self.sender.una, self.sender.resent
        return una in self.holes and not (resent and una in resent)

    def _limit(self) -> int:
        """Octets that limited transmit may send beyond the window now."""
        return self._dupacks * self.sender.smss

    def _begin(self) -> None:
        sender = self.sender
        self.active = self.urgent = True
        self._after_timeout = False
        sender.counters.fast_retransmits += 1
        sender.limited = 0
        corruption = self.holes.begin(sender.una, sender.max)
        self.kept = corruption or sender.ecn_only
        if self.kept:
            sender.counters.eln_kept += corruption
            self.window = sender.growth.cwnd
        else:
            self.window = sender.reduce(self._flight)
        self.repair.begin(self._dupacks)

    def handle_eln(self, number: int) -> None:
        self.holes.tell(number, self.sender.una)

    def reduce(self) -> None:
        sender, before = self.sender, self.window
        self.kept = False
        self.window = sender.reduce(self._flight)
        self.repair.handle_reduction()
        sender.growth.hold(max(sender.growth.cwnd - before + self.window, sender.smss))

    def handle_ack(self, segment: Segment, acked: int, filled: bool, now: int) -> bool:
        sender = self.sender
        self._dupacks = 0
        sender.limited = 0
        if self.kept and not sender.ecn_only and self.holes.were_congestion(sender.una, acked):
            self.reduce()
        if self.active:
            if sender.ecn_only:
                # no congestion: the window may go on growing
                if filled and sender.grows_in_recovery:
                    sender.growth.handle_ack(acked, now)
                self.window = sender.growth.cwnd
            return self.repair.handle_ack(acked, now)
        if filled:
            sender.growth.handle_ack(acked, now)
        return True

    def end(self, cwnd: int) -> None:
        """End fast recovery."""
        self.active = self.urgent = self.governs = self.kept = False
        self.sender.growth.hold(cwnd)

    def handle_timeout(self) -> None:
        self.end(self.sender.growth.cwnd)
        self._after_timeout = True
        self._dupacks = 0
        self.recover = self.sender.max

    @override
    def end_timeout(self) -> None:
        """End the timeout; `recover` stays (RFC 5682 2.1, step 2): needless retransmissions will cause duplicates."""
        self._after_timeout = False

    @property
    def recovering(self) -> bool:
        return self._after_timeout and self.sender.una < self.recover

    def flight_before_loss(self) -> int:
        return self._flight if self._dupacks and not self.active else self.sender.flight

    def poll(self) -> tuple[int, int] | None:
        return self.repair.poll()
