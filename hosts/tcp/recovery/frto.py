"""F-RTO: was the timeout spurious?

Read first: RFC 5682, sections 2.1 (basic) and 3.1 (with SACK).

Rules: after a timeout the first segment is sent again, and nothing else until an acknowledgement has come. If it moves
the window, two new segments go out; if then data that was not sent again is acknowledged, the timeout was spurious.
In every other case conventional recovery goes on, go-back-N in slow start. With SACK, duplicates before the first
acknowledgement only fill the scoreboard, and octets behind the highest one sent before prove nothing.

Choice: a spurious timeout still halves the window (cwnd = ssthresh); RFC 5682 leaves the response open, and the cause
of a delay spike may well be congestion.
"""

from enum import Enum
from typing import Final

from hosts.tcp.send_state import SendState
from tcpip.segment import Segment

#: section 2.1, step 2b
_NEW_SEGMENTS: Final = 2
#: section 2.1, step 3a: the window after a genuine loss
_WINDOW_SEGMENTS: Final = 3


class _Step(Enum):
    #: the first segment has been sent again; wait for the first acknowledgement
    FIRST_ACK = 2
    #: two new segments may be sent; wait for the second
    SECOND_ACK = 3


class Frto:
    """The detection algorithm of one connection; while `active`, only it sends segments."""

    def __init__(self, sender: SendState) -> None:
        self._sender = sender
        self.active = False
        self._step = _Step.FIRST_ACK
        #: the first segment is still to be sent again
        self._resend = False
        #: new segments that may be sent
        self._credit = 0
        #: the octet behind the highest sent before the timeout
        self._recover = 0
        #: octets below that which were selectively acknowledged before step 3
        self._sacked = 0

    def handle_timeout(self, may_begin: bool) -> None:
        """Begin, unless an earlier loss is still being repaired (step 1).

        Another timeout before the first acknowledgement is no earlier loss: the algorithm begins anew.
        """
        self.active = may_begin or (self.active and self._step is _Step.FIRST_ACK)
        if self.active:
            sender = self._sender
            self._step = _Step.FIRST_ACK
            self._resend = True
            self._credit = 0
            self._recover = sender.max
            sender.nxt = sender.max

    def handle_ack(self, segment: Segment, acked: int, now: int) -> None:
        """Take an acknowledgement that has moved the window."""
        sender = self._sender
        if self._step is _Step.SECOND_ACK:
            if sender.sack and self._tells_of_new_data():
                self._end_in_step_3()
            else:
                self._end_spurious()
        elif sender.una >= self._recover or not self._may_send_new():
            self._end_genuine(sender.una)
            sender.growth.handle_ack(acked, now)
        else:
            self._step = _Step.SECOND_ACK
            self._credit = _NEW_SEGMENTS
            self._sacked = sender.board.sacked_below(self._recover)

    def handle_dupack(self, segment: Segment) -> None:
        """Take a duplicate acknowledgement."""
        sender = self._sender
        if self._step is _Step.FIRST_ACK:
            if not sender.sack:
                self._end_genuine(min(sender.una + sender.smss, sender.max))
        elif sender.board.sacked_below(self._recover) > self._sacked and not self._tells_of_new_data():
            # section 3.1: it tells of data that was not sent again
            self._end_spurious()
        else:
            self._end_in_step_3()

    def poll(self) -> tuple[int, int] | None:
        """Return the octets to send next, [start, end), or None."""
        sender = self._sender
        if self._resend:
            self._resend = False
            return sender.una, min(sender.una + sender.smss, sender.max)
        if self._credit and self._may_send_new():
            self._credit -= 1
            start = sender.max
            return start, start + min(sender.smss, sender.end - start)
        return None

    def _may_send_new(self) -> bool:
        sender = self._sender
        length = min(sender.smss, sender.end - sender.max)
        return 0 < length <= sender.una + sender.window - sender.max

    def _tells_of_new_data(self) -> bool:
        """Whether anything behind `_recover` was acknowledged."""
        sender = self._sender
        return sender.una > self._recover or (bool(sender.board) and sender.board.high > self._recover)

    def _end_in_step_3(self) -> None:
        sender = self._sender
        sender.growth.hold(_WINDOW_SEGMENTS * sender.smss)
        # segments sent after the timeout are not lost by it
        self._end_genuine(sender.una if sender.una < self._recover else sender.max)

    def _end_genuine(self, nxt: int) -> None:
        self.active = False
        self._sender.nxt = nxt

    def _end_spurious(self) -> None:
        sender = self._sender
        self.active = False
        sender.counters.spurious_timeouts += 1
        sender.growth.hold(sender.growth.ssthresh)
        sender.nxt = sender.max
        sender.recovery.end_timeout()
