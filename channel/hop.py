"""One direction of a radio link: MAC buffer, transmitter, air.

Read first: SLACP section 4 (MAC buffer, rates, delays) and the picture in `channel/README.md`.

Order of calls, at a `now` that never goes back: any of `handle_frame` and `handle_deadline`, then `poll_arrival` until
it returns None, then `next_deadline` or `next_arrival`. `room` may be asked at any time after those.

Rules kept here:

- FIFO from buffer to arrival, whatever the excess delay.
- The hop keeps its own exact time: also when driven late, a frame that waited starts at the end of the frame before
  it, not at `now`. Late and punctual driving give the same arrivals.
- No drift: the part of a nanosecond by which a frame ends early is credited to the next one, so n frames back
  to back take their exact time rounded up once.
- The buffer holds a frame until its last bit has left; a frame is lost by verdict or by refusal, never
  otherwise.
- With `far_bytes` no frame starts while so much has left and not arrived: a link with ARQ stops when the buffers at its
  ends are full (SLOWLINK section 4). Only where the rate is constant.

Left out: the contents of frames (the link layer), and the effect of a verdict on the receiver (the driver).
"""

from collections import deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from channel.capacity import Capacity
from channel.delay import ExcessDelay
from channel.errors import INTACT, ErrorModel, Fate, Verdict
from channel.framing import Framing

T = TypeVar("T")

_NEVER: Final = 1 << 61
_SECOND_NS: Final = 1_000_000_000


class Arrival(Generic[T]):
    """A frame at the far end, or the place where an erased one would be. Times in ns."""

    def __init__(self, frame: T, verdict: Verdict, sent_at: int, arrived_at: int) -> None:
        self.frame = frame
        self.verdict = verdict
        #: last bit left the transmitter
        self.sent_at = sent_at
        #: last bit reached the receiver, holds included
        self.arrived_at = arrived_at

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Arrival) and self._fields() == other._fields()

    def _fields(self) -> tuple[object, ...]:
        return self.frame, self.verdict, self.sent_at, self.arrived_at


class Hop(Generic[T]):
    """One direction of a radio link.

    `propagation_ns` is the one-way delay behind the transmitter, `buffer_bytes` the size of the MAC buffer in
    bytes of frames (before framing). `T` is the driver's type of frames; the hop counts their bytes and
    never looks inside.

    Raises ValueError for `far_bytes` where the rate varies.
    """

    def __init__(
        self,
        *,
        capacity: Capacity,
        framing: Framing,
        errors: ErrorModel,
        propagation_ns: int,
        buffer_bytes: int,
        excess_delay: ExcessDelay | None = None,
        far_bytes: int | None = None,
    ) -> None:
        self._capacity = capacity
        self._constant = capacity.constant
        self._framing = framing
        self._errors = errors
        self._propagation_ns = propagation_ns
        self._buffer_bytes = buffer_bytes
        self._excess_delay = excess_delay
        if far_bytes is not None and not capacity.constant:
            raise ValueError("far_bytes is given: the rate must be constant")
        self._far_limit = _NEVER if far_bytes is None else far_bytes
        #: with a limit: when each frame that has left arrives, and its bytes; their sum
        self._far: deque[tuple[int, int]] = deque()
        self._far_bytes = 0

        #: (frame, bytes, bits on the wire); the first is being sent
        self._queue: deque[tuple[T, int, int]] = deque()
        self._held_bytes = 0
        self._held_bits = 0
        self._arrivals: deque[Arrival[T]] = deque()
        self._last_arrival_at = 0
        #: called with every frame that leaves
        self._leaving: Callable[[Arrival[T]], None] | None = None

        # The frame being sent. Work is counted in bits x 10^9, so that rate x ns is work, exactly.
        self._rate_bps = capacity.rate_bps()
        #: work left at _served_from, and the instant it ends at the present rate
        self._left = 0
        self._served_from = 0
        self._ends_at = _NEVER
        #: first bit on the air; -1 before that
        self._started_at = -1
        #: work done for the next frame in the rest of the nanosecond the last one ended in
        self._credit = 0
        self._capacity_at = _NEVER
        #: the earlier of _ends_at and _capacity_at
        self._wake_at = _NEVER

        #: frames whose last bit has left, their bytes, and their bits on the wire
        self.frames = 0
        self.bytes = 0
        self.wire_bits = 0
        #: time from the first bit to the last of all of them, in ns
        self.airtime_ns = 0
        #: verdicts among those frames
        self.erased = 0
        self.damaged = 0
        #: frames that found the buffer full
        self.refused = 0

    def room(self) -> int:
        """Return the free bytes of the MAC buffer, where a frame counts until its last bit has left."""
        return max(self._buffer_bytes - self._held_bytes, 0)

    def handle_frame(self, frame: T, nbytes: int, now: int) -> bool:
        """Take a frame of `nbytes` into the MAC buffer; return False, keeping nothing, if there is no room
        for it.

        An empty buffer takes any frame, even one that is larger than the buffer.
        """
        if self._wake_at <= now:
            self._advance(now)
        queue = self._queue
        held = self._held_bytes + nbytes
        if queue and held > self._buffer_bytes:
            self.refused += 1
            return False
        bits = self._framing(nbytes)
        queue.append((frame, nbytes, bits))
        self._held_bytes = held
        self._held_bits += bits
        if len(queue) == 1:
            self._credit = 0
            self._send(bits, self._may_start(nbytes, now))
        if not self._constant:
            self._report_backlog(now)
        return True

    def watch(self, leaving: Callable[[Arrival[T]], None]) -> None:
        """Call `leaving` with every frame as its last bit leaves: its fate is decided then, before it arrives."""
        self._leaving = leaving

    def set_errors(self, errors: ErrorModel) -> None:
        """Use another error model, from the frame on that is being sent now."""
        self._errors = errors

    def set_buffer_bytes(self, buffer_bytes: int) -> None:
        """Change the size of the MAC buffer, which keeps its frames."""
        self._buffer_bytes = buffer_bytes

    def next_deadline(self) -> int | None:
        """Return the next instant (ns) at which a frame ends, a frame arrives or the rate may change."""
        at = self._wake_at
        arrivals = self._arrivals
        if arrivals and arrivals[0].arrived_at < at:
            return arrivals[0].arrived_at
        return at if at < _NEVER else None

    def next_arrival(self) -> int | None:
        """Return an instant (ns) before which no frame arrives, or None when none is under way.

        For a driver that waits for nothing else: the hop keeps its own time also when it sleeps through a frame's end.
        """
        if self._arrivals:
            return self._arrivals[0].arrived_at
        return self._wake_at + self._propagation_ns if self._wake_at < _NEVER else None

    def handle_deadline(self, now: int) -> None:
        """Bring the transmitter up to `now`; nothing when early."""
        if self._wake_at <= now:
            self._advance(now)

    def poll_arrival(self, now: int) -> Arrival[T] | None:
        """Return the next frame that has arrived by `now`, erased ones included, or None."""
        if self._wake_at <= now:
            self._advance(now)
        arrivals = self._arrivals
        if arrivals and arrivals[0].arrived_at <= now:
            return arrivals.popleft()
        return None

    @property
    def held(self) -> int:
        """The frames that have entered and not arrived."""
        return len(self._queue) + len(self._arrivals)

    def in_flight(self) -> tuple[Arrival[T], ...]:
        """Return the frames that have left and not arrived, oldest first, without removing them."""
        return tuple(self._arrivals)

    def _advance(self, now: int) -> None:
        while self._wake_at <= now:
            # On a tie the frame ends first: its last bit belongs to the old rate.
            if self._ends_at <= self._capacity_at:
                self._end_frame()
            else:
                self._change_rate()

    def _may_start(self, nbytes: int, at: int) -> int:
        """Return when the next frame may start, `at` or later."""
        far = self._far
        while far and (far[0][0] <= at or self._far_bytes + nbytes > self._far_limit):
            arrived_at, arrived_bytes = far.popleft()
            self._far_bytes -= arrived_bytes
            if arrived_at > at:
                at = arrived_at
        return at

    def _send(self, bits: int, at: int) -> None:
        left = bits * _SECOND_NS - self._credit
        rate = self._rate_bps
        self._left = left
        self._served_from = at
        if rate:
            self._started_at = at
            self._ends_at = at = at - -left // rate
            self._wake_at = at if at < self._capacity_at else self._capacity_at
        else:
            self._started_at = -1
            self._ends_at = _NEVER
            self._wake_at = self._capacity_at

    def _end_frame(self) -> None:
        frame, nbytes, bits = self._queue.popleft()
        sent_at = self._ends_at
        self._held_bytes -= nbytes
        self._held_bits -= bits
        self.frames += 1
        self.bytes += nbytes
        self.wire_bits += bits
        self.airtime_ns += sent_at - self._started_at

        verdict = self._errors.judge(self._started_at, sent_at, nbytes)
        if verdict is not INTACT:
            if verdict.fate is Fate.ERASED:
                self.erased += 1
            elif verdict.fate is Fate.DAMAGED:
                self.damaged += 1

        arrived_at = sent_at + self._propagation_ns
        if self._excess_delay is not None:
            arrived_at = max(arrived_at + self._excess_delay.draw(), self._last_arrival_at)
            self._last_arrival_at = arrived_at
        arrival = Arrival(frame, verdict, sent_at, arrived_at)
        self._arrivals.append(arrival)
        if self._leaving is not None:
            self._leaving(arrival)

        if self._far_limit < _NEVER:
            self._far.append((arrived_at, nbytes))
            self._far_bytes += nbytes

        if self._queue:
            start = self._may_start(self._queue[0][1], sent_at)
            self._credit = (sent_at - self._served_from) * self._rate_bps - self._left if start == sent_at else 0
            self._send(self._queue[0][2], start)
        else:
            self._ends_at = _NEVER
            self._wake_at = self._capacity_at

    def _change_rate(self) -> None:
        at = self._capacity_at
        capacity = self._capacity
        if self._queue:
            self._left -= (at - self._served_from) * self._rate_bps
            self._served_from = at
        capacity.handle_backlog(self._backlog_bits(at), at)
        capacity.handle_deadline(at)
        self._rate_bps = rate = capacity.rate_bps()
        if self._queue:
            if not rate:
                self._ends_at = _NEVER
            else:
                if self._started_at < 0:
                    self._started_at = at
                self._ends_at = at - -self._left // rate
        self._await_capacity()

    def _report_backlog(self, now: int) -> None:
        self._capacity.handle_backlog(self._backlog_bits(now), now)
        self._await_capacity()
        self._advance(now)

    def _backlog_bits(self, at: int) -> int:
        if not self._queue:
            return 0
        left = self._left - (at - self._served_from) * self._rate_bps
        return self._held_bits - self._queue[0][2] - -left // _SECOND_NS

    def _await_capacity(self) -> None:
        at = self._capacity.next_deadline()
        self._capacity_at = _NEVER if at is None else at
        self._wake_at = min(self._ends_at, self._capacity_at)
