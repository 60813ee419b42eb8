"""SMART: every acknowledgement says which segment caused it, and a gap is a loss.

Read first: COMPARISON sections 2.2, 3.1 and 5 (the subset of SMART meant here); `tcpip/options.py` for the option.

Rules: nothing is reordered, so all that is missing below the highest octet that has arrived is lost, at the first
duplicate that tells. What is lost is sent again as the window allows, oldest first, and a segment a second time only
when something has arrived that was sent for the first time after its retransmission, and the smoothed round-trip time
has passed since then: with a clock of 500 ms nearly all of that, however short the path. If nothing such comes, the
timer has to expire. The window is reduced once per window of data.

An ACK without the option counts as a plain duplicate; where none has it, this is NewReno.
"""

from typing import TYPE_CHECKING, ClassVar

from hosts.tcp.config import TcpConfig
from hosts.tcp.recovery import NewReno, Sack
from tcpip.segment import Segment

if TYPE_CHECKING:
    from hosts.tcp.sender import Sender


class Smart(Sack):
    """Selective recovery by what SMART options have left on the scoreboard."""

    name: ClassVar[str] = "smart"

    __slots__ = ("_informed", "_now")

    def __init__(self, sender: "Sender", config: TcpConfig) -> None:
        super().__init__(sender, config)
        #: whether this recovery knows what has arrived
        self._informed = False
        #: when the latest acknowledgement came
        self._now = 0

    def handle_dupack(self, segment: Segment, now: int) -> None:
        """See LossRecovery; the scoreboard is up to date."""
        self._now = now
        if not (self._informed if self.active else self._has_gap()):
            NewReno.handle_dupack(self, segment, now)
        elif not self.active:
            if not self._dupacks:
                self._flight = self.sender.flight
            self._dupacks += 1
            if self._may_enter():
                self._enter()

    def handle_ack(self, segment: Segment, acked: int, filled: bool, now: int) -> bool:
        """See LossRecovery; what is left on the scoreboard shows the next gap."""
        self._now = now
        restarts = super().handle_ack(segment, acked, filled, now)
        if not self.active and self._has_gap() and self._may_enter():
            self._flight = self.sender.flight
            self._enter()
        return restarts

    def _has_gap(self) -> bool:
        board = self.sender.board
        return bool(board) and not board.covers(self.sender.una)

    def _may_enter(self) -> bool:
        return super()._may_enter() if self._has_gap() else NewReno._may_enter(self)

    def end_timeout(self) -> None:
        """See LossRecovery; plain duplicates of what was sent needlessly would do harm."""
        NewReno.end_timeout(self)

    def _enter(self) -> None:
        self._informed = self._has_gap()
        if self._informed:
            super()._enter()
        else:
            NewReno._enter(self)

    def _handle_ack_in_recovery(self, acked: int, now: int) -> bool:
        if self._informed:
            return super()._handle_ack_in_recovery(acked, now)
        return NewReno._handle_ack_in_recovery(self, acked, now)

    def poll(self) -> tuple[int, int] | None:
        """See LossRecovery: the oldest loss, or new data."""
        if not self._informed:
            return NewReno.poll(self)
        sender = self.sender
        una, end, smss, board = sender.una, sender.max, sender.smss, sender.board
        high = board.high if board else una
        pipe = end - high
        lost: tuple[int, int] | None = None
        seq = una
        while (hole := board.hole(seq, high)) is not None:
            start = hole[0]
            seq = min(hole[1], start + smss)
            if not self._is_lost(start, high):
                pipe += seq - start
            elif lost is None:
                lost = start, seq
        first, self._first = self._first, False
        if not (first and lost) and sender.cwnd - pipe < smss:
            return None
        if lost is not None:
            if self.kept:
                self._holes.append(lost[0])
            return lost
        length = min(smss, sender.end - end, una + sender.window - end)
        return (end, end + length) if length > 0 else None

    def _is_lost(self, start: int, high: int) -> bool:
        """Whether a missing segment is not under way again, given that octets up to `high` have arrived."""
        sender = self.sender
        if not sender.resent or start not in sender.resent:
            return True
        before, sent_at = sender.resent[start]
        return before < high and self._now - sent_at >= (sender.rto.srtt_ns or 0)
