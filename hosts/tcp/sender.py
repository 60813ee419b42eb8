"""The sending half of a connection: which octets may be sent next, and the effect of an acknowledgement.

Read first: RFC 5681 (windows), RFC 6298 section 5 (timer), RFC 9293 sections 3.8.4 and 3.8.6 (windows, probes, silly
window syndrome); `send_state.py` for the numbers, `recovery/__init__.py` for the repair of losses.

Choices: the window grows only by ACKs for data that filled it (RFC 7661's reason; RFC 5681 leaves it open). A zero
window is probed with one octet behind it, at the RTO with its backoff (RFC 9293 section 3.8.6.1).

A growth with a pacing rate spaces the segments (`pacing.py`), and one that samples gets delivery rates (`delivery.py`).

Left out: urgent data.
"""

from random import Random
from typing import Final

from common.sequence import MASK, unwrap
from hosts.tcp.accecn import Feedback
from hosts.tcp.config import TcpConfig
from hosts.tcp.counters import Counters
from hosts.tcp.delivery import DeliveryRate
from hosts.tcp.growth import GROWTHS
from hosts.tcp.lt.protection import Protection
from hosts.tcp.pacing import Pacer
from hosts.tcp.recovery import RECOVERIES
from hosts.tcp.recovery.frto import Frto
from hosts.tcp.send_state import INFINITE, SendState
from hosts.tcp.timing import RoundTrips
from tcpip.options import has_eln, smart_of
from tcpip.segment import ECE, SackBlock, Segment

#: RFC 6298 section 5.7
_RTO_AFTER_SYN_LOSS_NS: Final = 3_000_000_000

#: a segment to be sent: first octet, octets of data, whether the FIN follows them, whether all of it is new
Range = tuple[int, int, bool, bool]


class Sender(SendState):
    """Window, timer and retransmissions of one connection.

    Call `open` when the handshake is complete; then `handle_ack` for each segment with an acknowledgement, `poll` until
    None, `handle_deadline` at `persist_at` or, if that is None, at `rto_at`, and at `early_at` and `paced_at`.
    """

    __slots__ = (
        "_config",
        "_eln",
        "_max_window",
        "_persist_shift",
        "_probe_due",
        "_retries",
        "_sent_at",
        "_smart",
        "_timed_out_at",
        "_wl1",
        "_wl2",
        "ecn",
        "failed",
        "fallback",
        "frto",
        "paced_at",
        "pacer",
        "persist_at",
        "protection",
        "round_trips",
        "rto_at",
        "window_scale",
    )

    def __init__(self, config: TcpConfig, counters: Counters, first: int, rng: Random | None = None) -> None:
        super().__init__(config.timers, config.loss, config.handshake.mss, counters, first, rng)
        self._config = config
        self.window_scale = 0
        self._max_window = 0
        #: segment and acknowledgement of the last window update (SND.WL1, SND.WL2)
        self._wl1 = self._wl2 = 0
        #: agreed in the handshake
        self.ecn = False
        plugin = RECOVERIES[config.recovery.name]
        self._eln = config.loss.eln != "ignore"
        self._smart = plugin.asks_for == "smart"
        self.recovery = plugin.make(self, config.recovery.options)
        self.growth = GROWTHS[config.growth.name].make(self, config.growth.options)
        self.frto: Frto | None = None
        #: FEC and the size of segments, where the configuration asks for them (LT-TCP)
        self.protection: Protection | None = None
        self.nagle = config.buffers.nagle
        self.round_trips = RoundTrips(config.timers, self.rto, first)
        #: when anything was last sent
        self._sent_at = 0
        self.rto_at: int | None = None
        #: timeouts in a row, and the oldest octet at the latest one
        self._retries = 0
        self._timed_out_at = -1
        #: when to probe a window that takes nothing
        self.persist_at: int | None = None
        self._persist_shift = 0
        self._probe_due = False
        self.pacer = Pacer()
        #: when a segment that pacing holds back is due
        self.paced_at: int | None = None
        #: the peer has not answered `data_retries` retransmissions
        self.failed = False
        #: what it is in place of its configuration, as the peer has not agreed; None: itself, or not open
        self.fallback: str | None = None

    def open(self, ssthresh: int | None, lost_syns: int, now: int, fec: bool = False) -> None:
        """Begin to send: the handshake is complete, and its options are set; `fec`: the peer understands FEC."""
        config, smss = self._config, self.smss
        self.ecn_only = config.lt.ecn_only and self.ecn
        self.grows_in_recovery = self.ecn_only and config.lt.grow_in_recovery
        self.repeats_cwr = self.ecn_only and config.lt.repeat_cwr
        if config.lt.adaptive_mss or fec:
            self.protection = Protection(self, config.lt, fec)
        # RFC 5681 section 3.1: a lost SYN makes IW one segment
        careful = lost_syns > config.start.forgiven_syns
        cwnd = smss * (1 if careful else config.start.initial_window)
        if GROWTHS[config.growth.name].samples:
            self.delivery = DeliveryRate(self)
        self.growth.start(cwnd, INFINITE if ssthresh is None else max(ssthresh, 2 * smss))
        plugin = RECOVERIES[config.recovery.name]
        self.recovery = plugin.make(self, config.recovery.options)
        self.frto = Frto(self) if self.loss.frto else None
        self.fallback = self._fallback(plugin.asks_for == "sack", fec)
        self._sent_at = now
        if careful and self.rto.srtt_ns is None:
            self.rto.restart(max(config.timers.initial_rto_ns, _RTO_AFTER_SYN_LOSS_NS))

    def _fallback(self, asked_for_sack: bool, fec: bool) -> str | None:
        words = []
        if asked_for_sack and not self.sack:
            words.append(f"loss recovery {self._config.recovery.name} was NewReno, as SACK was not agreed")
        if (self._config.lt.proactive_fec or self._config.lt.reactive_fec) and not fec:
            words.append("LT-TCP was without FEC, as its option was not agreed")
        if self.growth.fallback is not None:
            words.append(self.growth.fallback)
        return "; ".join(words) or None

    # -- acknowledgements ------------------------------------------------------------------------------------

    def take_first_window(self, window: int, seq: int) -> None:
        """Take the window of a SYN, which is never scaled (RFC 7323 section 2.2)."""
        self.window = self._max_window = window
        self._wl1, self._wl2 = seq, self.una

    def update_window(self, segment: Segment, seq: int, ack: int) -> bool:
        """Take the window of a segment, if it is not older than the one in force; return whether it has changed."""
        if self._wl1 < seq or (self._wl1 == seq and self._wl2 <= ack):
            self._wl1, self._wl2 = seq, ack
            window = segment.window << self.window_scale
            if window != self.window:
                self.window = window
                if window > self._max_window:
                    self._max_window = window
                return True
        return False

    def handle_ack(self, segment: Segment, seq: int, now: int) -> bool:
        """Take the acknowledgement in a segment whose first number is `seq`; False: it is of octets never sent."""
        una = self.una
        # most data comes with an acknowledgement of nothing new, which needs no call
        ack = una if segment.ack == una & MASK else unwrap(segment.ack, una)
        if ack > self.max:
            return False
        fresh = 0
        delivered = una + self.board.sacked
        if self.delivery is not None:
            self._begin_sample(segment, ack, now)
        if segment.sack and self.sack:
            fresh = self._update_board(segment.sack, ack)
        if segment.extra and ack >= una:
            fresh += self._handle_options(segment, ack)
        if self.protection is not None and ack >= una:
            self.protection.handle_ack(segment, ack, fresh)
        if self.recovery.observes:
            self.recovery.handle_arrival(segment, ack, now)
        if ack > una:
            self._handle_new_ack(segment, seq, ack, now)
        elif ack == una:
            changed = self.update_window(segment, seq, ack)
            if self.persist_at is not None and self._usable_window():
                self._end_persist()
            # RFC 5681 section 2; with SACK, RFC 6675 section 2: its blocks must be new
            if (
                una < self.max
                and self.persist_at is None
                and not segment.length
                and not segment.flags & 0b111  # SYN, FIN, RST
                and (fresh or not (changed or self.sack))
            ):
                self.counters.dupacks += 1
                if self.frto is not None and self.frto.active:
                    self.frto.handle_dupack(segment)
                else:
                    self.recovery.handle_dupack(segment, now)
        if self.accecn is not None:
            self._handle_accecn(self.accecn, segment, self.una + self.board.sacked - delivered, now)
        elif self.ecn and segment.flags & ECE:
            self._handle_ecn_echo()
        if self.delivery is not None:
            self.delivery.finish(now)
        return True

    def _handle_accecn(self, feedback: Feedback, segment: Segment, newly_acked: int, now: int) -> None:
        """Take the counters of a segment (RFC 9768), which acknowledges `newly_acked` octets."""
        if newly_acked < 0 or feedback.is_superseded(segment, newly_acked):
            return
        packets, octets = feedback.handle_ack(segment, newly_acked, self.full_smss)
        if not feedback.heeds:
            packets = octets = 0
        if self.growth.scales:
            # without marks, too: it opens the window
            self.growth.handle_marks(newly_acked, octets, now)
        elif packets:
            self._handle_ecn_echo()

    def _begin_sample(self, segment: Segment, ack: int, now: int) -> None:
        """Begin the delivery rate sample of an ACK."""
        delivery, una = self.delivery, self.una
        assert delivery is not None
        delivery.begin()
        if ack > una:
            delivery.handle_acked(ack, now)
            una = ack
        blocks = segment.sack if self.sack else ()
        if self._smart and (arrived := smart_of(segment)) is not None:
            blocks = (arrived,)
        for left, right in blocks:
            start, end = unwrap(left, una), unwrap(right, una)
            if start < end <= self.max and end > una:
                delivery.handle_block(max(start, una), end, now)

    def _handle_new_ack(self, segment: Segment, seq: int, ack: int, now: int) -> None:
        una = self.una
        acked = ack - una
        # after a timeout there is always more to send
        filled = self.nxt < self.max or self.nxt - una + self.smss + self.fec_octets > self.growth.cwnd
        self.una = ack
        if self.nxt < ack:
            self.nxt = ack
        self.update_window(segment, seq, ack)
        buffer = self.buffer
        # the FIN is not in the buffer
        buffer.release(ack if ack <= buffer.end else buffer.end)
        self.round_trips.handle_ack(segment, una, ack, now)
        self._retries = 0
        if self.board.sacked:
            self.board.advance(ack)
        if self.resent:
            self.resent = {seq: sent for seq, sent in self.resent.items() if seq >= ack}
        if self.persist_at is not None:
            self._end_persist()
        restarts = True
        if self.frto is not None and self.frto.active:
            self.frto.handle_ack(segment, acked, now)
        else:
            restarts = self.recovery.handle_ack(segment, acked, filled, now)
        # RFC 6298 (5.2), (5.3)
        if ack == self.max:
            self.rto_at = None
        elif restarts:
            self.rto_at = self.rto.expiry(now)

    def _handle_options(self, segment: Segment, ack: int) -> int:
        """Take ELN and SMART, as far as they matter here; return how many octets were not known to have arrived."""
        if self._eln and has_eln(segment):
            self.recovery.handle_eln(ack)
        if self._smart and (arrived := smart_of(segment)) is not None:
            return self._update_board((arrived,), ack)
        return 0

    def _update_board(self, blocks: tuple[SackBlock, ...], ack: int) -> int:
        fresh = 0
        una, highest = max(self.una, ack), self.max
        for left, right in blocks:
            start, end = unwrap(left, una), unwrap(right, una)
            if start < end <= highest and end > una:
                fresh += self.board.add(max(start, una), end)
        return fresh

    def _handle_ecn_echo(self) -> None:
        """RFC 3168 section 6.1.2: as for a loss, once per window of data."""
        # CWR goes behind `_ecn_recover`: until that is acknowledged the peer goes on to echo
        if self.una <= self._ecn_recover:
            return
        if self.ecn_only:
            # of FlightSize, much may have arrived
            self.counters.ecn_reductions += 1
            self.growth.hold(min(self.growth.cwnd, self.reduce(self.growth.cwnd, marked=True)))
            return
        if self.recovery.active:
            if self.recovery.kept:
                self.counters.ecn_reductions += 1
                self.recovery.reduce()
            return
        self.counters.ecn_reductions += 1
        self.growth.hold(min(self.growth.cwnd, self.reduce(self.flight, marked=True)))

    # -- segments to send ------------------------------------------------------------------------------------

    def poll(self, now: int) -> Range | None:
        """Return the next segment, and count it as sent; None: nothing may be sent."""
        if self.growth.pacing_rate_bps is None:
            return self._poll(now)
        pacer = self.pacer
        if pacer.may_send(now):
            found = self._poll(now)
            if found is None:
                pacer.pause()
            return found
        if self.nxt < self.end or self.recovery.urgent or self._probe_due:
            pacer.wait()
            self.paced_at = pacer.next_at
        return None

    def _poll(self, now: int) -> Range | None:
        recovery = self.recovery
        if self.frto is not None and self.frto.active:
            found = self.frto.poll()
            return None if found is None else self._send(found[0], found[1], now)
        if recovery.urgent:
            found = recovery.poll()
            if found is not None:
                return self._send(found[0], found[1], now)
            if recovery.governs:
                return None
        if self._probe_due:
            return self._probe(now)
        nxt = self.nxt
        left = self.buffer.end + self.closing - nxt
        if left <= 0:
            return None
        if nxt < self.max:
            if self.board:
                return self._send_again(now)
        elif nxt == self.una and now - self._sent_at > self.rto.rto_ns:
            self._restart_after_idle()
        cwnd = self.growth.cwnd + self.limited - self.fec_octets
        usable = self.una + (cwnd if cwnd < self.window else self.window) - nxt
        smss = self.smss
        if left >= smss:
            # the FIN goes with the last octets or, when these fill a segment, on its own
            length = smss
        else:
            length = left
            if nxt == self.max and self.waits_for_ack(left):
                return None
        if length > usable:
            return self._send_less(nxt, length, usable, now)
        if self.persist_at is not None:
            # FEC segments have left that filled the window
            self._end_persist()
        return self._send(nxt, nxt + length, now)

    def _send_again(self, now: int) -> Range | None:
        """The timer has expired: go on from `nxt`, without the octets that the receiver holds."""
        hole = self.board.hole(self.nxt, self.max)
        if hole is None:
            self.nxt = start = self.max
            end = self.end
        else:
            start, end = hole
        in_flight = start - self.una - self.board.sacked_below(start)
        # not cut smaller than it was: every piece can be lost
        length = min(end - start, self.full_smss)
        if length <= 0 or length > min(self.growth.cwnd - in_flight, self.una + self.window - start):
            return None
        self.nxt = start
        return self._send(start, start + length, now)

    def _probe(self, now: int) -> Range | None:
        """The persist timer has expired: send the octets that fit, or one that does not."""
        self._probe_due = False
        usable = min(self.una + self.window, self.end) - self.nxt
        if usable > 0:
            self._end_persist()
            return self._send(self.nxt, self.nxt + min(usable, self.smss), now)
        self.counters.zero_window_probes += 1
        self.max = max(self.max, self.una + 1)
        self._sent_at = now
        fin = self.una == self.buffer.end
        return self.una, 0 if fin else 1, fin, False

    def _send_less(self, nxt: int, length: int, usable: int, now: int) -> Range | None:
        """The window has no room for a segment of `length`: RFC 9293 section 3.8.6.2.1, and the persist timer."""
        room = self.una + self.window - nxt
        if room >= length:
            # the congestion window is full; a FIN needs no room in that
            only_fin = nxt == self.buffer.end and usable >= 0
            if only_fin:
                return self._send(nxt, nxt + 1, now)
            if self.fec_octets and nxt == self.una and self.persist_at is None:
                # FEC segments alone fill the window. They or their reports may be lost, and a retransmission could not
                # go: when the persist timer expires a segment goes all the same, and its ACK shows that they have left
                self._start_persist(now)
            return None
        # the peer's window may be smaller than a segment for ever; ours never is
        if room == usable > 0 and 2 * usable >= self._max_window:
            return self._send(nxt, nxt + usable, now)
        if nxt == self.una and self.persist_at is None:
            self._start_persist(now)
        return None

    def _send(self, seq: int, end: int, now: int) -> Range:
        fin = end > self.buffer.end
        length = end - seq - fin
        fresh = seq >= self.max
        growth = self.growth
        if self.delivery is not None:
            growth.handle_transmit(now)
        if growth.pacing_rate_bps is not None:
            self.pacer.handle_sent(end - seq, growth.pacing_rate_bps, growth.send_quantum, now)
        if self.protection is not None and length:
            self.protection.handle_sent(seq, end - fin, self.max)
        if not fresh:
            self.counters.retransmits += 1
            self.counters.bytes_retransmitted += min(end, self.max) - seq
            self.round_trips.handle_sent_again(end)
            if self.resent is not None:
                self.resent[seq] = self.max, now
        elif not self.round_trips.timestamps:
            self.round_trips.handle_sent(end, now)
        if seq <= self.nxt < end:
            self.nxt = end
        if end > self.max:
            self.max = self.nxt = end
        self._sent_at = now
        if self.recovery.observes:
            self.recovery.handle_sent(seq, end, fresh, now)
        if self.delivery is not None:
            self.delivery.handle_sent(seq, end, fresh, now)
        if self.rto_at is None or (not fresh and self.loss.careful_timer and self.recovery.active):
            self.rto_at = self.rto.expiry(now)
        return seq, length, fin, fresh

    def _restart_after_idle(self) -> None:
        """RFC 5681 section 4.1."""
        start = self._config.start
        if start.restart_after_idle:
            self.growth.hold(min(self.growth.cwnd, start.initial_window * self.smss))

    # -- time ------------------------------------------------------------------------------------------------

    def handle_deadline(self, now: int) -> None:
        """Expire the timers that are due."""
        if self.paced_at is not None and now >= self.paced_at:
            self.paced_at = None
        if self.delivery is not None:
            self.delivery.check_app_limited()
        if self.recovery.observes and self._restarts_instead(now):
            self.rto_at = self.rto.expiry(now)
        if self.persist_at is not None:
            if now >= self.persist_at:
                self._persist_shift += 1
                self._start_persist(now)
                self._probe_due = True
        elif self.rto_at is not None and now >= self.rto_at:
            self._handle_timeout(now)

    def _restarts_instead(self, now: int) -> bool:
        """Let the recovery take its timer or the expiry of the retransmission timer, as `Recovery.handle_deadline`."""
        expired = self.persist_at is None and self.rto_at is not None and now >= self.rto_at
        if not expired and (self.early_at is None or now < self.early_at):
            return False
        return self.recovery.handle_deadline(expired, now)

    def _handle_timeout(self, now: int) -> None:
        """RFC 6298 (5.4) to (5.6), RFC 5681 section 3.1."""
        self.counters.timeouts += 1
        self._retries += 1
        if self._retries > self._config.timers.data_retries:
            self.failed = True
            self.rto_at = None
            return
        first = self.una != self._timed_out_at
        self._timed_out_at = self.una
        if self.board and self.board.covers(self.una):
            self.board.clear()
        flight = self.recovery.flight_before_loss()
        was_recovering = self.recovery.recovering
        cwnd = self.smss if self.protection is None else self.protection.handle_timeout()
        self.growth.handle_timeout(flight, cwnd, first=first, recovering=self.recovery.active)
        self.limited = 0
        self.note_reduction()
        self.nxt = self.una
        self.recovery.handle_timeout()
        if self.delivery is not None and not self.recovery.reports_losses:
            self.delivery.handle_lost(self.una, self.max, now)
        if self.frto is not None:
            self.frto.handle_timeout(may_begin=not was_recovering)
        self.rto.back_off()
        self.rto_at = self.rto.expiry(now)

    def _usable_window(self) -> bool:
        """Whether the peer's window takes a segment worth sending."""
        usable = self.una + self.window - self.nxt
        return usable >= min(self.smss, self.end - self.nxt) or (usable > 0 and 2 * usable >= self._max_window)

    def _start_persist(self, now: int) -> None:
        """Start the persist timer in place of the retransmission timer (RFC 9293 section 3.8.6.1)."""
        self.rto_at = None
        config = self._config.timers
        ns = max(self.rto.rto_ns, config.min_rto_ns) << min(self._persist_shift, 16)
        self.persist_at = self.rto.after(now, min(ns, config.max_rto_ns))

    def _end_persist(self) -> None:
        self.persist_at = None
        self._persist_shift = 0
        self._probe_due = False
