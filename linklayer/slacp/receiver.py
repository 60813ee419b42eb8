"""The receiving half of a channel.

Read first: SLACP paper section 2; docs/slacp.md.

Rules: a packet is delivered once, and in order where that is asked for: a packet behind a gap is held until the gap
is filled, the sender says (by the oldest number it may still send, on every frame) that it never will be, or the
session ends. Any `actual` frames of a FEC block rebuild the block. Claims of a frame outside the window are not
believed. Memory is bounded by the window.

Left out: the ACK timer and the decision when to acknowledge are the endpoint's, since all channels share one
transmission numbering.
"""

from collections import deque
from collections.abc import Sized
from typing import Final

from common.sequence import unwrap
from linklayer.slacp.config import SlacpConfig
from linklayer.slacp.fec import ErasureCode
from linklayer.slacp.frames import Data, Fec
from linklayer.slacp.stats import SlacpCounters

#: FEC blocks kept for decoding at least
MIN_BLOCKS: Final = 64

#: packets for the IP layer, each with its channel
Deliveries = deque[tuple[Sized, int]]


class _Block:
    """The symbols of one FEC block that have arrived."""

    def __init__(self) -> None:
        #: number of actual frames; None until a redundancy frame tells
        self.actual: int | None = None
        self.members: dict[int, tuple[int, Sized]] = {}
        self.shards: dict[int, Sized] = {}
        self.complete = False


class ArqReceiver:
    """Receives one ARQ channel: removes duplicates, restores order, repairs by FEC, knows which packets have come.

    Call `handle_data`, `handle_fec` or `handle_base` per frame; packets for the IP layer are appended to `delivered`.
    """

    def __init__(
        self,
        channel: int,
        first: int,
        config: SlacpConfig,
        code: ErasureCode,
        counters: SlacpCounters,
        delivered: Deliveries,
    ) -> None:
        self._channel = channel
        self._delivered = delivered
        self._in_order = config.logical_channels[channel].in_order
        self._window = config.window
        self._code = code
        self._counters = counters
        #: all below are delivered or abandoned
        self.cum = first
        #: bit i: cum + i has arrived; bit 0 is never set between calls
        self.received = 0
        #: in order: packets that wait for those before them
        self._held: dict[int, Sized] = {}
        self._blocks: dict[int, _Block] = {}
        # after an outage a whole window is retransmitted before the first block's redundancy: all those blocks are
        # in use at once, and blocks that the threshold timer closed half empty come on top
        self._max_blocks = max(MIN_BLOCKS, 2 * -(-config.window // config.block_frames))

    def handle_data(self, frame: Data) -> None:
        """Take one packet, and with it the news of the sender's oldest number."""
        seq = unwrap(frame.seq, self.cum)
        if seq - frame.back > self.cum:
            self._advance(seq - frame.back)
        self._accept(seq, frame.payload)
        if frame.block is not None:
            self._join(frame.block, frame.index, (frame.seq, frame.payload))

    def handle_fec(self, frame: Fec) -> None:
        """Take one redundancy frame."""
        self._advance(unwrap(frame.base, self.cum))
        block = self._block(frame.block)
        if block.complete:
            return
        if block.actual is None:
            block.actual = frame.actual
        if block.actual != frame.actual:
            self._counters.refused += 1
            return
        block.shards[frame.index] = frame.shard
        self._repair(block)

    def handle_base(self, base: int) -> None:
        """Take the sender's oldest number (as on the wire)."""
        self._advance(unwrap(base, self.cum))

    def release_all(self) -> None:
        """Deliver the packets held: the session is over, and those before them will not come."""
        for seq in sorted(self._held):
            self._deliver(self._held.pop(seq))

    def _accept(self, seq: int, packet: Sized) -> None:
        offset = seq - self.cum
        if offset < 0 or self.received >> offset & 1:
            self._counters.duplicates += 1
            return
        if offset >= self._window:
            self._counters.refused += 1
            return
        if offset == 0:
            self._deliver(packet)
            self.cum = seq + 1
            self.received >>= 1
            if self.received & 1:
                self._release()
            return
        self.received |= 1 << offset
        if self._in_order:
            self._held[seq] = packet
        else:
            self._deliver(packet)

    def _release(self) -> None:
        """Deliver packets that have no gap before them any more."""
        while self.received & 1:
            if self._in_order:
                self._deliver(self._held.pop(self.cum))
            self.cum += 1
            self.received >>= 1

    def _advance(self, base: int) -> None:
        """Pass over everything below the sender's oldest number: it arrived or it never will."""
        ahead = base - self.cum
        if ahead <= 0:
            return
        received = self.received
        # no mask wider than `received`: the base may be far ahead of a receiver that was deaf for long
        passed = received if ahead >= received.bit_length() else received & ((1 << ahead) - 1)
        self._counters.abandoned += ahead - passed.bit_count()
        if self._in_order:
            while passed:
                offset = (passed & -passed).bit_length() - 1
                self._deliver(self._held.pop(self.cum + offset))
                passed &= passed - 1
        self.cum = base
        self.received >>= ahead
        self._release()

    def _deliver(self, packet: Sized) -> None:
        self._counters.delivered += 1
        self._counters.delivered_bytes += len(packet)
        self._delivered.append((packet, self._channel))

    # -- FEC -------------------------------------------------------------------------------------------------

    def _block(self, number: int) -> _Block:
        block = self._blocks.get(number)
        if block is None:
            if len(self._blocks) == self._max_blocks:
                del self._blocks[next(iter(self._blocks))]
            block = self._blocks[number] = _Block()
        return block

    def _join(self, number: int, index: int, member: tuple[int, Sized]) -> None:
        block = self._block(number)
        if not block.complete:
            block.members[index] = member
            self._repair(block)

    def _repair(self, block: _Block) -> None:
        actual = block.actual
        if actual is None or len(block.members) + len(block.shards) < actual:
            return
        block.complete = True
        if len(block.members) < actual:
            try:
                rebuilt = self._code.decode(actual, block.members, block.shards)
            except ValueError:
                self._counters.refused += 1
                return
            for seq32, packet in rebuilt:
                before = self._counters.duplicates
                self._accept(unwrap(seq32, self.cum), packet)
                self._counters.fec_repairs += self._counters.duplicates == before
        block.members.clear()
        block.shards.clear()


class FastReceiver:
    """Receives one channel without ARQ: delivers at once, each packet once, never waits.

    With `in_order` a packet that comes after a later one is dropped. Numbers further back than the window are taken
    for duplicates.
    """

    def __init__(
        self,
        channel: int,
        first: int,
        config: SlacpConfig,
        counters: SlacpCounters,
        delivered: Deliveries,
    ) -> None:
        self._channel = channel
        self._delivered = delivered
        self._in_order = config.logical_channels[channel].in_order
        self._window = config.window
        self._counters = counters
        #: one above the highest number seen
        self._next = first
        #: bit i: _next - 1 - i has arrived
        self._seen = 0

    def release_all(self) -> None:
        """Nothing is ever held."""

    def handle_data(self, frame: Data) -> None:
        """Take one packet."""
        seq = unwrap(frame.seq, self._next)
        ahead = seq - self._next + 1
        if ahead > 0:
            self._counters.abandoned += ahead - 1
            self._seen = (self._seen << ahead | 1) & ((1 << self._window) - 1) if ahead < self._window else 1
            self._next = seq + 1
        else:
            if -ahead >= self._window or self._seen >> -ahead & 1:
                self._counters.duplicates += 1
                return
            self._seen |= 1 << -ahead
            if self._in_order:
                self._counters.refused += 1
                return
            # it was late
            self._counters.abandoned -= 1
        self._counters.delivered += 1
        self._counters.delivered_bytes += len(frame.payload)
        self._delivered.append((frame.payload, self._channel))
