"""The sending half: each packet is a block of fragments, which is sent again when no acknowledgement has come in time.

Rules kept
- A block is sent whole, at most `retries` times again; blocks to be sent again go first, in the order in which their
  time came.
- Its time begins when the radio takes its last fragment. Then, without retries left, the packet is given up.
- Memory is bounded: `window` packets wait for their acknowledgements. With ARQ the link wants no more; without ARQ,
  where they wait only to be counted, the oldest is given up.
"""

from collections import deque
from collections.abc import Sized
from typing import Final

from common.sequence import MASK, unwrap
from linklayer.hybrid.code import FragmentCode
from linklayer.hybrid.frames import MAX_BACK, Ack, Fragment
from linklayer.link import LinkCounters

#: packets that wait for their acknowledgement
WINDOW: Final = 1024


class _Block:
    """A packet under way."""

    __slots__ = ("again", "fragments", "number", "packet")

    def __init__(self, number: int, packet: Sized, fragments: list[Sized]) -> None:
        self.number = number
        self.packet = packet
        self.fragments = fragments
        #: how often it has been put on the link again
        self.again = 0


class Sender:
    """The sending half of one end. `data` of a packet's `total` fragments suffice; `wait_ns` is a block's time."""

    __slots__ = (
        "_again",
        "_blocks",
        "_code",
        "_counters",
        "_data",
        "_due",
        "_fresh",
        "_next",
        "_retries",
        "_tag",
        "_total",
        "_wait_ns",
        "given_up",
    )

    def __init__(
        self,
        code: FragmentCode,
        *,
        data: int,
        total: int,
        retries: int,
        wait_ns: int,
        tag: int,
        counters: LinkCounters,
    ) -> None:
        self._code, self._data, self._total = code, data, total
        self._retries, self._wait_ns, self._tag = retries, wait_ns, tag
        self._counters = counters
        #: number of the next packet, not wrapped
        self._next = 0
        #: packets that are not acknowledged, by number, oldest first
        self._blocks: dict[int, _Block] = {}
        #: fragments to be sent: the block and the index
        self._fresh: deque[tuple[_Block, int]] = deque()
        self._again: deque[tuple[_Block, int]] = deque()
        #: (time, number) of the blocks that wait for an acknowledgement, in the order of the times
        self._due: deque[tuple[int, int]] = deque()
        #: packets for `Link.poll_given_up`
        self.given_up: deque[Sized] = deque()

    def wants_packet(self) -> bool:
        """Whether the next packet may be handed over: its fragments would leave at once."""
        return not self._fresh and (not self._retries or len(self._blocks) < WINDOW)

    def handle_packet(self, packet: Sized) -> None:
        """Take one packet. Raises RuntimeError, and changes nothing, when none is wanted."""
        if not self.wants_packet():
            raise RuntimeError("a packet was handed over that the link did not want")
        if len(self._blocks) >= WINDOW:
            self._give_up(next(iter(self._blocks)))
        block = _Block(self._next, packet, self._code.cut(packet, self._data, self._total))
        self._blocks[self._next] = block
        self._next += 1
        self._counters.packets += 1
        self._put(block, self._fresh)

    def poll(self, now: int) -> Fragment | None:
        """Return the next fragment, or None."""
        while True:
            queue = self._again or self._fresh
            if not queue:
                return None
            block, index = queue.popleft()
            number = block.number
            if number not in self._blocks:
                # acknowledged while its fragments waited
                continue
            if index == self._total - 1:
                self._due.append((now + self._wait_ns, number))
            oldest = next(iter(self._blocks))
            back = number - oldest
            return Fragment(
                self._tag,
                number & MASK,
                back if back < MAX_BACK else MAX_BACK,
                block.again,
                index,
                self._data,
                self._total,
                len(block.packet),
                block.fragments[index],
            )

    def handle_ack(self, ack: Ack) -> None:
        """Take an acknowledgement: its packets are across."""
        if ack.tag != self._tag or not self._blocks:
            return
        number, received = unwrap(ack.highest, self._next), ack.received
        oldest = next(iter(self._blocks))
        while received and number >= oldest:
            if received & 1:
                block = self._blocks.pop(number, None)
                if block is not None:
                    self._counters.useful_bytes += len(block.packet)
            received >>= 1
            number -= 1

    def next_deadline(self) -> int | None:
        """When `handle_deadline` is due, or None."""
        while self._due and self._due[0][1] not in self._blocks:
            self._due.popleft()
        return self._due[0][0] if self._due else None

    def handle_deadline(self, now: int) -> None:
        """Send blocks again whose time is over, or give them up; a no-op when early."""
        while self._due and self._due[0][0] <= now:
            number = self._due.popleft()[1]
            block = self._blocks.get(number)
            if block is None:
                continue
            if block.again == self._retries:
                self._give_up(number)
            else:
                block.again += 1
                self._counters.retransmissions += 1
                self._put(block, self._again)

    def end(self) -> None:
        """Give up all packets under way."""
        for number in list(self._blocks):
            self._give_up(number)

    def _put(self, block: _Block, queue: deque[tuple[_Block, int]]) -> None:
        self._counters.fec_frames += self._total - self._data
        for index in range(self._total):
            queue.append((block, index))

    def _give_up(self, number: int) -> None:
        self.given_up.append(self._blocks.pop(number).packet)
        self._counters.residual_losses += 1
