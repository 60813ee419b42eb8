"""One end of a SLACP link: the session, the logical channels, and the order of frames.

Read first: SLACP paper section 2; docs/slacp.md.

Rules: sans-IO (time is an int in ns, passed in; randomness is a generator, passed in). The radio pulls: `poll_frame`
gives the next frame in this order: handshake, acknowledgements, retransmissions, redundancy of closed blocks, new
packets (channels without ARQ first) and, when nothing else carries it, the sender's oldest number. All channels share
one transmission numbering `tx`; a jump in it tells the receiver at once that a frame of any channel was lost.

The acknowledgement of a channel is due after `ack_every` new frames; at once after a jump, a damaged frame or a
retransmission; and when the ACK timer expires, which starts with every new frame of a channel with ARQ and doubles
while none comes. Frames of the other channels do not restart it: while they stream one way, the repeated
acknowledgements are all that the peer hears, and a peer that hears nothing takes the link for dead.
"""

from collections import deque
from collections.abc import Sized
from random import Random
from typing import Final

from common.sequence import MASK, unwrap
from linklayer.link import Link, LinkCounters
from linklayer.rtt import RttEstimator
from linklayer.slacp.config import MAX_WINDOW, SlacpConfig
from linklayer.slacp.fec import ErasureCode
from linklayer.slacp.frames import Ack, Damaged, Data, Fec, Frame, Hello
from linklayer.slacp.receiver import ArqReceiver, Deliveries, FastReceiver
from linklayer.slacp.sender import ArqSender, FastSender
from linklayer.slacp.session import Session
from linklayer.slacp.stats import SlacpCounters

#: how far the number of a damaged frame may be ahead and still be believed: its header has 16 bits of check, not 32
BELIEVED_JUMP: Final = 64


class Slacp(Link):
    """A SLACP endpoint.

    Order of calls: `handle_frame` per frame from the radio; `handle_packet` while `wants_packet(channel)` and the IP
    queue has one; `poll_frame` until None while the radio has room; `poll_packet` until None for the IP layer;
    `poll_given_up` until None for loss notification; `handle_deadline` at `next_deadline()`, early calls do nothing.

    `first` is where transmission and sequence numbers start (tests start them just below the wrap).
    """

    flow_control = True

    def __init__(self, config: SlacpConfig, code: ErasureCode, rng: Random, now: int, *, first: int = 0) -> None:
        self._config = config
        self._channels = config.logical_channels
        self._ack_timer_ns, self._ack_timer_max_ns = config.ack_timer_ns, config.ack_timer_max_ns
        self._code = code
        self._session = Session(config, rng, first, now)
        self.stats = SlacpCounters()
        self._delivered: Deliveries = deque()
        self._given_up: deque[Sized] = deque()
        self._senders: list[ArqSender | FastSender] = []
        self._number_afresh(now)

    def _number_afresh(self, now: int) -> None:
        """Begin the numbering of a session; of an earlier session only the unsent packets stay."""
        config, stats = self._config, self.stats
        first, peer_first = self._session.first, self._session.peer_first
        unsent = [sender.take_unsent() for sender in self._senders]
        self._senders = [
            ArqSender(number, first, config, self._code, stats) if options.arq else FastSender(number, first, stats)
            for number, options in enumerate(self._channels)
        ]
        for sender, packet in zip(self._senders, unsent, strict=False):
            if packet is not None:
                sender.handle_packet(packet)
        self._receivers = [
            ArqReceiver(number, peer_first, config, self._code, self.stats, self._delivered)
            if options.arq
            else FastReceiver(number, peer_first, config, self.stats, self._delivered)
            for number, options in enumerate(self._channels)
        ]
        self._arq_senders = [sender for sender in self._senders if isinstance(sender, ArqSender)]
        # channels without ARQ come first: their packets cannot wait
        self._by_urgency = sorted(self._senders, key=lambda sender: isinstance(sender, ArqSender))
        self._acked_channels = [n for n, options in enumerate(self._channels) if options.arq]
        self._rtt = RttEstimator()
        #: number of the next transmission
        self._tx = first
        #: the newest transmissions not known to have been seen, each with its time, for the round-trip time
        self._transmitted: deque[tuple[int, int]] = deque(maxlen=MAX_WINDOW)
        #: highest transmission seen of the peer's
        self._tx_high = peer_first - 1
        #: new frames since the last acknowledgement, by channel
        self._unacked = [0] * len(self._channels)
        # with a window that is full before that, the sender would wait for the ACK timer
        self._ack_every = min(config.ack_every, max(1, config.window // 2))
        self._acks_due: deque[int] = deque()
        self._ack_repeats = False
        self._ack_interval = self._ack_timer_ns
        self._ack_at = now + self._ack_interval

    def counters(self) -> LinkCounters:
        return self.stats

    # -- from and to the IP layer ----------------------------------------------------------------------------

    @property
    def established(self) -> bool:
        """Whether there is a session with the peer."""
        return self._session.established

    def wants_packet(self, channel: int) -> bool:
        return self._senders[channel].wants_packet()

    def handle_packet(self, packet: Sized, channel: int) -> None:
        """Take one packet. Raises RuntimeError, and changes nothing, when none is wanted."""
        self._senders[channel].handle_packet(packet)

    def poll_packet(self) -> tuple[Sized, int] | None:
        return self._delivered.popleft() if self._delivered else None

    def poll_given_up(self) -> Sized | None:
        """Return the next packet the link lost for good (given up, or under way when its session ended), or None."""
        return self._given_up.popleft() if self._given_up else None

    # -- to the radio ----------------------------------------------------------------------------------------

    def poll_frame(self, now: int) -> Frame | None:
        session = self._session
        if session.hello_due:
            return session.poll_hello()
        if not session.established:
            return None
        if self._acks_due:
            return self._acknowledge(self._acks_due.popleft())
        tag, tx = session.tx_tag, self._tx
        frame: Frame | None
        for arq in self._arq_senders:
            frame = arq.poll_retransmission(tag, tx, now) or arq.poll_redundancy(tag, tx, now)
            if frame is not None:
                return self._transmit(frame, now)
        for sender in self._by_urgency:
            frame = sender.poll_new(tag, tx, now)
            if frame is not None:
                return self._transmit(frame, now)
        for arq in self._arq_senders:
            frame = arq.poll_sync(tag, tx, now)
            if frame is not None:
                return self._transmit(frame, now)
        return None

    def _transmit(self, frame: Frame, now: int) -> Frame:
        self._transmitted.append((self._tx, now))
        self._tx += 1
        return frame

    def _acknowledge(self, channel: int) -> Ack:
        receiver = self._receivers[channel]
        assert isinstance(receiver, ArqReceiver)
        self._unacked[channel] = 0
        self.stats.acks += 1
        repeat = self._ack_repeats
        if not self._acks_due:
            self._ack_repeats = False
        return Ack(
            self._session.tx_tag,
            channel,
            self._tx_high & MASK,
            receiver.cum & MASK,
            receiver.received,
            repeat,
        )

    # -- from the radio --------------------------------------------------------------------------------------

    def handle_frame(self, frame: Frame | Damaged, now: int) -> None:
        """Take one frame, or the remains of a damaged one, from the radio."""
        if isinstance(frame, Hello):
            if self._session.handle_hello(frame, now):
                self.end(now)
                self._rtt.guess(self._session.handshake_rtt_ns)
                self.stats.sessions += 1
            return
        session = self._session
        if frame.tag != session.rx_tag or not session.established:
            self.stats.refused += 1
            return
        session.heard(now)
        channel = frame.channel
        if channel >= len(self._receivers):
            self.stats.refused += 1
            return
        if isinstance(frame, Ack):
            self._handle_ack(frame, now)
            return

        receiver = self._receivers[channel]
        if isinstance(receiver, ArqReceiver):
            self._ack_interval = self._ack_timer_ns
            self._ack_at = now + self._ack_interval
        tx = unwrap(frame.tx, self._tx_high)
        jump = tx - self._tx_high
        if isinstance(frame, Damaged) and jump > BELIEVED_JUMP:
            jump = 0
        if jump > 0:
            self._tx_high = tx
        urgent = jump > 1
        if isinstance(frame, Data):
            receiver.handle_data(frame)
            urgent = urgent or frame.retransmission
        elif isinstance(frame, Damaged):
            self.stats.refused += 1
            urgent = True
        elif isinstance(receiver, ArqReceiver):
            if isinstance(frame, Fec):
                receiver.handle_fec(frame)
            else:
                receiver.handle_base(frame.base)
        if urgent:
            # the lost frame may belong to any channel
            for number in self._acked_channels:
                self._make_ack_due(number)
            return
        self._unacked[channel] += 1
        if self._unacked[channel] >= self._ack_every and isinstance(receiver, ArqReceiver):
            self._make_ack_due(channel)

    def _make_ack_due(self, channel: int) -> None:
        if channel not in self._acks_due:
            self._acks_due.append(channel)

    def _handle_ack(self, ack: Ack, now: int) -> None:
        sender = self._senders[ack.channel]
        if not isinstance(sender, ArqSender):
            self.stats.refused += 1
            return
        tx_high = unwrap(ack.tx_high, self._tx)
        cum = unwrap(ack.cum, sender.next_seq)
        if tx_high >= self._tx:
            # a damaged header misled the peer; its list of frames is true all the same
            self.stats.refused += 1
            tx_high = -1
        # one frame that was held up for long must not make every later tail loss wait as long
        patience = min(self._rtt.bound_ns, self._config.dead_after_ns // 2)
        sent_before = now - patience if ack.repeat else None
        sender.handle_ack(tx_high, cum, ack.received, sent_before)
        transmitted = self._transmitted
        while transmitted and transmitted[0][0] <= tx_high:
            tx, sent_at = transmitted.popleft()
            if tx == tx_high and not ack.repeat:
                self._rtt.handle_sample(now - sent_at)
        while (packet := sender.poll_given_up()) is not None:
            self._given_up.append(packet)

    # -- time ------------------------------------------------------------------------------------------------

    def next_deadline(self) -> int:
        """When `handle_deadline` is due; there is always one, since a station always listens for its peer."""
        deadline = self._session.next_deadline()
        if self._session.established:
            deadline = min(deadline, self._ack_at)
            for sender in self._arq_senders:
                due_at = sender.next_deadline()
                if due_at is not None and due_at < deadline:
                    deadline = due_at
        return deadline

    def handle_deadline(self, now: int) -> None:
        if self._session.handle_deadline(now):
            self.end(now)
        if not self._session.established:
            return
        if now >= self._ack_at:
            for channel in self._acked_channels:
                self._make_ack_due(channel)
            if self._acked_channels:
                self._ack_repeats = True
            else:
                self._session.keep_alive()
            self._ack_at = now + self._ack_interval
            self._ack_interval = min(2 * self._ack_interval, self._ack_timer_max_ns)
        for sender in self._arq_senders:
            sender.handle_deadline(now)

    def end(self, now: int) -> None:
        """Give up packets under way and release those held, for `poll_packet`; a later session numbers afresh."""
        for sender in self._arq_senders:
            lost = sender.unsettled()
            self.stats.residual_losses += len(lost)
            self.stats.session_losses += len(lost)
            self._given_up.extend(lost)
        for receiver in self._receivers:
            receiver.release_all()
        self._number_afresh(now)
