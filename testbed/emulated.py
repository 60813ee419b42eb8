"""The radio of the `emulated` tier: a channel model in real time, and a socket to the other station.

Rules: the model runs in the sending station's process and keeps exact time of its own, so late driving delays a frame
but never changes its fate. A damaged frame arrives with its bits flipped, and the link's own check must find that; an
erased one does not arrive. A frame delivered later than it was due counts as late beyond the bound: a slow machine is
never reported as a bad channel.
"""

import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from channel.errors import Fate
from channel.hop import Arrival, Hop

#: how soon to try again when the other station's socket is full
_RETRY_NS = 1_000_000


@dataclass(slots=True)
class Lateness:
    """How well the wall clock was kept."""

    events: int = 0
    late_events: int = 0
    max_ns: int = 0


class EmulatedRadio:
    """Sends frames through `hop` to the peer at the other end of `peer`, a SEQPACKET socket.

    `judged(arrival)` is called for every frame with its fate.
    """

    def __init__(
        self,
        hop: Hop[bytes],
        peer: socket.socket,
        *,
        max_frame_bytes: int,
        late_bound_ns: int,
        judged: Callable[[Arrival[bytes]], None] | None = None,
    ) -> None:
        self.hop = hop
        self.lateness = Lateness()
        self._peer = peer
        self._peer.setblocking(False)
        self._max_frame_bytes = max_frame_bytes
        self._late_bound_ns = late_bound_ns
        self._judged = judged
        self._waiting: deque[bytes] = deque()
        self._retry_at: int | None = None

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when a frame has come."""
        return self._peer.fileno()

    def has_room(self) -> bool:
        """Whether the MAC buffer takes a frame of the largest size."""
        return self.hop.room() >= self._max_frame_bytes

    def send(self, frame: bytes, now: int) -> bool:
        """Put a frame into the MAC buffer; False when it is full."""
        return self.hop.handle_frame(frame, len(frame), now)

    def receive(self) -> bytes | None:
        """Return the next frame that has arrived, or None."""
        try:
            # an empty read is the end of the other station; the run's owner deals with that
            return self._peer.recv(65536) or None
        except (BlockingIOError, ConnectionResetError):
            return None

    def next_deadline(self) -> int | None:
        """When a frame is due, or the transmitter is free for the next."""
        return self.hop.next_deadline() if self._retry_at is None else self._retry_at

    def handle_deadline(self, now: int) -> None:
        """Deliver what is due."""
        if self._retry_at is not None and now >= self._retry_at:
            self._retry_at = None
        while (arrival := self.hop.poll_arrival(now)) is not None:
            self._note(now - arrival.arrived_at)
            if self._judged is not None:
                self._judged(arrival)
            fate = arrival.verdict.fate
            if fate is Fate.ERASED:
                continue
            frame = arrival.frame
            self._waiting.append(damage(frame, arrival.verdict.bit_errors) if fate is Fate.DAMAGED else frame)
        if self._waiting and self._retry_at is None:
            self._deliver(now)

    def _deliver(self, now: int) -> None:
        waiting = self._waiting
        try:
            while waiting:
                self._peer.send(waiting[0])
                waiting.popleft()
        except BlockingIOError:
            # the other station does not keep up: its frames wait, and the run hears of it
            self._note(self._late_bound_ns + 1)
            self._retry_at = now + _RETRY_NS
        except (BrokenPipeError, ConnectionResetError):
            waiting.clear()

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
