"""SACK (RFC 6675): the scoreboard says which segments to send again, the octets in the pipe say when.

Section and rule numbers are RFC 6675's. Where the peer has not agreed to SACK this is NewReno.
"""

from dataclasses import dataclass

from mypy_extensions import mypyc_attr
from typing_extensions import override

from hosts.tcp.recovery import RecoveryPlugin, newreno
from hosts.tcp.recovery.fast_recovery import FastRecovery, Repair
from hosts.tcp.scoreboard import DUP_THRESH
from hosts.tcp.send_state import SendState


@mypyc_attr(allow_interpreted_subclasses=True)
@dataclass(frozen=True, kw_only=True)
class SackOptions(newreno.NewRenoOptions):
    """SACK's retransmissions."""

    #: a retransmission is lost when a segment first sent after it has arrived, as in RACK where nothing is
    #: reordered (RFC 8985); else only the timer finds it
    lost_retransmissions: bool = False
    #: a recovery that keeps the window sends no more than has arrived, and a segment per partial ACK, as proportional
    #: rate reduction does (RFC 6937, PRR-SSRB): there may be congestion among the corruption
    conserve_kept: bool = False


class SackRepair(Repair):
    """Sections 4 and 5, from step 4 on: SetPipe and NextSeg."""

    def __init__(self, recovery: FastRecovery, options: SackOptions) -> None:
        super().__init__(recovery)
        #: whether the first retransmission, which does not ask for the pipe, is still to be sent
        self._first = False
        #: the first octet not retransmitted in this recovery (HighRxt + 1)
        self._high_rxt = 0
        #: no second rescue retransmission before this is acknowledged
        self._rescue_rxt = -1
        self._sees_lost_again = options.lost_retransmissions
        if self._sees_lost_again:
            self.sender.track_resent()
        self._conserves = options.conserve_kept
        #: octets that had arrived when the recovery began; sent in it; that may be sent in it beyond those that arrive
        self._arrived_before = self._out = self._bonus = 0

    @override
    def begin(self, dupacks: int) -> None:
        """Step 4."""
        recovery, sender = self.recovery, self.sender
        recovery.recover = sender.max
        recovery.governs = True
        sender.growth.hold(recovery.window)
        self._first = True
        self._high_rxt = sender.una
        self._rescue_rxt = -1
        self._arrived_before = sender.una + sender.board.sacked
        self._bonus = self._out = 0

    @override
    def handle_ack(self, acked: int, now: int) -> bool:
        """Steps A and B."""
        recovery, sender = self.recovery, self.sender
        self._bonus += sender.smss
        if sender.una >= recovery.recover:
            recovery.end(recovery.window)
        elif self._high_rxt < sender.una:
            self._high_rxt = sender.una
        return True

    @override
    def poll(self) -> tuple[int, int] | None:
        """Steps 4.3 and C, and NextSeg."""
        sender = self.sender
        una, end, smss, board = sender.una, sender.max, sender.smss, sender.board
        if self._first:
            self._first = False
            if smss < sender.full_smss and board:
                # not into octets that have arrived
                end = (board.hole(una, end) or (una, end))[1]
            return self._resend(una, end)
        pipe = board.pipe(una, end, self._high_rxt, smss, sender.repairable) + sender.fec_octets
        again = self._lost_again() if self._sees_lost_again else []
        if sender.growth.cwnd - pipe + sum(stop - start for start, stop in again) < smss:
            return None
        if self._conserves and self.recovery.kept and self._allowance() < smss:
            return None
        if again:
            return self._counted(*again[0])
        hole = board.hole(self._high_rxt, board.high) if board else None
        if hole is not None and hole[0] < min(board.lost_below(smss), sender.repairable):
            return self._resend(*hole)
        length = sender.new_segment()
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
        """Retransmissions of this recovery that are lost, oldest first, given that nothing is reordered."""
        sender, board = self.sender, self.sender.board
        high, lost = board.high if board else 0, []
        for start, (before, _) in sorted((sender.resent or {}).items()):
            if start < self._high_rxt and before < high and not board.covers(start):
                _, end = board.hole(start, high) or (start, start)
                lost.append((start, min(end, start + sender.smss)))
        return lost

    def _resend(self, start: int, end: int) -> tuple[int, int]:
        end = min(end, start + self.sender.full_smss)
        self._high_rxt = end
        if self.recovery.kept and not self.sender.ecn_only:
            self.recovery.holes.send_again(start)
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
        self._rescue_rxt = self.recovery.recover
        return start, missing_end


class Sack(FastRecovery):
    """Section 5, steps 1 to 3: losses are found by three duplicates or by the scoreboard."""

    def __init__(self, sender: SendState, options: SackOptions) -> None:
        super().__init__(sender, options, SackRepair)

    def _is_lost(self) -> bool:
        sender = self.sender
        return sender.una < sender.repairable and (
            self._dupacks >= DUP_THRESH
            or sender.board.lost_below(sender.smss) > sender.una
            or (self._at_once and self._is_news())
        )

    def _may_begin(self) -> bool:
        # section 5.1
        return self.sender.una >= self.recover

    def _limit(self) -> int:
        # step 3.3: by the pipe, so by the octets known to have arrived
        return self.sender.board.sacked

    @override
    def end_timeout(self) -> None:
        """Duplicates of needless retransmissions have no new blocks, so they do no harm."""
        super().end_timeout()
        self.recover = self.sender.una - 1

    @property
    @override
    def recovering(self) -> bool:
        """The RecoveryPoint of fast recovery counts, too."""
        return self.active or super().recovering


RECOVERY = RecoveryPlugin(
    name="sack",
    summary="SACK (RFC 6675); NewReno where the peer does not agree",
    make=newreno.unless_sack(Sack),
    asks_for="sack",
    options=SackOptions,
)
