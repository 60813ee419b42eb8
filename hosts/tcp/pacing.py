"""Pacing: when the next segment may leave, at the rate that window growth gives.

Read first: draft-ietf-ccwg-bbr-06 sections 5.6.2 (C.next_send_time) and 5.6.3 (C.send_quantum).

Rules: a quantum leaves at once, and the next one when the octets of the first have had their time. A growth that gives
no quantum has segment by segment. Rates are of TCP's octets, without headers, as the windows are; times are rounded up
to a whole ns. A segment that had to wait was due at `next_at`: a timer that fires late does not lower the rate, as long
as it is late by `MOST_LATE_NS` at most.

Left out: segments without data, SYNs and FEC segments (LT-TCP) are not paced.
"""

from typing import Final

from common.units import MS

#: ours: how late a real host's timer may be without an effect on the rate
MOST_LATE_NS: Final = 10 * MS
_BITS_NS: Final = 8_000_000_000


class Pacer:
    """The departures of one connection's segments."""

    def __init__(self) -> None:
        #: C.next_send_time: when the next quantum may leave (ns)
        self.next_at = 0
        #: octets of the present quantum that may still leave
        self._left = 0
        #: a segment waits for `next_at`
        self._waits = False

    def may_send(self, now: int) -> bool:
        """Whether a segment may leave; False: one that has to waits for `next_at`."""
        return now >= self.next_at or self._left > 0

    def wait(self) -> None:
        """A segment waits for `next_at`."""
        self._waits = True

    def pause(self) -> None:
        """Nothing waits: there is nothing to send, or no window to send it."""
        self._waits = False

    def handle_sent(self, octets: int, rate_bps: int, quantum: int, now: int) -> None:
        """Take a segment that leaves at `now`; `quantum` in octets, 0: each segment is one. `rate_bps` above 0."""
        next_at = self.next_at
        if now >= next_at:
            if not self._waits or now - next_at > MOST_LATE_NS:
                next_at = now
            self._left = quantum
        self._waits = False
        self._left -= octets
        self.next_at = next_at + (octets * _BITS_NS + rate_bps - 1) // rate_bps
