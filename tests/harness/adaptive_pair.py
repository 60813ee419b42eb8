"""Two ends of an adaptive link, joined by a medium of the test's, in virtual time: no clock, no sleep.

A frame takes as long as its octets at the rate, then the way. Up to two frames wait in the transmitter, as in a
station's MAC buffer. Frames cross as objects, or as octets with `Octets`.
"""

import heapq
from collections import deque
from collections.abc import Callable, Sized
from random import Random
from typing import Any

from common.units import MS, SECOND
from linklayer.adaptive.code import Counting, Field
from linklayer.adaptive.endpoint import Adaptive
from linklayer.adaptive.frames import CODED_OVERHEAD_BYTES, emit, parse

#: (end that sends, when the frame leaves, frame) -> whether it is lost
Loses = Callable[[int, int, Any], bool]
_MAC_FRAMES = 2


class SizedPacket:
    """A packet without octets, with its number."""

    def __init__(self, number: int, nbytes: int = 1500) -> None:
        self.number = number
        self.nbytes = nbytes

    def __len__(self) -> int:
        return self.nbytes


def bernoulli(per: float, seed: int, back: float | None = None) -> Loses:
    """Independent losses: `per` from end 0, `back` (as many, unless said) from end 1."""
    rng = Random(seed)
    rates = per, per if back is None else back
    return lambda end, now, frame: rng.random() < rates[end]


class AdaptivePair:
    """End 0 and end 1; `backlog[end]` are packets to be sent, `got[end]` (ns, packet) delivered there."""

    def __init__(
        self,
        loses: Loses = lambda end, now, frame: False,
        *,
        round_trips: float = 3,
        budget_ms: float = 0,
        rate_bps: int = 2_000_000,
        delay_ms: float = 25,
        octets: bool = True,
        seed: int = 1,
        mtu: int = 1500,
        first: int = 0,
    ) -> None:
        frame_ns = (mtu + CODED_OVERHEAD_BYTES) * 8 * SECOND // rate_bps
        self._made = 0
        self._seed, self._octets, self._first = seed, octets, first
        self._options = {"round_trips": round_trips, "budget_ns": round(budget_ms * MS), "frame_ns": frame_ns}
        self._loses, self._rate_bps, self._delay_ns = loses, rate_bps, round(delay_ms * MS)
        self.now = 0
        self.ends = [self.make_end(), self.make_end()]
        self.backlog: list[deque[Sized]] = [deque(), deque()]
        self.channel = 0
        #: the channel of a packet, if it is not `channel`
        self.channel_of: Callable[[Sized], int] | None = None
        #: packets taken by the link, with the times
        self.taken: list[list[tuple[int, Sized]]] = [[], []]
        self.got: list[list[tuple[int, Sized]]] = [[], []]
        self.given_up: list[list[Sized]] = [[], []]
        self.sent: list[list[tuple[int, Any]]] = [[], []]
        self.sent_bytes = [0, 0]
        #: the ends of the frames in the transmitter
        self._busy: list[deque[int]] = [deque(), deque()]
        self._air: list[tuple[int, int, int, Any]] = []
        #: makes packets without end for an end, if it is set
        self.source: list[Callable[[], Sized] | None] = [None, None]
        self.keep_frames = True

    def make_end(self, **changed: float) -> Adaptive:
        """Return an end that knows nothing; `changed` options are its own. Its numbers begin at `first`."""
        self._made += 1
        code = Field() if self._octets else Counting()
        rng = Random(self._seed * 100 + self._made)
        end = Adaptive(**{**self._options, **changed}, code=code, rng=rng, now=self.now)  # type: ignore[arg-type]
        sender = end.sender
        sender._next = sender._next_tx = sender._base = sender._told = sender._left = self._first
        return end

    def run(self, until_ms: float) -> "AdaptivePair":
        """Go on until then."""
        until = round(until_ms * MS)
        while True:
            for end in (0, 1):
                self._pump(end)
            times = [at for link in self.ends if (at := link.next_deadline()) is not None]
            times += [entry[0] for entry in self._air[:1]] + [busy[0] for busy in self._busy if busy]
            at = min(times, default=until)
            if at > until or not times:
                self.now = until
                return self
            self.now = max(self.now, at)
            for busy in self._busy:
                while busy and busy[0] <= self.now:
                    busy.popleft()
            while self._air and self._air[0][0] <= self.now:
                _, _, end, frame = heapq.heappop(self._air)
                self.ends[end].handle_frame(frame, self.now)
            for link in self.ends:
                if (due := link.next_deadline()) is not None and due <= self.now:
                    link.handle_deadline(self.now)
                    due = link.next_deadline()
                    assert due is None or due > self.now, "a deadline that does not go away would spin"

    def _pump(self, end: int) -> None:
        link, busy = self.ends[end], self._busy[end]
        while (found := link.poll_packet()) is not None:
            self.got[end].append((self.now, found[0]))
        while (lost := link.poll_given_up()) is not None:
            self.given_up[end].append(lost)
        while len(busy) < _MAC_FRAMES:
            source, backlog = self.source[end], self.backlog[end]
            if not backlog and source is not None and link.wants_packet(self.channel):
                backlog.append(source())
            channel = self.channel
            if backlog and self.channel_of is not None:
                channel = self.channel_of(backlog[0])
            if backlog and link.wants_packet(channel):
                packet = backlog.popleft()
                self.taken[end].append((self.now, packet))
                link.handle_packet(packet, channel)
            frame = link.poll_frame(self.now)
            if frame is None:
                return
            start = max(self.now, busy[-1] if busy else 0)
            leaves = start + frame.nbytes * 8 * SECOND // self._rate_bps
            busy.append(leaves)
            self.sent_bytes[end] += frame.nbytes
            if self.keep_frames:
                self.sent[end].append((self.now, frame))
            if not self._loses(end, leaves, frame):
                self._made += 1
                crossing = parse(emit(frame)) if self._octets else frame
                heapq.heappush(self._air, (leaves + self._delay_ns, self._made, 1 - end, crossing))
