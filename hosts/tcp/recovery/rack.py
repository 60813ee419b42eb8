"""RACK-TLP (RFC 8985): a segment is lost when another that was sent later has arrived, and a little time has passed.

Read first: RFC 8985, whose section and variable names are used here; `transmissions.py`, `prr.py` (RFC 9937) and
`tail_probe.py`, the parts of this recovery.

Rules: every acknowledgement shows which transmission arrived last (steps 1 to 3 of section 6.2). Whatever was sent
before it, retransmissions included, is lost once the latest round trip and the reordering window have passed since
(step 5); a timer waits for that. The reordering window is nothing until reordering was seen, else a quarter of the
least round trip, and more with each round of D-SACKs (step 4). The first loss begins a recovery, which ends when all
that was outstanding then is acknowledged; proportional rate reduction sets its window. After a timeout RACK goes on to
say what is lost, and the window grows from one segment.

A reduction is taken back when D-SACKs tell that all its retransmissions were needless (RFC 3708), when an ACK echoes a
timestamp from before the first one (RFC 3522, Eifel), and when F-RTO finds the timeout spurious.

Choices: a lost retransmission does not reduce the window again (as in Linux; RFC 5681 section 4.3 would). The least
round trip is that of the whole connection. Explicit loss notifications are ignored.

Where the peer has not agreed to SACK this is NewReno.
"""

from typing import Final

from typing_extensions import override

from common.sequence import unwrap
from common.units import MS
from hosts.tcp.recovery import Recovery, RecoveryPlugin, newreno
from hosts.tcp.recovery.prr import Prr
from hosts.tcp.recovery.tail_probe import TailProbe
from hosts.tcp.recovery.transmissions import Transmission, Transmissions
from hosts.tcp.scoreboard import DUP_THRESH
from hosts.tcp.send_state import SendState
from tcpip.segment import Segment

#: section 6.2 step 4: recoveries without a D-SACK after which the reordering window is as at first
_PERSIST: Final = 16
#: the same: fractions of the least round trip in a reordering window
_FRACTION: Final = 4


class Rack(Recovery):
    """RACK's loss detection, tail loss probes, proportional rate reduction."""

    def __init__(self, sender: SendState) -> None:
        super().__init__(sender)
        self.observes = self.reports_losses = True
        #: outstanding segments
        self.sent = Transmissions()
        self._prr = Prr()
        self._probe = TailProbe(sender)
        #: octets of the probe that is to be sent now
        self._probe_range: tuple[int, int] | None = None
        self._limited_transmit = sender.loss.limited_transmit
        #: F-RTO, which is the sender's, says whether a timeout was spurious
        self._frto = sender.loss.frto
        #: the time of the latest event
        self.now = 0
        #: the segments that the latest ACK has told of; the octets that have arrived since the latest decision
        self._arrived: list[Transmission] = []
        self._delivered = 0
        #: RACK.rtt and RACK.min_RTT, RACK.xmit_ts and RACK.end_seq; -1: nothing has arrived
        self._rtt_ns = 0
        self._least_rtt_ns = -1
        self._sent_at = self._end = -1
        #: RACK.fack and RACK.reordering_seen
        self._fack = sender.una
        self._reordering_seen = False
        #: RACK.dsack_round (-1: none), RACK.reo_wnd_mult, RACK.reo_wnd_persist; and D-SACKs seen
        self._dsack_round = -1
        self._multiple = 1
        self._persist = _PERSIST
        self._dsacks = 0
        #: whether `early_at` is the reordering timer (else it is the PTO)
        self._waits = False
        #: end of the recovery, or of the retransmissions after a timeout
        self._recover = sender.una
        self._after_timeout = False
        #: the first segment after a timeout, for which the window need not have room, is still to be sent
        self._first = False
        #: cwnd and ssthresh to return to when the loss was none, None: no way back; its octets; its retransmissions
        #: that no D-SACK has called needless yet; when the first of them was sent (ns, -1: none was)
        self._windows_before: tuple[int, int] | None = None
        self._undo_from = self._undo_to = 0
        self._needless_left = 0
        self._resent_at = -1
        #: cwnd and ssthresh before a timeout
        self._windows_now = (0, 0)

    @property
    @override
    def recovering(self) -> bool:
        return self.active or (self._after_timeout and self.sender.una < self._recover)

    # -- observations: section 6.1, and steps 1 to 4 of section 6.2 -------------------------------------------

    @override
    def handle_sent(self, start: int, end: int, fresh: bool, now: int) -> None:
        self.now = now
        self.sent.handle_sent(start, end, not fresh, now)
        if self.active:
            self._prr.handle_sent(end - start)
        if not fresh:
            self._first = False
            if self._windows_before is not None and start < self._undo_to:
                self._needless_left += 1
                if self._resent_at < 0:
                    self._resent_at = now
        if fresh and not self._waits:
            self._arm_probe()

    @override
    def handle_arrival(self, segment: Segment, ack: int, now: int) -> None:
        self.now = now
        sender, sent, arrived = self.sender, self.sent, self._arrived
        arrived.clear()
        una = sender.una
        if ack > una:
            self._delivered += sent.advance(ack, arrived)
        blocks = segment.sack
        duplicate: tuple[int, int] | None = None
        if blocks:
            edges = [(unwrap(left, ack), unwrap(right, ack)) for left, right in blocks]
            duplicate = _duplicate_of(edges, ack)
            for start, end in edges:
                if ack < end <= sender.max and start < end:
                    last = sent.last
                    if last is not None and last.start < end == last.end - 1 == sender.buffer.end:
                        # blocks do not tell of the FIN behind the last octets
                        end += 1
                    self._delivered += sent.handle_block(max(start, ack), end, arrived)
        if ack < una:
            return
        echo_ms = -1
        if segment.timestamps is not None:
            now_ms = now // MS
            echo_ms = unwrap(segment.timestamps[1], now_ms)
        if arrived:
            self._update(arrived, echo_ms)
        if self._probe.is_out:
            is_plain = ack == una and not blocks and not segment.length
            if self._probe.handle_arrival(ack, duplicate, is_plain):
                sender.growth.hold(min(sender.growth.cwnd, sender.reduce(sender.flight)))
                self._windows_before = None
        self._see_duplicates(duplicate, ack)
        if ack > una and arrived and 0 <= echo_ms < self._resent_at // MS:
            head = arrived[0]
            if head.again and head.sent_at >= self._resent_at:
                # RFC 3522 section 3.2: it was sent again in this recovery, and the ACK is of an earlier transmission
                self._find_needless()

    def _update(self, arrived: list[Transmission], echo_ms: int) -> None:
        """Learn from segments that have arrived: steps 1 to 3."""
        now, fack = self.now, self._fack
        latest: Transmission | None = None
        for segment in arrived:
            if segment.end > self._fack:
                self._fack = segment.end
            elif segment.end < fack and not segment.again:
                self._reordering_seen = True
            rtt_ns = now - segment.sent_at
            if not segment.again:
                if rtt_ns < self._least_rtt_ns or self._least_rtt_ns < 0:
                    self._least_rtt_ns = rtt_ns
            elif 0 <= echo_ms < segment.sent_at // MS or rtt_ns < self._least_rtt_ns:
                # an earlier transmission of it has arrived
                continue
            if latest is None or (segment.sent_at, segment.end) > (latest.sent_at, latest.end):
                latest = segment
        if latest is not None:
            # section 5.2: of the segment that was sent last
            self._rtt_ns = now - latest.sent_at
            if (latest.sent_at, latest.end) > (self._sent_at, self._end):
                self._sent_at, self._end = latest.sent_at, latest.end

    def _see_duplicates(self, duplicate: tuple[int, int] | None, ack: int) -> None:
        """Take the D-SACK of an ACK: the first part of step 4, and RFC 3708 section 2."""
        if 0 <= self._dsack_round <= ack:
            self._dsack_round = -1
        # more of them than retransmissions: the network has doubled a segment
        if duplicate is None or self._dsacks >= self.sender.counters.retransmits:
            return
        self._dsacks += 1
        if self._dsack_round < 0:
            self._dsack_round = self.sender.max
            self._multiple += 1
            self._persist = _PERSIST
        if self._windows_before is not None and self._undo_from <= duplicate[0] < self._undo_to:
            self._needless_left -= 1
            if self._needless_left == 0:
                self._find_needless()

    # -- decisions ---------------------------------------------------------------------------------------------

    @override
    def handle_dupack(self, segment: Segment, now: int) -> None:
        self._decide(False)

    @override
    def handle_ack(self, segment: Segment, acked: int, filled: bool, now: int) -> bool:
        sender = self.sender
        ends = self.governs and sender.una >= self._recover
        if self.active:
            if ends:
                self._end_recovery(sender.growth.ssthresh)
        else:
            if ends:
                self._end_recovery(sender.growth.cwnd)
            if filled:
                sender.growth.handle_ack(acked, now)
        self._decide(True)
        return True

    def _decide(self, moves: bool) -> None:
        """Find losses after an ACK, which `moves` the window or does not; set windows and timers."""
        sender, sent = self.sender, self.sent
        before = sent.lost
        wait_ns = self._find_losses()
        if sent.lost and not self.governs:
            self._begin()
        elif self.active:
            # the timer leaves the window as the latest ACK has set it, so the segments it finds lost make room
            if self._delivered:
                sender.growth.hold(self._window(moves and sent.lost <= before))
        elif not self.governs and self._limited_transmit:
            # RFC 3042, by the number of segments that have arrived
            sender.limited = sender.board.sacked
        self._delivered = 0
        self._arm(wait_ns)

    def _window(self, safe: bool) -> int:
        sender = self.sender
        window = self._prr.window(self._delivered, self.sent.in_flight, safe, sender.smss)
        return max(window, sender.smss)

    def _reordering_window_ns(self) -> int:
        """Return RACK.reo_wnd: the last part of step 4."""
        if not self._reordering_seen and (self.governs or self.sent.arrived_segments >= DUP_THRESH):
            return 0
        window_ns = self._multiple * max(self._least_rtt_ns, 0) // _FRACTION
        return min(window_ns, self.sender.rto.srtt_ns or 0)

    def _find_losses(self) -> int:
        """Mark the lost segments (step 5); return the time until the next look, 0: no need for one."""
        wait_ns = 0
        candidates = self.sent.sent_before(self._sent_at, self._end)
        if candidates:
            patience_ns = self._rtt_ns + self._reordering_window_ns() - self.now
            for segment in candidates:
                left_ns = segment.sent_at + patience_ns
                if left_ns <= 0:
                    self.sent.mark_lost(segment)
                    self.sender.report_lost(segment.start, segment.end, self.now)
                elif left_ns > wait_ns:
                    wait_ns = left_ns
        return wait_ns

    def _begin(self) -> None:
        """Begin a recovery: RFC 5681 section 3.2 with RFC 9937's window."""
        sender = self.sender
        sender.counters.fast_retransmits += 1
        windows = sender.growth.cwnd, sender.growth.ssthresh
        outstanding = sender.flight - sender.board.sacked
        ssthresh = sender.reduce(self.flight_before_loss())
        self._prr.begin(ssthresh, outstanding + self._delivered)
        self._govern(windows)
        self.active = True
        sender.growth.hold(self._window(False))

    def _govern(self, windows: tuple[int, int]) -> None:
        """Let only `poll` send until all data outstanding now is acknowledged."""
        sender = self.sender
        self.urgent = self.governs = True
        sender.limited = 0
        self._recover = self._undo_to = sender.max
        self._undo_from = sender.una
        self._windows_before = windows
        self._needless_left = 0
        self._resent_at = -1
        self._probe.cancel()
        self._probe_range = None

    def _end_recovery(self, cwnd: int) -> None:
        self.active = self.urgent = self.governs = self._after_timeout = self._first = False
        self.sender.growth.hold(cwnd)
        # step 4
        self._persist -= 1
        if self._persist <= 0:
            self._multiple = 1

    def _find_needless(self) -> None:
        """The retransmissions were needless; of those that a timeout has caused F-RTO says so."""
        if not (self._after_timeout and self._frto):
            self._take_back()

    def _take_back(self) -> None:
        """The segments were late and not lost: return to the windows before."""
        if self._windows_before is None:
            return
        sender = self.sender
        cwnd, ssthresh = self._windows_before
        self._windows_before = None
        sender.counters.reductions_taken_back += 1
        self.sent.restore()
        sender.report_restored()
        if self.governs:
            self._end_recovery(sender.growth.cwnd)
        sender.growth.restore(cwnd, ssthresh)

    # -- timers ------------------------------------------------------------------------------------------------

    def _arm(self, wait_ns: int) -> None:
        """Set the reordering timer, the PTO or neither (section 8)."""
        self._waits = wait_ns > 0
        if self._waits:
            self.sender.early_at = self.now + wait_ns
        else:
            self._arm_probe()

    def _arm_probe(self) -> None:
        """Set the PTO (section 7.2)."""
        sender, sent = self.sender, self.sent
        may = sent.in_flight and not self.governs and not sent.arrived_segments and not self._probe.is_out
        sender.early_at = self.now + self._probe.timeout_ns() if may else None

    @override
    def handle_deadline(self, expired: bool, now: int) -> bool:
        self.now = now
        sender = self.sender
        self._windows_now = sender.growth.cwnd, sender.growth.ssthresh
        if sender.early_at is None:
            return False
        sender.early_at = None
        if self._waits:
            self._decide(False)
            return False
        # section 7.3
        last = self.sent.last
        self._probe_range = self._probe.send(None if last is None else (last.start, last.end))
        if self._probe_range is None:
            return False
        sender.counters.tail_probes += 1
        self.urgent = True
        return True

    @override
    def flight_before_loss(self) -> int:
        return min(self.sender.flight, self.sender.growth.cwnd)

    @override
    def handle_timeout(self) -> None:
        """Section 6.3 (RACK_mark_losses_on_RTO)."""
        sender, sent = self.sender, self.sent
        self.active = False
        self._govern(self._windows_now)
        self._after_timeout = self._first = True
        self._waits = False
        self._delivered = 0
        sender.early_at = None
        sender.nxt = sender.max
        sent.find_missing(sender.una, sender.max, sender.smss, sender.board, self.now)
        patience_ns = self._rtt_ns + self._reordering_window_ns()
        for segment in sent.flying():
            if segment.start == sender.una or segment.sent_at + patience_ns <= self.now:
                sent.mark_lost(segment)
                sender.report_lost(segment.start, segment.end, self.now)

    @override
    def end_timeout(self) -> None:
        self._take_back()

    # -- segments ----------------------------------------------------------------------------------------------

    @override
    def poll(self) -> tuple[int, int] | None:
        """A probe, the lowest lost segment, or new data."""
        sender, sent = self.sender, self.sent
        if self._probe_range is not None:
            found, self._probe_range = self._probe_range, None
            self.urgent = self.governs
            return found
        if not self.governs:
            return None
        # only this retransmits the lost segments
        sender.nxt = sender.max
        lost = sent.first_lost()
        room = sender.growth.cwnd - sent.in_flight
        if lost is not None:
            start, end = lost.start, min(lost.end, lost.start + sender.smss)
            if start > sender.una and end > sender.una + sender.window:
                return None
            return (start, end) if self._first or end - start <= room else None
        length = sender.new_segment()
        if 0 < length <= room and length == min(sender.smss, sender.end - sender.max):
            return sender.max, sender.max + length
        return None


def _duplicate_of(edges: list[tuple[int, int]], ack: int) -> tuple[int, int] | None:
    """Return the octets that a D-SACK tells of (RFC 2883 section 4), None when the first block is none."""
    start, end = edges[0]
    if start >= end:
        return None
    if end <= ack:
        return start, end
    if len(edges) > 1 and edges[1][0] <= start and end <= edges[1][1]:
        return start, end
    return None


RECOVERY = RecoveryPlugin(
    name="rack",
    summary="RACK-TLP (RFC 8985) and proportional rate reduction (RFC 9937); NewReno where the peer has no SACK",
    make=newreno.unless_sack(lambda sender, options: Rack(sender)),
    asks_for="sack",
    options=newreno.NewRenoOptions,
)
