"""The receiving side of link ARQ.

Rules kept
- A packet in fragments has come when any of them suffice. With `combine` those of all its copies count together;
  without, each copy must bring enough.
- A packet is delivered once, and at once: a packet behind a hole does not wait. With `in_order` it waits until the hole
  is filled, until the sender has left the hole behind, or until no copy of it can come any more.
- Every packet is acknowledged, duplicates as well: their sender has missed the acknowledgement. One acknowledgement
  tells of the 64 numbers before it, too, so that the next ones make up for a lost one.
- A frame of another session begins anew: the far end has been made anew.
- Memory is bounded by the sender's window: a number too far above the sender's base is refused.
"""

from collections import deque
from collections.abc import Sized
from typing import Final

from common.sequence import MASK, unwrap
from linklayer.arq.code import FragmentCode
from linklayer.arq.frames import ACK_BITS, Ack, Data, Fragment

#: largest window of a sender; so many holes and held packets at most
MAX_WINDOW: Final = 4096
#: acknowledgements in line; the oldest go, as the later ones tell the same
_MAX_OWED: Final = 64
#: numbers known as received or as missing
_KNOWN: Final = MAX_WINDOW + ACK_BITS
_KNOWN_BITS: Final = (1 << _KNOWN) - 1
_ACK_MASK: Final = (1 << ACK_BITS) - 1


class _Partial:
    """A packet with some of its fragments, not yet enough."""

    __slots__ = ("copy", "data", "fragments", "length")

    def __init__(self, fragment: Fragment) -> None:
        self.copy = fragment.copy
        self.data = fragment.data
        self.length = fragment.length
        self.fragments: dict[int, Sized] = {}


class Receiver:
    """Frames of the peer, and the acknowledgements for it.

    `patience_ns`: how long a hole stops the order. `code` joins fragments; without it they are refused.
    """

    def __init__(
        self, in_order: bool, patience_ns: int, code: FragmentCode | None = None, combine: bool = True
    ) -> None:
        self._code = code
        self._combine = combine
        #: packets that are not whole
        self._partial: dict[int, _Partial] = {}
        self._in_order = in_order
        self._patience_ns = patience_ns
        self._session = -1
        #: nothing below comes any more
        self._base = 0
        #: the highest number that has come; bit i: so has the i-th below it
        self._top = -1
        self._had = 0
        #: with `in_order`: the number to deliver next, the packets that wait for it, and their deadline
        self._next = 0
        self._held: dict[int, tuple[Sized, int]] = {}
        self._release_at: int | None = None
        #: numbers to acknowledge
        self._owed: deque[int] = deque(maxlen=_MAX_OWED)
        #: packets that have come, and their channels
        self.packets: deque[tuple[Sized, int]] = deque()
        self.delivered = 0
        self.delivered_bytes = 0
        self.duplicates = 0
        #: packets that never came whole, and that the sender has left behind
        self.abandoned = 0
        #: packets that redundancy has made whole
        self.fec_repairs = 0
        self.refused = 0
        self.sessions = 0

    def handle_data(self, frame: Data | Fragment, now: int) -> None:
        """Take one frame."""
        if frame.session != self._session:
            self._begin(frame)
        base = unwrap(frame.base, self._base)
        seq = unwrap(frame.seq, base)
        if not base <= seq < base + MAX_WINDOW:
            self.refused += 1
            return
        if base > self._base:
            self.abandoned += base - self._base - self._come(self._base, base)
            self._base = base
            for gone in [each for each in self._partial if each < base]:
                del self._partial[gone]
        if isinstance(frame, Data):
            self._take(seq, frame.payload, frame.channel)
        elif seq <= self._top and self._had >> self._top - seq & 1:
            # behind enough fragments come the redundant ones: others are of a copy
            if frame.index < frame.data:
                self._take(seq, frame.payload, frame.channel)
        else:
            packet = self._join(seq, frame)
            if packet is not None:
                self._take(seq, packet, frame.channel)
        if self._in_order:
            self._release(self._base, now)

    def _take(self, seq: int, packet: Sized, channel: int) -> None:
        """Take a packet, which may have come before."""
        self._owed.append(seq)
        if seq < self._base or not self._note(seq):
            self.duplicates += 1
        elif self._in_order and seq >= self._next:
            self._held[seq] = packet, channel
        else:
            # in order, it is late: the wait for it was over
            self._deliver(packet, channel)

    def _join(self, seq: int, frame: Fragment) -> Sized | None:
        """Add a fragment; return the packet, if it is whole now."""
        if self._code is None:
            self.refused += 1
            return None
        partial = self._partial.get(seq)
        if partial is None or (frame.copy != partial.copy and not self._combine):
            partial = self._partial[seq] = _Partial(frame)
        if (partial.data, partial.length) != (frame.data, frame.length):
            self.refused += 1
            return None
        fragments = partial.fragments
        fragments[frame.index] = frame.payload
        if len(fragments) < partial.data:
            return None
        del self._partial[seq]
        try:
            packet = self._code.join(partial.length, partial.data, fragments)
        except ValueError:
            self.refused += 1
            return None
        if max(fragments) >= partial.data:
            self.fec_repairs += 1
        return packet

    def poll_ack(self) -> Ack | None:
        """Return the next acknowledgement, or None."""
        owed = self._owed
        if not owed:
            return None
        seq = owed.pop()
        before = self._had >> self._top - seq + 1 & _ACK_MASK
        # it tells of these, too
        while owed and 0 <= seq - owed[-1] <= ACK_BITS:
            owed.pop()
        return Ack(self._session, seq & MASK, before)

    def next_deadline(self) -> int | None:
        """When packets wait for a hole no longer, or None."""
        return self._release_at

    def handle_deadline(self, now: int) -> None:
        """Deliver what has waited long enough; a no-op when early."""
        if self._release_at is not None and self._release_at <= now:
            self._release_at = None
            self._release(min(self._held), now)

    def end(self) -> None:
        """Deliver all that waits."""
        for seq in sorted(self._held):
            self._deliver(*self._held[seq])
        self._held.clear()
        self._release_at = None

    def _begin(self, frame: Data | Fragment) -> None:
        """Take the numbers of a new session as they are."""
        self.end()
        self._session = frame.session
        self._base = self._next = frame.base
        self._top, self._had = frame.base - 1, 0
        self._owed.clear()
        self._partial.clear()
        self.sessions += 1

    def _note(self, seq: int) -> bool:
        """Note that a number has come; return whether it is the first time."""
        ahead = seq - self._top
        if ahead > 0:
            self._had = (self._had << ahead & _KNOWN_BITS) | 1 if ahead < _KNOWN else 1
            self._top = seq
            return True
        bit = 1 << -ahead
        if self._had & bit:
            return False
        self._had |= bit
        return True

    def _come(self, first: int, below: int) -> int:
        """Return how many of the numbers from `first` to `below` - 1 have come."""
        # no integer wider than `_had`: a base may be far ahead
        last = min(below - 1, self._top)
        had = self._had >> self._top - last
        span = last + 1 - first
        if span <= 0:
            return 0
        return (had if span >= had.bit_length() else had & (1 << span) - 1).bit_count()

    def _release(self, below: int, now: int) -> None:
        """Deliver, in order, the waiting packets below a number and those that follow without a hole."""
        if below > self._next:
            for seq in sorted(self._held):
                if seq >= below:
                    break
                self._deliver(*self._held.pop(seq))
            self._next = below
            self._release_at = None
        while self._next in self._held:
            self._deliver(*self._held.pop(self._next))
            self._next += 1
            self._release_at = None
        if self._held and self._release_at is None:
            self._release_at = now + self._patience_ns

    def _deliver(self, packet: Sized, channel: int) -> None:
        self.delivered += 1
        self.delivered_bytes += len(packet)
        self.packets.append((packet, channel))
