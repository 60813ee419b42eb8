"""SMART: every acknowledgement says which segment caused it, and a gap is a loss.

Read first: COMPARISON sections 2.2, 3.1 and 5 (the subset of SMART meant here); `tcpip/options.py` for the option.

Rules: nothing is reordered, so at the first ACK with the option all missing octets below the highest one that has
arrived are lost. Lost segments are sent again as the window allows, oldest first. A segment is sent a second time only
when another has arrived that was first sent after its retransmission, and the smoothed round-trip time has passed since
that retransmission: nearly a tick with a clock of 500 ms, however short the path. Otherwise the timer has to expire.
The window is reduced once per window of data.

An ACK without the option counts as a plain duplicate: a recovery that such duplicates have begun is NewReno's.
"""

from typing_extensions import override

from hosts.tcp.recovery import RecoveryPlugin
from hosts.tcp.recovery.fast_recovery import FastRecovery, Repair
from hosts.tcp.recovery.newreno import NewRenoOptions, NewRenoRepair
from hosts.tcp.send_state import SendState
from tcpip.segment import Segment


class SmartRepair(Repair):
    """The gaps that SMART options have left on the scoreboard."""

    def __init__(self, recovery: FastRecovery) -> None:
        super().__init__(recovery)
        self.sender.track_resent()
        #: when the latest acknowledgement came
        self.now = 0
        #: whether the first retransmission, for which the window need not have room, is still to be sent
        self._first = False

    def begin(self, dupacks: int) -> None:
        recovery, sender = self.recovery, self.sender
        recovery.recover = sender.max
        recovery.governs = self._first = True
        sender.growth.hold(recovery.window)

    def handle_ack(self, acked: int, now: int) -> bool:
        if self.sender.una >= self.recovery.recover:
            self.recovery.end(self.recovery.window)
        return True

    @override
    def poll(self) -> tuple[int, int] | None:
        """The oldest loss, or new data."""
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
        if not (first and lost) and sender.growth.cwnd - pipe < smss:
            return None
        if lost is not None:
            if self.recovery.kept:
                self.recovery.holes.send_again(lost[0])
            return lost
        length = sender.new_segment()
        return (end, end + length) if length > 0 else None

    def _is_lost(self, start: int, high: int) -> bool:
        """Whether a missing segment is not under way again, given that octets up to `high` have arrived."""
        sender = self.sender
        if not sender.resent or start not in sender.resent:
            return True
        before, sent_at = sender.resent[start]
        return before < high and self.now - sent_at >= (sender.rto.srtt_ns or 0)


class Smart(FastRecovery):
    """Recovery from gaps where ACKs have told of one, and NewReno's from plain duplicates."""

    def __init__(self, sender: SendState, options: NewRenoOptions) -> None:
        super().__init__(sender, options, NewRenoRepair)
        self._plain = self.repair
        self._gaps = SmartRepair(self)

    def handle_dupack(self, segment: Segment, now: int) -> None:
        self._gaps.now = now
        super().handle_dupack(segment, now)

    @override
    def handle_ack(self, segment: Segment, acked: int, filled: bool, now: int) -> bool:
        """The scoreboard may show the next gap."""
        self._gaps.now = now
        restarts = super().handle_ack(segment, acked, filled, now)
        if not self.active and self._has_gap() and self._may_begin():
            self._flight = self.sender.flight
            self._begin()
        return restarts

    def _has_gap(self) -> bool:
        board = self.sender.board
        return bool(board) and not board.covers(self.sender.una)

    def _is_lost(self) -> bool:
        return self._has_gap() or super()._is_lost()

    def _may_begin(self) -> bool:
        return self.sender.una >= self.recover if self._has_gap() else super()._may_begin()

    def _begin(self) -> None:
        self.repair = self._gaps if self._has_gap() else self._plain
        super()._begin()

    @property
    @override
    def recovering(self) -> bool:
        """A recovery from gaps counts, too, as SACK's does."""
        return (self.active and self.repair is self._gaps) or super().recovering


RECOVERY = RecoveryPlugin(
    name="smart",
    summary="SMART, NewReno for plain duplicates",
    make=Smart,
    asks_for="smart",
    options=NewRenoOptions,
)
