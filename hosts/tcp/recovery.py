"""How lost segments are found and repaired: the sender's policies.

Read first: RFC 5681 section 3.2 (Reno), RFC 6582 (NewReno), RFC 6675 (SACK), RFC 3042 (limited transmit); COMPARISON
sections 2.3 and 3.1 (ELN); `smart.py` for one more.

Rules: a policy decides about `cwnd` and `ssthresh` and about retransmissions while it is `active` (in fast recovery);
the sender does everything else, go-back-N after a timeout included. `recover` is the octet behind the highest one sent
when the present recovery or the last timeout began (RFC 6582's recover + 1, RFC 6675's RecoveryPoint + 1).

ELN, with every policy: a recovery begins with a hole, and each further one shows as a partial acknowledgement. Holes of
which an ACK has said that they are corruption leave the window as it is; the first that is acknowledged without such a
word reduces it, once in a recovery. A timeout reduces it always. Reno's `recover` is where the window was last reduced.

A new policy is a class here or in a module of its own, and a line in `policies.POLICIES`: it may look at the
acknowledging segment's options, resend something else, or reduce less.

Left out: proportional rate reduction (RFC 6937), RACK and TLP (RFC 8985).
"""

from typing import TYPE_CHECKING, ClassVar, Protocol

from hosts.tcp.config import TcpConfig
from hosts.tcp.scoreboard import DUP_THRESH
from tcpip.segment import Segment

if TYPE_CHECKING:
    from hosts.tcp.sender import Sender

#: RFC 3042: new segments the first two dupacks may each clock out
_LIMITED_SEGMENTS = 2


class LossRecovery(Protocol):
    """One connection's policy."""

    #: whether `poll` must be asked before anything else is sent
    urgent: bool
    #: whether nothing but what `poll` returns may be sent
    governs: bool
    #: whether fast recovery is going on
    active: bool
    #: whether it has left the window as it was: every hole until now was corruption
    kept: bool

    @property
    def recovering(self) -> bool:
        """Whether a loss is still being repaired for which F-RTO must not begin (RFC 5682, step 1)."""

    def handle_dupack(self, segment: Segment, now: int) -> None:
        """Take a duplicate acknowledgement."""

    def handle_ack(self, segment: Segment, acked: int, filled: bool, now: int) -> bool:
        """Take an acknowledgement of `acked` new octets, already off the sender's books; return whether the
        retransmission timer starts again. `filled`: the congestion window was in use.
        """

    def handle_eln(self, number: int) -> None:
        """Take an explicit loss notification: the segment at `number`, `una` or above, was lost by corruption."""

    def reduce(self) -> None:
        """Reduce the window of a recovery that has kept it."""

    def handle_timeout(self) -> None:
        """The retransmission timer has expired; windows are set, `nxt` goes back to `una` next."""

    def end_timeout(self) -> None:
        """The timeout was spurious: what was sent before it is not lost."""

    def flight_before_loss(self) -> int:
        """FlightSize without what limited transmit has sent (RFC 5681 section 3.2, step 2)."""

    def poll(self) -> tuple[int, int] | None:
        """Return what to send next, [start, end), or None."""


class Reno:
    """Fast retransmit and fast recovery of RFC 5681: any new acknowledgement ends it."""

    name: ClassVar[str] = "reno"

    __slots__ = (
        "_after_timeout",
        "_at_once",
        "_corrupt",
        "_dupacks",
        "_flight",
        "_grows_after",
        "_holes",
        "_impatient",
        "_jumped_counts",
        "_limited_transmit",
        "_once",
        "_one_told",
        "_told_until",
        "_window",
        "active",
        "governs",
        "kept",
        "recover",
        "sender",
        "urgent",
    )

    def __init__(self, sender: "Sender", config: TcpConfig) -> None:
        self.sender = sender
        self.urgent = self.governs = self.active = self.kept = False
        # The SYN is what "was sent before": losses of the first window count.
        self.recover = sender.una - 1
        self._after_timeout = False
        self._dupacks = 0
        #: FlightSize when the first dupack came
        self._flight = 0
        self._limited_transmit = config.limited_transmit
        self._impatient = config.impatient
        self._once = config.one_reduction_per_window
        self._grows_after = config.grow_after_recovery
        #: what the window is after this recovery
        self._window = 0
        #: holes that are corruption, by their first octets
        self._corrupt: set[int] = set()
        #: whether ELN tells of one hole of a window only, and where the window of the latest recovery ends
        self._one_told = config.eln_once_per_window
        self._told_until = sender.una
        #: those that were sent again while the window is kept
        self._holes: list[int] = []
        self._at_once = config.eln == "retransmit"
        self._jumped_counts = config.jumped_is_congestion

    @property
    def recovering(self) -> bool:
        """See LossRecovery."""
        return self._after_timeout and self.sender.una < self.recover

    def flight_before_loss(self) -> int:
        """See LossRecovery."""
        return self._flight if self._dupacks and not self.active else self.sender.flight

    def handle_dupack(self, segment: Segment, now: int) -> None:
        """See LossRecovery."""
        sender = self.sender
        if self.active:
            # the segment that caused it has left the network
            sender.cwnd += sender.smss
            return
        if not self._dupacks:
            self._flight = sender.flight
        self._dupacks += 1
        third = self._dupacks == DUP_THRESH
        if (third and self._may_enter()) or ((third or self._at_once) and self._is_news()):
            self._enter()
        elif self._limited_transmit and self._dupacks <= _LIMITED_SEGMENTS and sender.nxt == sender.max:
            # only new data (RFC 3042), not what a timeout is sending again
            sender.limited = self._dupacks * sender.smss

    def _may_enter(self) -> bool:
        # RFC 6582 section 3.2 step 1: not for segments sent before a timeout; also RFC 5681's advice
        return not self._once or self.sender.una > self.recover

    def _is_news(self) -> bool:
        """Whether the first hole is corruption, and was not sent again yet: then nothing can be a duplicate of it."""
        una, resent = self.sender.una, self.sender.resent
        return una in self._corrupt and not (resent and una in resent)

    def _enter(self) -> None:
        sender = self.sender
        self.active = self.urgent = True
        self._after_timeout = False
        sender.counters.fast_retransmits += 1
        self.kept = sender.una in self._corrupt
        self._holes.clear()
        self._told_until = sender.max
        if self.kept:
            sender.counters.eln_kept += 1
            self._window = sender.cwnd
        else:
            self._reduce()
        sender.cwnd = self._window + self._dupacks * sender.smss
        sender.limited = 0

    def _reduce(self) -> None:
        sender = self.sender
        self.recover = sender.max
        self._window = sender.ssthresh = sender.growth.handle_loss(self._flight)
        sender.note_reduction()

    def handle_eln(self, number: int) -> None:
        """See LossRecovery."""
        una = self.sender.una
        if self._one_told and number < self._told_until and number not in self._corrupt:
            return
        self._corrupt = {number, *(known for known in self._corrupt if known >= una)}

    def reduce(self) -> None:
        """See LossRecovery."""
        sender, before = self.sender, self._window
        self.kept = False
        self._reduce()
        sender.cwnd = max(sender.cwnd - before + self._window, sender.smss)

    def _judge(self, acked: int) -> None:
        """Look at the holes that are acknowledged: one that no ACK has called corruption was congestion."""
        una = self.sender.una
        closed = {number for number in self._holes if number < una}
        if closed:
            self._holes = [number for number in self._holes if number >= una]
            if not self._jumped_counts:
                closed &= {una - acked}
            if not self._corrupt.issuperset(closed):
                self.reduce()

    def handle_ack(self, segment: Segment, acked: int, filled: bool, now: int) -> bool:
        """See LossRecovery."""
        sender = self.sender
        self._dupacks = 0
        sender.limited = 0
        if self.kept:
            self._judge(acked)
        if self.active:
            return self._handle_ack_in_recovery(acked, now)
        if filled:
            sender.growth.handle_ack(acked, now)
        return True

    def _handle_ack_in_recovery(self, acked: int, now: int) -> bool:
        self._leave(self._window)
        if self._grows_after:
            self.sender.growth.handle_ack(acked, now)
        return True

    def _leave(self, cwnd: int) -> None:
        self.active = self.urgent = self.governs = self.kept = False
        self.sender.cwnd = cwnd

    def handle_timeout(self) -> None:
        """See LossRecovery."""
        self._leave(self.sender.cwnd)
        self._after_timeout = True
        self._dupacks = 0
        self.recover = self.sender.max

    def end_timeout(self) -> None:
        """See LossRecovery.

        `recover` stays (RFC 5682 section 2.1, step 2): what was sent again needlessly will cause duplicates.
        """
        self._after_timeout = False

    def poll(self) -> tuple[int, int] | None:
        """See LossRecovery: the oldest segment, once."""
        sender = self.sender
        self.urgent = False
        if self.kept:
            self._holes.append(sender.una)
        return sender.una, min(sender.una + sender.smss, sender.max)


class NewReno(Reno):
    """RFC 6582: a partial acknowledgement means that the next segment is lost as well."""

    name: ClassVar[str] = "newreno"

    __slots__ = ("_partial",)

    def __init__(self, sender: "Sender", config: TcpConfig) -> None:
        super().__init__(sender, config)
        #: whether a partial acknowledgement has come in this recovery
        self._partial = False

    def _enter(self) -> None:
        super()._enter()
        self.recover = self.sender.max
        self._partial = False

    def reduce(self) -> None:
        """See LossRecovery; what was sent in the meantime is not part of this recovery."""
        recover = self.recover
        super().reduce()
        self.recover = recover

    def _handle_ack_in_recovery(self, acked: int, now: int) -> bool:
        sender = self.sender
        smss = sender.smss
        if sender.una >= self.recover:
            # section 3.2, step 3, the first of the two choices: no burst; what ELN has kept is kept whole
            self._leave(self._window if self.kept else min(self._window, max(sender.flight, smss) + smss))
            return True
        self.urgent = True
        sender.cwnd = max(sender.cwnd - acked + (smss if acked >= smss else 0), smss)
        restarts = not (self._partial and self._impatient)
        self._partial = True
        return restarts


class Sack(NewReno):
    """RFC 6675: what to resend follows from the scoreboard, when from the octets in the pipe."""

    name: ClassVar[str] = "sack"

    __slots__ = (
        "_arrived_before",
        "_bonus",
        "_conserves",
        "_first",
        "_high_rxt",
        "_out",
        "_rescue_rxt",
        "_sees_lost_again",
    )

    def __init__(self, sender: "Sender", config: TcpConfig) -> None:
        super().__init__(sender, config)
        #: whether the first retransmission, which does not ask for the pipe, is still to be sent
        self._first = False
        #: the first octet not retransmitted in this recovery (HighRxt + 1)
        self._high_rxt = 0
        #: no second rescue retransmission before this is acknowledged
        self._rescue_rxt = -1
        self._sees_lost_again = config.lost_retransmissions
        self._conserves = config.conserve_kept
        #: octets that had arrived when the recovery began; sent in it; and may be sent beyond what has arrived
        self._arrived_before = self._out = self._bonus = 0

    @property
    def recovering(self) -> bool:
        """See LossRecovery; the RecoveryPoint of fast recovery counts, too."""
        return self.active or super().recovering

    def end_timeout(self) -> None:
        """See LossRecovery; duplicates of what was sent needlessly tell nothing new, so they do no harm."""
        super().end_timeout()
        self.recover = self.sender.una - 1

    def handle_dupack(self, segment: Segment, now: int) -> None:
        """See LossRecovery; the scoreboard is up to date."""
        if self.active:
            return
        sender = self.sender
        if not self._dupacks:
            self._flight = sender.flight
        self._dupacks += 1
        lost = self._dupacks >= DUP_THRESH or sender.board.lost_below(sender.smss) > sender.una
        lost = lost or (self._at_once and self._is_news())
        if lost and self._may_enter():
            self._enter()
        elif self._limited_transmit and not lost and sender.nxt == sender.max:
            # section 5 (3.3): by the pipe, that is by what is known to have arrived
            sender.limited = sender.board.sacked

    def _may_enter(self) -> bool:
        # section 5.1
        return self.sender.una >= self.recover

    def _enter(self) -> None:
        super()._enter()
        sender = self.sender
        sender.cwnd = self._window
        self._high_rxt = sender.una
        self._rescue_rxt = -1
        self._first = self.governs = True
        self._arrived_before = sender.una + sender.board.sacked
        self._bonus = self._out = 0

    def _handle_ack_in_recovery(self, acked: int, now: int) -> bool:
        sender = self.sender
        self._bonus += sender.smss
        if sender.una >= self.recover:
            self._leave(self._window)
        elif self._high_rxt < sender.una:
            self._high_rxt = sender.una
        return True

    def poll(self) -> tuple[int, int] | None:
        """See LossRecovery: steps 4.3 and C, and NextSeg."""
        sender = self.sender
        una, end, smss, board = sender.una, sender.max, sender.smss, sender.board
        if self._first:
            self._first = False
            return self._resend(una, end)
        pipe = board.pipe(una, end, self._high_rxt, smss)
        again = self._lost_again() if self._sees_lost_again else []
        if sender.cwnd - pipe + sum(stop - start for start, stop in again) < smss:
            return None
        if self._conserves and self.kept and self._allowance() < smss:
            return None
        if again:
            return self._counted(*again[0])
        hole = board.hole(self._high_rxt, board.high) if board else None
        if hole is not None and hole[0] < board.lost_below(smss):
            return self._resend(*hole)
        length = min(smss, sender.end - end, una + sender.window - end)
        if length > 0:
            return self._counted(end, end + length)
        if hole is not None:
            return self._resend(*hole)
        return self._rescue(una, end)

    def _allowance(self) -> int:
        """Octets that may be sent in this recovery: those that have arrived, and a segment for each partial ACK."""
        return self.sender.una + self.sender.board.sacked - self._arrived_before + self._bonus - self._out

    def _counted(self, start: int, end: int) -> tuple[int, int]:
        self._out += end - start
        return start, end

    def _lost_again(self) -> list[tuple[int, int]]:
        """What this recovery has sent again in vain, oldest first, given that nothing is reordered."""
        sender, board = self.sender, self.sender.board
        if not (sender.resent and board):
            return []
        high, lost = board.high, []
        for start in sorted(sender.resent):
            before, _ = sender.resent[start]
            if sender.una <= start < self._high_rxt and before < high and not board.covers(start):
                hole = board.hole(start, high)
                if hole is not None:
                    lost.append((start, min(hole[1], start + sender.smss)))
        return lost

    def _resend(self, start: int, end: int) -> tuple[int, int]:
        end = min(end, start + self.sender.smss)
        self._high_rxt = end
        if self.kept:
            self._holes.append(start)
        return self._counted(start, end)

    def _rescue(self, una: int, end: int) -> tuple[int, int] | None:
        """The fourth rule: the last segment once more, once per recovery.

        Choice: not when this recovery has sent it again already; the rule is about an end of the window that nothing
        received lies behind.
        """
        board = self.sender.board
        if una <= self._rescue_rxt:
            return None
        missing_end = end
        if board and board.high == end:
            # the highest octet not marked is in front of the last range
            missing_end = board.ranges[-1][0]
        start = max(una, missing_end - self.sender.smss)
        if start >= missing_end or missing_end <= self._high_rxt:
            return None
        self._rescue_rxt = self.recover
        return start, missing_end
