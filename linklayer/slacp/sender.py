"""The sending half of one ARQ channel.

Read first: SLACP paper section 2; docs/slacp.md.

Rules: there is no retransmission timer. A transmission is judged lost when an acknowledgement shows that a later one
was seen (`tx_high`), or when the receiver's ACK timer repeats an acknowledgement that does not list it although it
was sent longer ago than a round trip. A frame is retransmitted at most `retransmissions` times; retransmissions come
before everything new. At most one packet waits unsent: the rest stays in the IP queue.

First transmissions carry no FEC. Retransmitted frames form a block; when it is full, or when its threshold timer has
expired and no retransmission waits, its redundancy is computed, unless all of it has been acknowledged by then. Its
amount is fixed for each frame or, with `residual_loss`, follows the losses of first transmissions. A protected
retransmission is judged when its block's last redundancy frame is.

When there is nothing more to send, a SYNC guards the last frame.

Left out: congestion control (the link's rate is the radio's) and fragmentation (the MTU is the link's).
"""

from collections import deque
from collections.abc import Sized
from math import ceil
from typing import Final

from common.sequence import MASK
from common.units import ns
from linklayer.adaptive.estimator import LossEstimator
from linklayer.slacp.config import SlacpConfig
from linklayer.slacp.fec import ErasureCode, redundancy_for
from linklayer.slacp.frames import Data, Fec, Sync
from linklayer.slacp.stats import SlacpCounters

_BLOCK_NUMBERS: Final = 0x10000


class _Outstanding:
    """A packet that was sent and is neither acknowledged nor given up."""

    __slots__ = ("packet", "resent", "seq", "settled")

    def __init__(self, seq: int, packet: Sized) -> None:
        self.seq = seq
        self.packet = packet
        #: retransmissions so far
        self.resent = 0
        #: acknowledged or given up
        self.settled = False


class _Block:
    """Retransmitted frames that share redundancy."""

    def __init__(self, number: int, due_at: int) -> None:
        self.number = number
        #: when the threshold timer expires; None once it has
        self.due_at: int | None = due_at
        self.members: list[_Outstanding] = []
        #: redundancy waiting to be sent, with its symbol indexes
        self.shards: deque[tuple[int, Sized]] = deque()


#: one verdict: the transmission that decides it, the time of that transmission, and the frames judged
_Verdict = tuple[int, int, tuple[_Outstanding, ...]]


class ArqSender:
    """Sends packets of one channel, keeps them until settled, and resends those that the receiver reports lost.

    Call `handle_packet` while `wants_packet()`; `poll_retransmission`, `poll_redundancy`, `poll_new` and `poll_sync`
    in that order, each until None, whenever the radio has room; `handle_ack` for every acknowledgement;
    `handle_deadline` at `next_deadline()`. `poll_given_up` yields the packets the link has lost for good.
    """

    def __init__(
        self, channel: int, first: int, config: SlacpConfig, code: ErasureCode, counters: SlacpCounters
    ) -> None:
        self._channel = channel
        self._config = config
        self._block_timer_ns = ns(config.block_timer_ms)
        self._code = code
        self._counters = counters
        #: the number of the next new frame; numbers on the wire are unwrapped against it
        self.next_seq = first
        #: the oldest number not settled; == next_seq when nothing is outstanding
        self._base = first
        self._outstanding: dict[int, _Outstanding] = {}
        self._unsent: Sized | None = None
        self._lost: deque[_Outstanding] = deque()
        self._verdicts: deque[_Verdict] = deque()
        #: the newest acknowledgement's bitmap, all of it settled; its bit 0 is `_listed_from`
        self._listed = 0
        self._listed_from = first
        #: of first transmissions, where they decide the redundancy
        self._losses = None if config.residual_loss is None else LossEstimator()
        self._open: _Block | None = None
        self._closed: deque[_Block] = deque()
        self._next_block = 0
        #: the receiver must hear that the base has moved
        self._sync_due = False
        #: no frame has followed the last one sent: its loss would not show
        self._guard_due = False
        self._given_up: deque[Sized] = deque()

    def unsettled(self) -> list[Sized]:
        """The packets sent and not settled, oldest first: they are lost when the session ends."""
        return [entry.packet for entry in self._outstanding.values()]

    def take_unsent(self) -> Sized | None:
        """Take back the packet that waits unsent, or None."""
        packet, self._unsent = self._unsent, None
        return packet

    def wants_packet(self) -> bool:
        """Whether the next packet may be taken from the IP queue."""
        return self._unsent is None and self.next_seq - self._base < self._config.window

    def handle_packet(self, packet: Sized) -> None:
        """Take one packet. Raises RuntimeError, and changes nothing, when none is wanted."""
        if not self.wants_packet():
            raise RuntimeError("a packet was handed over that the link did not want")
        self._unsent = packet

    # -- acknowledgements ------------------------------------------------------------------------------------

    def handle_ack(self, tx_high: int, cum: int, received: int, sent_before: int | None) -> None:
        """Settle the packets that arrived and judge the others.

        `cum` and `tx_high` are unwrapped. With `sent_before` (a repeated acknowledgement) transmissions made at or
        before that time are judged, too.
        """
        if cum + received.bit_length() > self.next_seq:
            self._counters.strays += 1
            return
        for seq in range(self._base, cum):
            self._settle(seq)
        # on a long link every bitmap repeats a thousand bits of the one before: only the new ones cost time
        ahead = cum - self._listed_from
        fresh = received
        if ahead >= 0:
            fresh &= ~(self._listed >> ahead)
            self._listed, self._listed_from = received, cum
        while fresh:
            lowest = fresh & -fresh
            self._settle(cum + lowest.bit_length() - 1)
            fresh ^= lowest
        self._move_base()
        verdicts = self._verdicts
        while verdicts:
            tx, sent_at, entries = verdicts[0]
            if tx > tx_high and (sent_before is None or sent_at > sent_before):
                break
            verdicts.popleft()
            for entry in entries:
                if not entry.settled:
                    self._lose(entry)
        if cum < self._base and not self._outstanding and not verdicts:
            # everything is settled here and the receiver does not know it: only a frame of ours can tell
            self._sync_due = True

    def _settle(self, seq: int) -> None:
        entry = self._outstanding.pop(seq, None)
        if entry is not None:
            if self._losses is not None and not entry.resent:
                self._losses.handle(False)
            entry.settled = True
            self._counters.acked += 1
            self._counters.useful_bytes += len(entry.packet)

    def _lose(self, entry: _Outstanding) -> None:
        if self._losses is not None and not entry.resent:
            self._losses.handle(True)
        if entry.resent < self._config.retransmissions:
            self._lost.append(entry)
            return
        entry.settled = True
        del self._outstanding[entry.seq]
        self._move_base()
        self._counters.residual_losses += 1
        self._given_up.append(entry.packet)
        self._sync_due = True

    def _move_base(self) -> None:
        base = self._base
        outstanding = self._outstanding
        while base < self.next_seq and base not in outstanding:
            base += 1
        self._base = base

    def poll_given_up(self) -> Sized | None:
        """Return the next packet the link has given up, or None."""
        return self._given_up.popleft() if self._given_up else None

    # -- transmissions ---------------------------------------------------------------------------------------

    def poll_retransmission(self, tag: int, tx: int, now: int) -> Data | None:
        """Return the next retransmission, or None."""
        while self._lost:
            entry = self._lost.popleft()
            if entry.settled:
                continue
            entry.resent += 1
            self._counters.retransmissions += 1
            self._sync_due, self._guard_due = False, True
            block, index = None, 0
            if self._config.redundancy > 0:
                block, index = self._join_block(entry, now)
            else:
                self._verdicts.append((tx, now, (entry,)))
            return Data(
                tag,
                self._channel,
                tx & MASK,
                entry.seq & MASK,
                entry.seq - self._base,
                entry.packet,
                True,
                block,
                index,
            )
        return None

    def poll_redundancy(self, tag: int, tx: int, now: int) -> Fec | None:
        """Return the next redundancy frame, or None."""
        if self._open is not None and self._open.due_at is None:
            self._compute(self._open)
        while self._closed:
            block = self._closed[0]
            if block.shards and all(entry.settled for entry in block.members):
                block.shards.clear()
            if not block.shards:
                self._closed.popleft()
                continue
            index, shard = block.shards.popleft()
            if not block.shards:
                self._verdicts.append((tx, now, tuple(block.members)))
            self._counters.fec_frames += 1
            self._sync_due, self._guard_due = False, True
            return Fec(
                tag,
                self._channel,
                tx & MASK,
                self._base & MASK,
                block.number,
                len(block.members),
                index,
                shard,
            )
        return None

    def poll_new(self, tag: int, tx: int, now: int) -> Data | None:
        """Return the first transmission of the waiting packet, or None."""
        packet = self._unsent
        if packet is None:
            return None
        self._unsent = None
        seq = self.next_seq
        self.next_seq = seq + 1
        entry = _Outstanding(seq, packet)
        self._outstanding[seq] = entry
        self._verdicts.append((tx, now, (entry,)))
        self._sync_due, self._guard_due = False, True
        self._counters.packets += 1
        return Data(tag, self._channel, tx & MASK, seq & MASK, seq - self._base, packet)

    def poll_sync(self, tag: int, tx: int, now: int) -> Sync | None:
        """Return a frame that tells the receiver the base, when no other frame will, or None.

        It tells a new base, and it follows the last frame before the link falls idle: if that frame is lost, the
        receiver sees the jump in `tx` now and need not wait for its ACK timer.
        """
        if not (self._sync_due or (self._guard_due and self._outstanding)):
            return None
        self._sync_due = self._guard_due = False
        self._counters.syncs += 1
        self._verdicts.append((tx, now, ()))
        return Sync(tag, self._channel, tx & MASK, self._base & MASK)

    # -- blocks ----------------------------------------------------------------------------------------------

    def next_deadline(self) -> int | None:
        """When the open block's threshold timer expires, or None."""
        return None if self._open is None else self._open.due_at

    def handle_deadline(self, now: int) -> None:
        """Expire the threshold timer: the block closes as soon as no retransmission waits for it."""
        block = self._open
        if block is not None and block.due_at is not None and now >= block.due_at:
            block.due_at = None

    def _join_block(self, entry: _Outstanding, now: int) -> tuple[int, int]:
        block = self._open
        if block is None:
            block = self._open = _Block(self._next_block, now + self._block_timer_ns)
            self._next_block = (self._next_block + 1) % _BLOCK_NUMBERS
        block.members.append(entry)
        index = len(block.members) - 1
        if len(block.members) == self._config.block_frames:
            self._compute(block)
        return block.number, index

    def _compute(self, block: _Block) -> None:
        self._open = None
        if all(entry.settled for entry in block.members):
            return
        actual = len(block.members)
        redundant = ceil(actual * self._config.redundancy)
        residual_loss = self._config.residual_loss
        if self._losses is not None and residual_loss is not None:
            redundant = max(redundant, redundancy_for(actual, self._losses.loss, residual_loss))
        members = [(entry.seq & MASK, entry.packet) for entry in block.members]
        shards = self._code.encode(members, redundant)
        block.shards.extend(enumerate(shards, start=len(members)))
        self._closed.append(block)


class FastSender:
    """The sending half of a channel without ARQ: a packet is sent once and forgotten."""

    def __init__(self, channel: int, first: int, counters: SlacpCounters) -> None:
        self._channel = channel
        self._counters = counters
        self._next_seq = first
        self._unsent: Sized | None = None

    def wants_packet(self) -> bool:
        """Whether the next packet may be taken from the IP queue."""
        return self._unsent is None

    def handle_packet(self, packet: Sized) -> None:
        """Take one packet. Raises RuntimeError, and changes nothing, when none is wanted."""
        if self._unsent is not None:
            raise RuntimeError("a packet was handed over that the link did not want")
        self._unsent = packet

    def take_unsent(self) -> Sized | None:
        """Take back the packet that waits unsent, or None."""
        packet, self._unsent = self._unsent, None
        return packet

    def poll_new(self, tag: int, tx: int, now: int) -> Data | None:
        """Return the transmission of the waiting packet, or None."""
        packet = self.take_unsent()
        if packet is None:
            return None
        seq = self._next_seq
        self._next_seq = seq + 1
        self._counters.packets += 1
        self._counters.useful_bytes += len(packet)
        return Data(tag, self._channel, tx & MASK, seq & MASK, 0, packet)
