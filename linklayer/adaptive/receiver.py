"""The receiving side: what has come, in order, and the acknowledgements of it.

Rules kept
- A packet is delivered once. It waits for those before it, of which the sender says by `base` when they come no more;
  should no frame tell it, until the budget is over since the hole was seen. Packets of the fast channel do not wait.
- Every frame is acknowledged, as soon as the radio takes the acknowledgement: one for all frames that came meanwhile.
- An acknowledgement is repeated so often that one in `_SILENCE` of them stays unheard, by the share that the peer says
  it misses, unless another frame, whose acknowledgement tells the same, comes first.
- A frame of another session begins anew: the far end has been made anew.
- Memory is bounded by the window: a number too far above the sender's base is refused.
"""

from collections import deque
from collections.abc import Sized
from math import log
from typing import Final

from common.sequence import MASK, unwrap
from common.units import MS
from linklayer.adaptive.code import Code, Decoder
from linklayer.adaptive.frames import LOSS_STEPS, MAX_BITS, MAX_WINDOW, MIN_BITS, Ack, Coded, Data, Mark, members_of

#: the channel whose packets do not wait
_FAST: Final = 1
#: of this many acknowledgements, repetitions counted as one, one may be lost
_SILENCE: Final = 20.0
#: repetitions go after this part of the budget
_REPEAT_PART: Final = 64
#: the share of lost acknowledgements is smoothed over so many
_MEMORY: Final = 64.0
_ACK_COUNTS: Final = 256
_MOST_REPEATS: Final = 8


def _ones(count: int) -> int:
    return (1 << count) - 1


#: numbers known as received or as missing; not as one constant, which the compiler cannot hold
_KNOWN_BITS: Final = _ones(MAX_WINDOW + MAX_BITS)
_FRAME_BITS: Final = _ones(MAX_BITS + 1)


class AckLosses:
    """Counts the peer's acknowledgements that do not come, by their numbers."""

    def __init__(self) -> None:
        self._last = -1
        self.share = 0.0

    def handle(self, count: int) -> None:
        """Take the number of an acknowledgement that has come."""
        if self._last >= 0:
            missed = (count - self._last) % _ACK_COUNTS - 1
            for _ in range(max(0, min(missed, _ACK_COUNTS // 2))):
                self.share += (1 - self.share) / _MEMORY
            self.share -= self.share / _MEMORY
        self._last = count

    @property
    def steps(self) -> int:
        """The share in 1/255."""
        return round(self.share * LOSS_STEPS)


class Receiver:
    """Frames of the peer, and the acknowledgements for it."""

    def __init__(self, code: Code) -> None:
        self._code = code
        self._decoder = Decoder(code)
        self._session = -1
        #: the newest frame that has come; bit i: so has the i-th before it, itself included
        self._newest = -1
        self._frames = 0
        #: nothing below comes any more
        self._base = 0
        #: the highest number that has come; bit i: so has the i-th below it
        self._top = -1
        self._had = 0
        #: the number to deliver next, the packets that wait for it, and when they wait no longer
        self._next = 0
        self._held: dict[int, Sized] = {}
        self._release_at: int | None = None
        self._patience_ns = 0
        self._ack_due = False
        self._acks = 0
        self._repeats = 0
        self._repeats_left = 0
        self._repeat_at: int | None = None
        self._repeat_due = False
        #: packets that have come, and their channels
        self.packets: deque[tuple[Sized, int]] = deque()
        self.delivered = 0
        self.delivered_bytes = 0
        self.duplicates = 0
        #: packets that never came, and that the sender has left behind
        self.abandoned = 0
        #: packets that redundancy has restored
        self.fec_repairs = 0
        self.refused = 0
        self.sessions = 0

    def handle_frame(self, frame: Data | Coded | Mark, now: int) -> None:
        """Take one frame."""
        if frame.session != self._session:
            self._begin(frame)
        base = unwrap(frame.base, self._base)
        top = unwrap(frame.seq if isinstance(frame, Data) else frame.base, base)
        if not base <= top < base + MAX_WINDOW:
            self.refused += 1
            return
        # with no patience at all a deadline would be due again at once
        self._patience_ns = max(1, frame.patience_ms) * MS
        self._count_repeats(frame.heard)
        if not self._note_frame(unwrap(frame.tx, self._newest)):
            self.duplicates += 1
            return
        self._ack_due = True
        if base > self._base:
            self._abandon(base)
        if isinstance(frame, Data):
            self._take(top, frame.payload, frame.channel)
            self._decoder.known(top, frame.payload)
        elif isinstance(frame, Coded):
            self._take_coded(frame)
        while (restored := self._decoder.poll()) is not None:
            seq, packet = restored
            if seq >= self._base and self._take(seq, packet, frame.channel):
                self.fec_repairs += 1
        self._release(now)

    def poll_ack(self, now: int) -> Ack | None:
        """Return the next acknowledgement, or None."""
        if self._ack_due:
            self._repeats_left = self._repeats
        elif self._repeat_due:
            self._repeats_left -= 1
        else:
            return None
        self._ack_due = self._repeat_due = False
        self._repeat_at = now + max(MS, self._patience_ns // _REPEAT_PART) if self._repeats_left else None
        count = self._acks
        self._acks = (count + 1) % _ACK_COUNTS
        # as far back as something is missing, and as it may have been missed
        reach = min(MAX_BITS, max(MIN_BITS, 2 * (self._top - self._next)))
        bits = (1 << reach) - 1
        return Ack(
            self._session, count, self._newest & MASK, self._frames >> 1 & bits, self._top & MASK, self._had >> 1 & bits
        )

    def next_deadline(self) -> int | None:
        """When packets wait for a hole no longer, or an acknowledgement is repeated, or None."""
        if self._release_at is None or (self._repeat_at is not None and self._repeat_at < self._release_at):
            return self._repeat_at
        return self._release_at

    def handle_deadline(self, now: int) -> None:
        """Deliver what has waited long enough; a no-op when early."""
        if self._release_at is not None and self._release_at <= now:
            self._release_at = None
            self._next = min(self._held)
            self._release(now)
        if self._repeat_at is not None and self._repeat_at <= now:
            self._repeat_at = None
            self._repeat_due = True

    def end(self) -> None:
        """Deliver all that waits."""
        for seq in sorted(self._held):
            self._deliver(self._held[seq], 0)
        self._held.clear()
        self._release_at = None

    def _begin(self, frame: Data | Coded | Mark) -> None:
        """Take the numbers of a new session as they are."""
        self.end()
        self._session = frame.session
        self._decoder = Decoder(self._code)
        self._base = self._next = frame.base
        # below all that the sender may wait for: nothing has come
        self._top, self._had = frame.base - 1 - MAX_WINDOW, 0
        self._newest, self._frames = frame.tx - 1, 0
        self._repeat_at = None
        self._repeat_due = False
        self._patience_ns = 0
        self.sessions += 1

    def _count_repeats(self, heard: int) -> None:
        """Set how often an acknowledgement is repeated where the peer misses this share of them."""
        if heard * _SILENCE <= LOSS_STEPS:
            self._repeats = 0
        elif heard >= LOSS_STEPS:
            self._repeats = _MOST_REPEATS
        else:
            self._repeats = min(_MOST_REPEATS, int(log(_SILENCE) / log(LOSS_STEPS / heard)))

    def _note_frame(self, tx: int) -> bool:
        """Note that a frame has come; return whether it is the first time."""
        ahead = tx - self._newest
        if ahead > 0:
            self._frames = (self._frames << ahead & _FRAME_BITS) | 1 if ahead <= MAX_BITS else 1
            self._newest = tx
            return True
        if -ahead > MAX_BITS:
            return False
        bit = 1 << -ahead
        if self._frames & bit:
            return False
        self._frames |= bit
        return True

    def _take_coded(self, frame: Coded) -> None:
        first = unwrap(frame.first, self._base)
        seqs = [first + offset for offset in members_of(frame)]
        if not self._base <= first or seqs[-1] >= self._base + MAX_WINDOW:
            self.refused += 1
            return
        try:
            self._decoder.equation(seqs, frame.index, frame.payload)
        except ValueError:
            self.refused += 1

    def _take(self, seq: int, packet: Sized, channel: int) -> bool:
        """Take a packet, which may have come before; return whether it is the first time."""
        if seq < self._base or not self._note(seq):
            self.duplicates += 1
            return False
        if channel == _FAST or seq < self._next:
            # in order, it is late: the wait for it was over
            self._deliver(packet, channel)
        else:
            self._held[seq] = packet
        return True

    def _note(self, seq: int) -> bool:
        """Note that a number has come; return whether it is the first time."""
        ahead = seq - self._top
        if ahead > 0:
            # a far jump, of a base, leaves nothing that is asked for
            self._had = (self._had << ahead & _KNOWN_BITS) | 1 if ahead <= MAX_WINDOW + MAX_BITS else 1
            self._top = seq
            return True
        bit = 1 << -ahead
        if self._had & bit:
            return False
        self._had |= bit
        return True

    def _abandon(self, base: int) -> None:
        """Leave the numbers below `base` behind."""
        last = min(base - 1, self._top)
        span = last + 1 - self._base
        came = (self._had >> self._top - last & (1 << span) - 1).bit_count() if span > 0 else 0
        self.abandoned += base - self._base - came
        self._base = base
        # combinations sent before tell of packets that are known
        self._decoder.forget(base)
        # bits of numbers that nobody asks for any more
        self._had &= (1 << max(0, self._top - base) + MAX_BITS + 1) - 1

    def _release(self, now: int) -> None:
        """Deliver the waiting packets below the base, and those that follow without a hole."""
        if self._base > self._next:
            for seq in sorted(self._held):
                if seq >= self._base:
                    break
                self._deliver(self._held.pop(seq), 0)
            self._next = self._base
            self._release_at = None
        while self._next <= self._top and self._had >> self._top - self._next & 1:
            packet = self._held.pop(self._next, None)
            # one of the fast channel has been delivered
            if packet is not None:
                self._deliver(packet, 0)
            self._next += 1
            self._release_at = None
        if not self._held:
            self._release_at = None
        elif self._release_at is None:
            self._release_at = now + self._patience_ns

    def _deliver(self, packet: Sized, channel: int) -> None:
        self.delivered += 1
        self.delivered_bytes += len(packet)
        self.packets.append((packet, channel))
