"""The common part of all real-time radios: a modelled hop in front of the carrier of the frames.

Rules: the hop runs in the sending station's process and keeps exact time of its own, so late driving delays a frame but
never changes its fate. A damaged frame is carried with its bits flipped, which the link's own check must detect; an
erased frame is not carried. A frame carried later than the bound after its time counts as late: a slow machine is never
reported as a bad channel.
"""

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from channel.errors import Fate
from channel.hop import Arrival, Hop
from hosts.messages import Transmissions
from linklayer.station_counts import Lateness
from telemetry.records import AccessRecord, PhyRecord
from telemetry.views import PhyView
from testbed.live.station_loop import Radio

RadioMessage = PhyRecord | AccessRecord | PhyView | Transmissions


class HopRadio(Radio):
    """Sends frames through `hop`; a subclass carries them from there.

    `on_arrival(arrival)` is called for every frame with its fate.
    """

    def __init__(
        self,
        hop: Hop[bytes],
        *,
        max_frame_bytes: int,
        late_bound_ns: int,
        on_arrival: Callable[[Arrival[bytes]], None] | None = None,
    ) -> None:
        self.hop = hop
        self.lateness = Lateness()
        self._max_frame_bytes = max_frame_bytes
        self._late_bound_ns = late_bound_ns
        self._on_arrival = on_arrival
        #: frames that have crossed the hop and wait to be carried
        self._waiting: deque[bytes] = deque()

    def begin(self, epoch: int) -> None:
        """Take the run's time 0. Lateness while the processes started does not count."""
        self.lateness = Lateness()

    def run_in_real_time(self, priority: int) -> None:
        """Let the radio's own threads run in real time (sched(7)), if it has any. Raises PermissionError."""

    def about(self) -> Mapping[str, Any]:
        """Return what the radio says of itself, for the run's manifest."""
        return {}

    @property
    def unheard(self) -> int:
        """Frames of the far station that a receiver missed or received damaged."""
        return 0

    def watch(self, watched: bool) -> None:
        """Make views of the receiver from now on, or no more."""

    def take_records(self, now: int, time_ns: int) -> Iterator[RadioMessage]:
        """Yield the radio's figures since the last call, if it has any, and a view where one is due."""
        yield from ()

    def resize(self, *, buffer_bytes: int, max_frame_bytes: int) -> None:
        """Change the size of the MAC buffer and the largest frame."""
        self.hop.set_buffer_bytes(buffer_bytes)
        self._max_frame_bytes = max_frame_bytes

    def has_room(self) -> bool:
        """Whether the MAC buffer takes a frame of the largest size."""
        return self.hop.room() >= self._max_frame_bytes

    def send(self, frame: bytes, now: int) -> bool:
        """Put a frame into the MAC buffer; False when it is full."""
        return self.hop.handle_frame(frame, len(frame), now)

    def _hop_deadline(self) -> int | None:
        """When a frame is due, or the MAC buffer, being full, gets room."""
        return self.hop.next_arrival() if self.has_room() else self.hop.next_deadline()

    def handle_deadline(self, now: int) -> None:
        """Carry the frames that are due."""
        while (arrival := self.hop.poll_arrival(now)) is not None:
            self._note(now - arrival.arrived_at)
            if self._on_arrival is not None:
                self._on_arrival(arrival)
            fate = arrival.verdict.fate
            if fate is Fate.ERASED:
                continue
            frame = arrival.frame
            self._waiting.append(damage(frame, arrival.verdict.bit_errors) if fate is Fate.DAMAGED else frame)
        if self._waiting:
            self._carry(now)

    @abstractmethod
    def _carry(self, now: int) -> None:
        """Carry as many of the waiting frames as can go now."""

    def _note(self, late_ns: int) -> None:
        lateness = self.lateness
        lateness.events += 1
        if late_ns > lateness.max_ns:
            lateness.max_ns = late_ns
        if late_ns > self._late_bound_ns:
            lateness.late_events += 1


def damage(frame: bytes, bit_errors: tuple[int, ...]) -> bytes:
    """Return `frame` with the bits at these offsets flipped."""
    octets = bytearray(frame)
    for bit in bit_errors:
        octets[bit >> 3] ^= 0x80 >> (bit & 7)
    return bytes(octets)
