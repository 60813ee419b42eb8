"""One TCP connection.

Read first: RFC 9293 (the machine; section 3.10.7 is `handle_segment`), RFC 5961 (which RST and SYN to believe), RFC
7323 (timestamps, window scale), RFC 3168 section 6.1.1 (ECN's handshake); README.md in this folder.

Order of calls, with `now` in ns never going back: `connect` or `listen` once; then `handle_segment` per segment that
came, the application's calls (`write`, `read`, `close`, ...) whenever it likes, `handle_deadline` at `next_deadline()`
(early calls do nothing); after any of these `poll_segment` until None, then `next_deadline` anew.

`sender.py` and `receiver.py` are the two halves. Here: handshake, FIN and RST, and what a segment looks like.

Left out: urgent data, data on a SYN, TCP Fast Open, keep-alives, path MTU discovery.
"""

from collections import deque

from common.sequence import MASK, precedes, unwrap
from hosts.tcp.config import MAX_UNSCALED_WINDOW, MAX_WINDOW_SCALE, MS, TcpConfig
from hosts.tcp.counters import Counters
from hosts.tcp.receiver import Receiver
from hosts.tcp.recovery import RECOVERIES
from hosts.tcp.send_state import INFINITE
from hosts.tcp.sender import Sender
from hosts.tcp.shared import Shared
from hosts.tcp.states import AFTER_CLOSE, AFTER_FIN, AFTER_OUR_FIN, RECEIVING, TO_BE_RESET, State
from tcpip.options import SMART_PERMITTED, permits_smart, smart_option
from tcpip.segment import (
    ACK,
    CWR,
    ECE,
    ECT0,
    FIN,
    NOT_ECT,
    PSH,
    RST,
    SYN,
    Flow,
    Segment,
    SynOptions,
    Timestamps,
)

__all__ = ["Connection", "Counters", "State", "reset_for"]

#: RFC 9293 section 3.7.1: what a peer takes that does not say
_DEFAULT_MSS = 536
#: timestamps on every segment, padded
_TIMESTAMP_BYTES = 12


# asked of every segment, and an enumeration is slow to say
_ESTABLISHED, _SYN_RECEIVED = State.ESTABLISHED, State.SYN_RECEIVED


class Connection:
    """One end of a TCP connection; `flow` is the direction it sends in, `iss` the 32-bit initial sequence number."""

    __slots__ = (
        "_config",
        "_counts_as_open",
        "_iss",
        "_outbox",
        "_receiver",
        "_scales",
        "_sender",
        "_shared",
        "_state_at",
        "_syn_at",
        "_syn_due",
        "_syn_sent_at",
        "_syns",
        "connected",
        "counters",
        "error",
        "flow",
        "state",
    )

    def __init__(self, config: TcpConfig, flow: Flow, iss: int, shared: Shared | None = None) -> None:
        self._config = config
        self._shared = shared
        self._iss = iss
        self.flow = flow
        self.state = State.CLOSED
        #: why the connection came to an end other than by FINs: one line, or None
        self.error: str | None = None
        #: whether the handshake is complete (and stays True afterwards)
        self.connected = False
        self.counters = Counters()
        self._sender = Sender(config, self.counters, iss + 1)
        # until the peer's first number is known
        self._receiver = Receiver(config, shared, 0)
        #: segments that are ready as they are
        self._outbox: deque[Segment] = deque()
        #: a SYN (or SYN-ACK) is to be sent; how many were, when the latest was, and when to send the next
        self._syn_due = False
        self._syns = 0
        self._syn_sent_at = 0
        self._syn_at: int | None = None
        #: the end of TIME-WAIT
        self._state_at: int | None = None
        self._counts_as_open = False
        #: whether both ends scale windows
        self._scales = False

    # -- the application -------------------------------------------------------------------------------------

    def connect(self, now: int) -> None:
        """Open actively: a SYN is ready to be polled."""
        self._require_unopened()
        self.state = State.SYN_SENT
        self._syn_due = True
        self._count_open()

    def listen(self) -> None:
        """Open passively: the next segment handed in is the SYN."""
        self._require_unopened()
        self.state = State.LISTEN

    def _require_unopened(self) -> None:
        if self.state is not State.CLOSED or self._syns:
            raise RuntimeError("a connection is opened once")

    @property
    def write_room(self) -> int:
        """Octets `write` would take now."""
        buffer = self._sender.buffer
        return max(0, self._config.send_buffer - (buffer.end - buffer.start))

    def write(self, data: bytes | int) -> int:
        """Take octets to send and return how many were taken; or take just so many (virtual time), always all.

        May be called as soon as the connection is opened. Raises RuntimeError after `close`.
        """
        if self._sender.closing:
            raise RuntimeError("nothing can be written after close")
        if isinstance(data, int):
            self._sender.buffer.append(data)
            return data
        taken = data[: self.write_room]
        self._sender.buffer.append(taken)
        return len(taken)

    @property
    def readable(self) -> int:
        """Octets received in order and not read yet."""
        return self._receiver.readable

    def read(self, most: int) -> bytes:
        """Take up to `most` of the received octets."""
        return self._receiver.read(most)

    def discard(self, most: int | None = None) -> int:
        """Take all received octets, or up to `most`, unseen, as an application does that only counts; return how many.

        What is not taken keeps the window small.
        """
        return self._receiver.discard(most)

    @property
    def fin_received(self) -> bool:
        """Whether the peer's FIN has come and everything before it, read or not."""
        receiver = self._receiver
        return receiver.fin is not None and receiver.nxt > receiver.fin

    @property
    def at_end(self) -> bool:
        """Whether the peer's FIN has come and everything before it was read."""
        return self.fin_received and not self._receiver.readable

    def close(self, now: int) -> None:
        """Send what was written, then FIN. Octets can still be received. No-op when closed already.

        Before the connection is established it waits for that if anything was written, and is given up otherwise.
        """
        written = self._sender.buffer.end > self._sender.buffer.start
        if self.state is State.LISTEN or (self.state is State.SYN_SENT and not written):
            self._end(None)
        elif self.state in AFTER_CLOSE and not self._sender.closing:
            self._sender.closing = True
            self.state = AFTER_CLOSE[self.state]

    def abort(self, now: int) -> None:
        """End at once; a RST is ready to be polled where the peer must hear of it."""
        if self.state in TO_BE_RESET:
            self._outbox.clear()
            self._outbox.append(self._segment(self._sender.nxt, RST | ACK, now))
        self._end(self.error or "aborted")

    # -- from the network ------------------------------------------------------------------------------------

    def handle_segment(self, segment: Segment, now: int) -> None:
        """Take one segment of this connection from the network."""
        self.counters.segments_received += 1
        state = self.state
        if state is not _ESTABLISHED:
            if state is State.CLOSED:
                answer = reset_for(segment)
                if answer is not None:
                    self._outbox.append(answer)
                return
            if state is State.LISTEN:
                self._handle_in_listen(segment, now)
                return
            if state is State.SYN_SENT:
                self._handle_in_syn_sent(segment, now)
                return

        receiver = self._receiver
        flags = segment.flags
        near = receiver.nxt
        seq = unwrap(segment.seq, near)
        length = segment.length
        plain = seq == near and not receiver.timestamps and not flags & (SYN | RST)
        if state is _SYN_RECEIVED and seq == near - 1 and flags & (SYN | ACK | RST) == SYN | ACK:
            # both have opened actively (RFC 9293 section 3.5, figure 8): this SYN was taken before
            plain = True
        if not plain and not self._check(segment, seq, now):
            return
        if not flags & ACK:
            return
        sender = self._sender
        if state is _SYN_RECEIVED:
            if segment.ack != sender.una & MASK:
                self._reset(segment)
                return
            self._establish(segment, seq, now)
            if flags & SYN:
                receiver.ack_due = True
                return
            state = self.state
        if not sender.handle_ack(segment, seq, now):
            # RFC 9293 section 3.10.7.4: it acknowledges what was never sent
            receiver.ack_due = True
            return
        if sender.closing and sender.una > sender.buffer.end:
            state = self._our_fin_acknowledged(now)
        if (length or flags & FIN) and (state is _ESTABLISHED or state in RECEIVING):
            receiver.handle_data(segment, seq, now)
            if receiver.fin is not None and receiver.nxt > receiver.fin:
                self._enter(AFTER_FIN[state], now)

    def _check(self, segment: Segment, seq: int, now: int) -> bool:
        """Whether a segment is acceptable; what is not gets its answer here."""
        receiver, flags = self._receiver, segment.flags
        stamps = segment.timestamps if receiver.timestamps else None
        if receiver.timestamps and not flags & RST:
            if stamps is None:
                # RFC 7323 section 3.2
                return False
            # PAWS (RFC 7323 section 5.3)
            if precedes(stamps[0], receiver.ts_recent):
                receiver.ack_due = True
                return False
        end = seq + segment.length + bool(flags & FIN) + bool(flags & SYN)
        if not receiver.offers(seq, end):
            if not flags & RST:
                receiver.ack_due = True
                if self.state is State.SYN_RECEIVED and flags & SYN:
                    # the peer has not heard our SYN-ACK
                    self._syn_due = True
                if self.state is State.TIME_WAIT and flags & FIN:
                    self._state_at = now + self._config.time_wait_ns
            return False
        if flags & RST:
            if seq == receiver.nxt:
                self._end("reset by the peer" if self.connected else "refused")
            else:
                # RFC 5961 section 3.2
                receiver.ack_due = True
            return False
        if flags & SYN:
            # RFC 5961 section 4.2
            receiver.ack_due = True
            return False
        if stamps is not None and seq <= receiver.last_ack:
            # RFC 7323 section 4.3: what a delayed ACK echoes is of the first segment it is for
            receiver.ts_recent = stamps[0]
        return True

    def _handle_in_listen(self, segment: Segment, now: int) -> None:
        if segment.flags & (SYN | ACK | RST) != SYN:
            answer = reset_for(segment)
            if answer is not None:
                self._outbox.append(answer)
            return
        self._take_syn(segment)
        self.state = State.SYN_RECEIVED
        self._syn_due = True
        self._count_open()

    def _handle_in_syn_sent(self, segment: Segment, now: int) -> None:
        flags = segment.flags
        acceptable = segment.ack == (self._iss + 1) & MASK
        if flags & ACK and not acceptable:
            self._reset(segment)
            return
        if flags & RST:
            if flags & ACK:
                self._end("refused")
            return
        if not flags & SYN:
            return
        self._take_syn(segment)
        if flags & ACK:
            self._establish(segment, self._receiver.nxt, now)
            self._receiver.ack_due = True
        else:
            # simultaneous open
            self.state = State.SYN_RECEIVED
            self._syn_due = True

    def _take_syn(self, segment: Segment) -> None:
        """Note the peer's first number and what its options agree to."""
        config, sender = self._config, self._sender
        options = segment.syn or SynOptions()
        receiver = self._receiver = Receiver(config, self._shared, segment.seq + 1)
        mss = min(config.mss, _DEFAULT_MSS if options.mss is None else options.mss)
        if config.timestamps and segment.timestamps is not None:
            sender.round_trips.timestamps = receiver.timestamps = True
            receiver.ts_recent = segment.timestamps[0]
            mss -= _TIMESTAMP_BYTES
        sender.smss = mss
        receiver.smart = self._wants_smart and permits_smart(segment)
        sender.sack = receiver.sack = self._wants_sack and options.sack_permitted
        if config.window_scaling and options.window_scale is not None:
            self._scales = True
            sender.window_scale = min(options.window_scale, MAX_WINDOW_SCALE)
            receiver.window_shift = self._window_shift
        asked = segment.flags & (ECE | CWR)
        sender.ecn = receiver.ecn = config.ecn and asked == (ECE if segment.flags & ACK else ECE | CWR)

    @property
    def _wants_sack(self) -> bool:
        return RECOVERIES[self._config.recovery].asks_for == "sack"

    @property
    def _wants_smart(self) -> bool:
        return RECOVERIES[self._config.recovery].asks_for == "smart"

    @property
    def _window_shift(self) -> int:
        shift = 0
        while self._config.receive_buffer >> shift > MAX_UNSCALED_WINDOW:
            shift += 1
        return shift

    def _establish(self, segment: Segment, seq: int, now: int) -> None:
        """The handshake is complete."""
        sender = self._sender
        self.connected = True
        self.state = State.FIN_WAIT_1 if sender.closing else State.ESTABLISHED
        self._syn_due, self._syn_at = False, None
        if self._syns == 1:
            sender.rto.handle_acked(self._syn_sent_at, now)
        ssthresh = self._config.initial_ssthresh
        if self._config.cbi and self._shared is not None:
            ssthresh = self._shared.ssthresh.get(self.flow.destination, ssthresh)
        sender.open(sender.smss, ssthresh, self._syns - 1, now)
        if segment.flags & SYN:
            sender.take_first_window(segment.window, seq)
        else:
            sender.update_window(segment, seq, sender.una)

    def _our_fin_acknowledged(self, now: int) -> State:
        state = AFTER_OUR_FIN.get(self.state)
        if state is not None:
            self._enter(state, now)
        return self.state

    def _enter(self, state: State, now: int) -> None:
        self.state = state
        if state is State.TIME_WAIT:
            self._state_at = now + self._config.time_wait_ns
            self._keep_ssthresh()
        elif state is State.CLOSED:
            self._end(None)

    def _reset(self, segment: Segment) -> None:
        answer = reset_for(segment)
        if answer is not None:
            self._outbox.append(answer)

    def _end(self, error: str | None) -> None:
        """Nothing is left to do but to send what lies in the outbox."""
        if self.state is State.CLOSED:
            return
        self.state = State.CLOSED
        self.error = error
        sender = self._sender
        sender.rto_at = sender.persist_at = self._syn_at = self._state_at = self._receiver.ack_at = None
        self._syn_due = self._receiver.ack_due = False
        self._keep_ssthresh()
        if self._shared is not None and self._counts_as_open:
            self._shared.open_connections -= 1
            self._counts_as_open = False

    def _count_open(self) -> None:
        if self._shared is not None:
            self._shared.open_connections += 1
            self._counts_as_open = True

    def _keep_ssthresh(self) -> None:
        """Leave what was learnt to the next connection (RFC 9040)."""
        if self._shared is not None and self.connected and self._sender.ssthresh < INFINITE:
            self._shared.ssthresh[self.flow.destination] = self._sender.ssthresh

    # -- to the network --------------------------------------------------------------------------------------

    def poll_segment(self, now: int) -> Segment | None:
        """Return the next segment to send, or None."""
        if self._outbox:
            self.counters.segments_sent += 1
            return self._outbox.popleft()
        if self.state is not _ESTABLISHED and (not self.connected or self.state is State.CLOSED):
            return self._syn(now) if self._syn_due else None
        receiver = self._receiver
        if receiver.ack_due and receiver.sack:
            # data segments have no room for SACK blocks
            blocks = receiver.blocks()
            if blocks:
                return self._acknowledgement(now, blocks)
        if receiver.cause is not None and receiver.ack_due and receiver.has_gap:
            # nor for the option that says what has come
            return self._acknowledgement(now, ())
        sender = self._sender
        found = sender.poll(now)
        if found is None:
            return self._acknowledgement(now, ()) if receiver.ack_due else None
        seq, length, fin, fresh = found
        counters = self.counters
        counters.segments_sent += 1
        flags = FIN | ACK if fin else ACK
        buffer = sender.buffer
        ecn = NOT_ECT
        if length:
            counters.data_segments_sent += 1
            counters.bytes_sent += length
            if seq + length == buffer.end:
                flags |= PSH
            if sender.ecn and fresh:
                # RFC 3168 section 6.1.5: not on what is sent again
                ecn = ECT0
                if sender.cwr_due:
                    sender.cwr_due = False
                    flags |= CWR
        if receiver.ecn_echo:
            flags |= ECE
        segment = Segment(
            self.flow,
            seq & MASK,
            receiver.nxt & MASK,
            flags,
            receiver.window(),
            length,
            buffer.take(seq, length),
            (),
            self._stamps(now) if receiver.timestamps else None,
            None,
            (),
            ecn,
        )
        receiver.acknowledged()
        return segment

    def _acknowledgement(self, now: int, blocks: tuple[tuple[int, int], ...]) -> Segment:
        self.counters.segments_sent += 1
        receiver, sender = self._receiver, self._sender
        segment = Segment(
            self.flow,
            sender.max & MASK,
            receiver.nxt & MASK,
            ACK | ECE if receiver.ecn_echo else ACK,
            receiver.window(),
            0,
            None,
            blocks,
            self._stamps(now) if receiver.timestamps else None,
            None,
            () if receiver.cause is None else (smart_option(receiver.cause.seq, receiver.cause.length),),
        )
        receiver.acknowledged()
        return segment

    def _syn(self, now: int) -> Segment:
        """Return the SYN, or the SYN-ACK where the peer's has come, and start its timer."""
        config, receiver, rto = self._config, self._receiver, self._sender.rto
        self._syn_due = False
        if self._syns:
            rto.back_off()
        self._syns += 1
        self._syn_sent_at = now
        self._syn_at = rto.expiry(now)
        self.counters.segments_sent += 1
        answering = self.state is State.SYN_RECEIVED
        if answering:
            sender = self._sender
            agreed = SynOptions(
                config.mss,
                receiver.window_shift if self._scales else None,
                sender.sack,
            )
            flags = SYN | ACK | (ECE if sender.ecn else 0)
            stamps = self._stamps(now) if receiver.timestamps else None
            permits = receiver.smart
        else:
            agreed = SynOptions(config.mss, self._window_shift if config.window_scaling else None, self._wants_sack)
            flags = SYN | (ECE | CWR if config.ecn else 0)
            stamps = (now // MS & MASK, 0) if config.timestamps else None
            permits = self._wants_smart
        shift, receiver.window_shift = receiver.window_shift, 0
        window = receiver.window()
        receiver.window_shift = shift
        number = receiver.nxt & MASK if answering else 0
        extra = (SMART_PERMITTED,) if permits else ()
        return Segment(self.flow, self._iss & MASK, number, flags, window, timestamps=stamps, syn=agreed, extra=extra)

    def _segment(self, seq: int, flags: int, now: int) -> Segment:
        """A segment without data."""
        receiver = self._receiver
        stamps = self._stamps(now) if receiver.timestamps else None
        return Segment(self.flow, seq & MASK, receiver.nxt & MASK, flags, receiver.window(), timestamps=stamps)

    def _stamps(self, now: int) -> Timestamps:
        return now // MS & MASK, self._receiver.ts_recent

    # -- time ------------------------------------------------------------------------------------------------

    def next_deadline(self) -> int | None:
        """When `handle_deadline` is due, or None."""
        sender = self._sender
        at = sender.rto_at if sender.persist_at is None else sender.persist_at
        ack_at = self._receiver.ack_at
        if at is None or (ack_at is not None and ack_at < at):
            at = ack_at
        other = self._state_at if self._syn_at is None else self._syn_at
        if other is not None and (at is None or other < at):
            return other
        return at

    def handle_deadline(self, now: int) -> None:
        """Expire whatever timer is due; nothing when early."""
        if self._syn_at is not None and now >= self._syn_at:
            if self._syns > self._config.syn_retries:
                self._end("no answer to the SYN")
                return
            self._syn_at = None
            self._syn_due = True
        if self._state_at is not None and now >= self._state_at:
            self._end(None)
            return
        self._receiver.handle_deadline(now)
        sender = self._sender
        sender.handle_deadline(now)
        if sender.failed:
            self._end("no answer to retransmissions")

    # -- for probes ------------------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """Whether nothing is left to do: no segment to send, no timer to wait for (TIME-WAIT is not over yet)."""
        return self.state is State.CLOSED and not self._outbox

    @property
    def drained(self) -> bool:
        """Whether everything written, and the FIN if there is one, was acknowledged."""
        return self._sender.una == self._sender.end

    @property
    def bytes_acked(self) -> int:
        """Payload octets the peer has acknowledged."""
        return self._sender.buffer.start - self._iss - 1

    @property
    def bytes_received(self) -> int:
        """Payload octets received in order."""
        return self._receiver.bytes_received

    @property
    def cwnd(self) -> int:
        """Congestion window, octets; 0 before the connection is established."""
        return self._sender.cwnd

    @property
    def ssthresh(self) -> int | None:
        """Slow start threshold, octets; None while it is as high as can be."""
        ssthresh = self._sender.ssthresh
        return ssthresh if ssthresh < INFINITE else None

    @property
    def flight(self) -> int:
        """FlightSize: octets sent and not acknowledged, the FIN included (RFC 5681 section 2)."""
        return self._sender.flight

    @property
    def smss(self) -> int:
        """Data octets of a full segment."""
        return self._sender.smss

    @property
    def srtt_ns(self) -> int | None:
        """Smoothed round-trip time; None before the first sample."""
        return self._sender.rto.srtt_ns

    @property
    def rto_ns(self) -> int:
        """Retransmission timeout, backoff included."""
        return self._sender.rto.rto_ns

    @property
    def sack_agreed(self) -> bool:
        """Whether both ends use SACK."""
        return self._sender.sack

    @property
    def timestamps_agreed(self) -> bool:
        """Whether both ends use timestamps."""
        return self._receiver.timestamps

    @property
    def ecn_agreed(self) -> bool:
        """Whether both ends use ECN."""
        return self._sender.ecn


def reset_for(segment: Segment) -> Segment | None:
    """Return the RST that answers a segment for which there is no connection (RFC 9293 section 3.10.7.1), or None."""
    flags = segment.flags
    if flags & RST:
        return None
    flow = segment.flow.reversed()
    if flags & ACK:
        return Segment(flow, segment.ack, 0, RST, 0)
    end = segment.seq + segment.length + bool(flags & SYN) + bool(flags & FIN)
    return Segment(flow, 0, end & MASK, RST | ACK, 0)
