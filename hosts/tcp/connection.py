"""One TCP connection.

Read first: RFC 9293 (the machine; section 3.10.7 is `handle_segment`), RFC 5961 (which RST and SYN to believe), RFC
7323 section 5 (PAWS); README.md in this folder.

Order of calls, with `now` in ns never going back: `connect` or `listen` once; then `handle_segment` per segment that
came, the application's calls (`write`, `read`, `close`, ...) whenever it likes, `handle_deadline` at `next_deadline()`
(early calls do nothing); after any of these `poll_segment` until None, then `next_deadline` anew.

`sender.py` and `receiver.py` are the two halves, `handshake.py` has the SYN and its options, `endpoint.py` the
application's octets. Here: the states, FIN and RST, segments in and out.

Left out: urgent data, data on a SYN, TCP Fast Open, keep-alives, path MTU discovery.
"""

from random import Random
from typing import Final

from common.sequence import MASK, precedes, unwrap
from hosts.tcp.accecn import ace_flags, ace_of
from hosts.tcp.config import TcpConfig
from hosts.tcp.counters import Counters
from hosts.tcp.endpoint import Endpoint
from hosts.tcp.handshake import Handshake
from hosts.tcp.lt.protection import Shard
from hosts.tcp.send_state import INFINITE
from hosts.tcp.shared import Shared
from hosts.tcp.states import AFTER_CLOSE, AFTER_FIN, AFTER_OUR_FIN, RECEIVING, TO_BE_RESET, State
from tcpip.options import fec_of, fec_option, report_option, smart_option
from tcpip.segment import ACK, CWR, ECT0, FIN, NOT_ECT, PSH, RST, SYN, Flow, Option, SackBlock, Segment

__all__ = ["Connection", "Counters", "State", "reset_for"]

# compared with for every segment; the attribute of an enumeration is slow
_ESTABLISHED: Final = State.ESTABLISHED
_SYN_RECEIVED: Final = State.SYN_RECEIVED


class Connection(Endpoint):
    """One end of a TCP connection; `flow` is the direction it sends in, `iss` the 32-bit initial sequence number.

    `rng` is the host's generator, for window growths that draw; without one the connection has its own, of seed `iss`.
    """

    def __init__(
        self, config: TcpConfig, flow: Flow, iss: int, shared: Shared | None = None, rng: Random | None = None
    ) -> None:
        super().__init__(config, flow, iss, shared, rng)
        self._shared = shared
        self._handshake = Handshake(config, flow, iss, self._sender, self._receiver)
        #: the end of TIME-WAIT
        self._state_at: int | None = None
        self._counts_as_open = False

    # -- the application -------------------------------------------------------------------------------------

    def connect(self, now: int) -> None:
        """Open actively: a SYN is ready to be polled."""
        self._check_unopened()
        self.state = State.SYN_SENT
        self._handshake.due = True
        self._count_open()

    def listen(self) -> None:
        """Open passively: the next segment handed in is the SYN."""
        self._check_unopened()
        self.state = State.LISTEN

    def _check_unopened(self) -> None:
        if self.state is not State.CLOSED or self._handshake.sent:
            raise RuntimeError("a connection is opened once")

    def close(self, now: int) -> None:
        """Send all written octets, then FIN. Octets can still be received. No-op when closed already.

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
            self._outbox.append(self._reset_segment(now))
        self._end(self.error or "aborted")

    # -- from the network ------------------------------------------------------------------------------------

    def handle_segment(self, segment: Segment, now: int) -> None:
        """Take one segment of this connection from the network."""
        self.counters.segments_received += 1
        state = self.state
        if state is not _ESTABLISHED:
            if state is State.CLOSED:
                self._reset(segment)
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
        # most segments are the next ones, which need no call
        seq = near if segment.seq == near & MASK else unwrap(segment.seq, near)
        length = segment.length
        decoder = receiver.decoder
        if decoder is not None and length:
            if decoder.is_near(seq - near):
                decoder.count += 1
            if segment.extra and (fec := fec_of(segment)) is not None:
                # behind the peer's oldest octet under way, and so behind the next one expected
                if seq + length <= near and decoder.is_near(seq + length - near):
                    self._handle_fec(segment, fec, now)
                return
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
            if sender.accecn is not None and not flags & SYN and not length and not segment.sack:
                sender.accecn.handle_first_ack(ace_of(segment))
            self._establish(segment, seq, now)
            if flags & SYN:
                receiver.ack_due = True
                return
            state = self.state
        if receiver.accecn is not None and not flags & SYN:
            receiver.handle_marks(segment, receiver.accecn)
        if not sender.handle_ack(segment, seq, now):
            # RFC 9293 section 3.10.7.4: it acknowledges octets that were never sent
            receiver.ack_due = True
            return
        if sender.closing and sender.una > sender.buffer.end:
            state = self._our_fin_acknowledged(now)
        if (length or flags & FIN) and (state is _ESTABLISHED or state in RECEIVING):
            receiver.handle_data(segment, seq, now)
            if receiver.fin is not None and receiver.nxt > receiver.fin:
                self._enter(AFTER_FIN[state], now)

    def _handle_fec(self, segment: Segment, fec: tuple[int, int, int, int, int], now: int) -> None:
        """Take a FEC segment. Its window is not looked at, since its number is an old one, and its acknowledgement must
        be one that this end could have got (RFC 5961 section 5.2).
        """
        receiver, sender, flags = self._receiver, self._sender, segment.flags
        if receiver.decoder is None or flags & (SYN | RST | FIN | ACK) != ACK:
            return
        if not 0 <= sender.max - unwrap(segment.ack, sender.una) <= sender.flight + self._config.buffers.send_buffer:
            return
        if self.state is not _ESTABLISHED and self.state not in RECEIVING:
            return
        if receiver.timestamps:
            # PAWS, as in `_check`
            stamps = segment.timestamps
            if stamps is None or precedes(stamps[0], receiver.ts_recent):
                return
        receiver.handle_fec(segment, fec, receiver.decoder)
        if receiver.fin is not None and receiver.nxt > receiver.fin:
            self._enter(AFTER_FIN[self.state], now)

    def _check(self, segment: Segment, seq: int, now: int) -> bool:
        """Whether a segment is acceptable; if not, its answer is ready."""
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
        if flags & SYN and flags & ACK and receiver.accecn is not None and seq == receiver.irs:
            # the SYN-ACK again, whose ECN field is to be fed back, too (RFC 9768 section 3.2.2.1)
            receiver.accecn.handle_syn_ack(segment.ecn)
        if not receiver.offers(seq, end):
            if not flags & RST:
                receiver.ack_due = True
                receiver.note_duplicate(seq, seq + segment.length)
                if self.state is State.SYN_RECEIVED and flags & SYN:
                    if not self._handshake.take_again(segment):
                        self.abort(now)
                        return False
                    # the peer has not heard our SYN-ACK
                    self._handshake.due = True
                if self.state is State.TIME_WAIT and flags & FIN:
                    self._state_at = now + self._config.timers.time_wait_ns
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
            # RFC 7323 section 4.3: a delayed ACK echoes the first of its segments
            receiver.ts_recent = stamps[0]
        return True

    def _handle_in_listen(self, segment: Segment, now: int) -> None:
        if segment.flags & (SYN | ACK | RST) != SYN:
            self._reset(segment)
            return
        self._handshake.take(segment)
        self.state = State.SYN_RECEIVED
        self._handshake.due = True
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
        self._handshake.take(segment)
        if flags & ACK:
            self._establish(segment, self._receiver.nxt, now)
            self._receiver.ack_due = True
        else:
            # simultaneous open
            self.state = State.SYN_RECEIVED
            self._handshake.due = True

    def _establish(self, segment: Segment, seq: int, now: int) -> None:
        self.connected = True
        self.state = State.FIN_WAIT_1 if self._sender.closing else _ESTABLISHED
        ssthresh = self._config.start.initial_ssthresh
        if self._config.start.cbi and self._shared is not None:
            ssthresh = self._shared.ssthresh.get(self.flow.destination, ssthresh)
        self._handshake.complete(segment, seq, ssthresh, now)

    def _our_fin_acknowledged(self, now: int) -> State:
        state = AFTER_OUR_FIN.get(self.state)
        if state is not None:
            self._enter(state, now)
        return self.state

    def _enter(self, state: State, now: int) -> None:
        self.state = state
        if state is State.TIME_WAIT:
            self._state_at = now + self._config.timers.time_wait_ns
            self._keep_ssthresh()
        elif state is State.CLOSED:
            self._end(None)

    def _reset(self, segment: Segment) -> None:
        answer = reset_for(segment)
        if answer is not None:
            self._outbox.append(answer)

    def _end(self, error: str | None) -> None:
        """Close: only the outbox is still to be sent."""
        if self.state is State.CLOSED:
            return
        self.state = State.CLOSED
        self.error = error
        sender = self._sender
        sender.rto_at = sender.persist_at = sender.early_at = sender.paced_at = None
        self._state_at = self._receiver.ack_at = None
        self._receiver.ack_due = False
        self._handshake.stop()
        self._keep_ssthresh()
        if self._shared is not None and self._counts_as_open:
            self._shared.open_connections -= 1
            self._counts_as_open = False

    def _count_open(self) -> None:
        if self._shared is not None:
            self._shared.open_connections += 1
            self._counts_as_open = True

    def _keep_ssthresh(self) -> None:
        """Leave ssthresh to the next connection (RFC 9040)."""
        if self._shared is not None and self.connected and self._sender.growth.ssthresh < INFINITE:
            self._shared.ssthresh[self.flow.destination] = self._sender.growth.ssthresh

    # -- to the network --------------------------------------------------------------------------------------

    def poll_segment(self, now: int) -> Segment | None:
        """Return the next segment to send, or None."""
        if self._outbox:
            self.counters.segments_sent += 1
            return self._outbox.pop(0)
        if self.state is not _ESTABLISHED and (not self.connected or self.state is State.CLOSED):
            if not self._handshake.due:
                return None
            self.counters.segments_sent += 1
            return self._handshake.segment(self.state is _SYN_RECEIVED, now)
        receiver = self._receiver
        echo = receiver.accecn
        if echo is not None and (echo.handshake_ace is not None or (receiver.ack_due and echo.is_ce_news)):
            # the ACK of a SYN-ACK is pure (RFC 9768 section 3.2.2.1), and data segments have no room for options
            return self._acknowledgement(now, () if echo.handshake_ace is not None else receiver.blocks())
        if receiver.ack_due and receiver.sack:
            # data segments have no room for SACK blocks
            blocks = receiver.blocks()
            if blocks:
                return self._acknowledgement(now, blocks)
        if receiver.cause is not None and receiver.ack_due and receiver.has_gap:
            # nor for the SMART option
            return self._acknowledgement(now, ())
        sender = self._sender
        if sender.protection is not None and (shard := sender.protection.poll()) is not None:
            return self._fec_segment(shard, now)
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
            if sender.ecn and (fresh or sender.ecn_only):
                # RFC 3168 section 6.1.5: not on retransmissions, but where losses are no congestion (RFC 8311)
                if sender.accecn is None or sender.accecn.may_send_ect:
                    ecn = sender.growth.ect
                if sender.cwr_due:
                    sender.handle_cwr_sent()
                    flags |= CWR
        if receiver.ecn_echo or receiver.accecn is not None:
            flags |= receiver.ecn_flags
        segment = Segment(
            self.flow,
            seq & MASK,
            receiver.nxt & MASK,
            flags,
            receiver.window(),
            length,
            buffer.take(seq, length),
            (),
            receiver.stamps(now) if receiver.timestamps else None,
            None,
            (),
            ecn,
        )
        receiver.acknowledged()
        return segment

    def _fec_segment(self, shard: Shard, now: int) -> Segment:
        """Return a FEC segment. By its number its payload is old data, so that it does no harm where it is taken for
        data.
        """
        receiver, sender, counters, block = self._receiver, self._sender, self.counters, shard.block
        counters.segments_sent += 1
        segment = Segment(
            self.flow,
            (sender.una - block.width) & MASK,
            receiver.nxt & MASK,
            ACK | receiver.ecn_flags,
            receiver.window(),
            block.width,
            shard.payload,
            (),
            receiver.stamps(now),
            None,
            (fec_option(block.start & MASK, block.members, shard.index, block.last, shard.serial),),
            ECT0 if sender.ecn else NOT_ECT,
        )
        receiver.acknowledged()
        return segment

    def _acknowledgement(self, now: int, blocks: tuple[SackBlock, ...]) -> Segment:
        self.counters.segments_sent += 1
        receiver, sender = self._receiver, self._sender
        cause, decoder = receiver.cause, receiver.decoder
        extra: tuple[Option, ...] = () if cause is None else (smart_option(cause.seq, cause.length),)
        if decoder is not None:
            extra = (report_option(decoder.count & 0xFFFF, decoder.serial, min(decoder.need(receiver.nxt), 255)),)
        flags = ACK | receiver.ecn_flags
        echo = receiver.accecn
        if echo is not None:
            if echo.handshake_ace is not None:
                flags = ACK | ace_flags(echo.handshake_ace)
                echo.handshake_ace = None
                extra += (echo.first_option(),)
            elif echo.is_news:
                extra += (echo.option(),)
                echo.told()
        segment = Segment(
            self.flow,
            sender.max & MASK,
            receiver.nxt & MASK,
            flags,
            receiver.window(),
            0,
            None,
            blocks,
            receiver.stamps(now) if receiver.timestamps else None,
            None,
            extra,
        )
        receiver.acknowledged()
        return segment

    def _reset_segment(self, now: int) -> Segment:
        receiver = self._receiver
        return Segment(
            self.flow,
            self._sender.nxt & MASK,
            receiver.nxt & MASK,
            RST | ACK,
            receiver.window(),
            timestamps=receiver.stamps(now),
        )

    # -- time ------------------------------------------------------------------------------------------------

    def next_deadline(self) -> int | None:
        """When `handle_deadline` is due, or None."""
        sender = self._sender
        at = sender.rto_at if sender.persist_at is None else sender.persist_at
        early_at = sender.early_at
        if early_at is not None and (at is None or early_at < at):
            at = early_at
        paced_at = sender.paced_at
        if paced_at is not None and (at is None or paced_at < at):
            at = paced_at
        ack_at = self._receiver.ack_at
        if at is None or (ack_at is not None and ack_at < at):
            at = ack_at
        syn_at = self._handshake.at
        other = self._state_at if syn_at is None else syn_at
        if other is not None and (at is None or other < at):
            return other
        return at

    def handle_deadline(self, now: int) -> None:
        """Expire the timers that are due; does nothing when early."""
        if self._handshake.handle_deadline(now):
            self._end("no answer to the SYN")
            return
        if self._state_at is not None and now >= self._state_at:
            self._end(None)
            return
        self._receiver.handle_deadline(now)
        sender = self._sender
        sender.handle_deadline(now)
        if sender.failed:
            self._end("no answer to retransmissions")


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
