"""The receiving half: a packet is there as soon as any `data` of its fragments are.

Rules kept
- With `combine` the fragments of all sendings of a packet count together; without, each sending must bring enough.
- A packet is delivered once. With `in_order` it waits for those before it, until the sender's numbers say that they are
  across or given up, or until `hold_ns` after its coming.
- Memory is bounded: `WINDOW` numbers behind the highest one are remembered, of each packet no more fragments than
  suffice. A fragment with another tag is from a sender that has begun anew: what is known of the old one is dropped.
- No fragment makes it raise. Fragments that contradict each other are refused, and counted.
"""

from collections import deque
from collections.abc import Sized

from common.sequence import MASK, unwrap
from linklayer.hybrid.code import FragmentCode
from linklayer.hybrid.frames import Ack, Fragment
from linklayer.hybrid.sender import WINDOW
from linklayer.link import LinkCounters


class _Partial:
    """A packet of which fragments are here, and not enough."""

    __slots__ = ("data", "fragments", "length", "sending")

    def __init__(self, data: int, length: int, sending: int) -> None:
        self.data = data
        self.length = length
        self.sending = sending
        self.fragments: dict[int, Sized] = {}


class Receiver:
    """The receiving half of one end."""

    __slots__ = (
        "_ack_due",
        "_arrived",
        "_base",
        "_code",
        "_combine",
        "_counters",
        "_held",
        "_highest",
        "_hold_ns",
        "_in_order",
        "_next",
        "_partial",
        "_tag",
        "delivered",
    )

    def __init__(
        self, code: FragmentCode, *, combine: bool, in_order: bool, hold_ns: int, counters: LinkCounters
    ) -> None:
        self._code, self._combine, self._in_order, self._hold_ns = code, combine, in_order, hold_ns
        self._counters = counters
        self.delivered: deque[Sized] = deque()
        self._tag = -1
        self._ack_due = False
        self._begin(-1, 0)

    def _begin(self, tag: int, first: int) -> None:
        """Forget the sender, and begin with another one, whose oldest packet is `first`."""
        self._tag = tag
        #: highest number seen, and the packets that are here: bit i stands for number `_highest` - i
        self._highest = first - 1
        self._arrived = 0
        #: the sender's oldest number; the next one to be delivered in order
        self._base = first
        self._next = first
        self._partial: dict[int, _Partial] = {}
        #: whole packets that wait for earlier ones: until when, and the packet
        self._held: dict[int, tuple[int, Sized]] = {}

    def handle_fragment(self, fragment: Fragment, now: int) -> None:
        """Take one fragment."""
        if fragment.tag != self._tag:
            self._release_all()
            self._begin(fragment.tag, fragment.number - fragment.back)
        number = unwrap(fragment.number, self._highest)
        if number <= self._highest - WINDOW:
            self._counters.refused += 1
            return
        if number > self._highest:
            self._rise_to(number)
        base = number - fragment.back
        if base > self._base:
            self._base = base
        if self._arrived >> self._highest - number & 1:
            # behind enough fragments come redundant ones only: this one has been sent again
            if fragment.index < fragment.data:
                self._ack_due = True
        else:
            self._add(fragment, number, now)
        if self._in_order:
            self._release(now)

    def _rise_to(self, number: int) -> None:
        step = number - self._highest
        self._arrived = self._arrived << step & (1 << WINDOW) - 1 if step < WINDOW else 0
        self._highest = number
        oldest = number - WINDOW
        for old in [each for each in self._partial if each <= oldest]:
            del self._partial[old]

    def _add(self, fragment: Fragment, number: int, now: int) -> None:
        partial = self._partial.get(number)
        if partial is None or (fragment.sending != partial.sending and not self._combine):
            partial = self._partial[number] = _Partial(fragment.data, fragment.length, fragment.sending)
        elif (partial.data, partial.length) != (fragment.data, fragment.length):
            self._counters.refused += 1
            return
        fragments = partial.fragments
        fragments[fragment.index] = fragment.shard
        if len(fragments) < partial.data:
            return
        del self._partial[number]
        try:
            packet = self._code.join(partial.length, partial.data, fragments)
        except ValueError:
            self._counters.refused += 1
            return
        self._arrived |= 1 << self._highest - number
        self._ack_due = True
        if max(fragments) >= partial.data:
            self._counters.fec_repairs += 1
        if self._in_order and number >= self._next:
            self._held[number] = now + self._hold_ns, packet
        else:
            self._deliver(packet)

    def poll_ack(self) -> Ack | None:
        """Return an acknowledgement, if one is due: of the sender's packets from its oldest on."""
        if not self._ack_due:
            return None
        self._ack_due = False
        width = min(max(self._highest - self._base + 1, 1), WINDOW)
        return Ack(self._tag, self._highest & MASK, self._arrived & (1 << width) - 1)

    def next_deadline(self) -> int | None:
        """When `handle_deadline` is due, or None."""
        # they came in the order of their times
        return next(iter(self._held.values()))[0] if self._held else None

    def handle_deadline(self, now: int) -> None:
        """Deliver the packets that have waited too long, and all before them; a no-op when early."""
        late = [number for number, (until, _) in self._held.items() if until <= now]
        if late:
            self._next = max(self._next, max(late))
            self._release(now)

    def end(self) -> None:
        """Deliver all that waits."""
        self._release_all()

    def _release(self, now: int) -> None:
        """Deliver in order as far as nothing is missing that may still come."""
        if self._base > self._next:
            self._next = self._base
        held = self._held
        for number in sorted(each for each in held if each < self._next):
            self._deliver(held.pop(number)[1])
        while self._next in held:
            self._deliver(held.pop(self._next)[1])
            self._next += 1

    def _release_all(self) -> None:
        for number in sorted(self._held):
            self._deliver(self._held[number][1])
        self._held.clear()

    def _deliver(self, packet: Sized) -> None:
        self._counters.delivered += 1
        self._counters.delivered_bytes += len(packet)
        self.delivered.append(packet)
