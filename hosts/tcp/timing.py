"""Round-trip times: the acknowledgements that give a sample, and the transmission each sample is of.

Read first: RFC 6298 section 3 (Karn's algorithm); RFC 7323 section 4 (timestamps).

Rules: with timestamps every acknowledgement of new data gives a sample. Without, segments are timed from their first
transmission; an acknowledgement of octets that were sent again, or that waited for such, gives none. 4.4BSD times one
segment after the other, and no segment while a retransmission is under way.
"""

from typing import Final

from common.sequence import unwrap
from common.units import MS
from hosts.tcp.options import TimerOptions
from hosts.tcp.rto import RtoEstimator
from tcpip.segment import Segment

#: transmissions that are kept although they are acknowledged
_MANY: Final = 256


class RoundTrips:
    """The samples of one connection."""

    def __init__(self, options: TimerOptions, rto: RtoEstimator, first: int) -> None:
        self._rto = rto
        #: agreed in the handshake
        self.timestamps = False
        self._one_timed = options.time_one or options.tick_ns > 0
        #: first transmissions not yet acknowledged: the octet behind each, and the time of each
        self._ends: list[int] = []
        self._sent_at: list[int] = []
        #: index of the oldest of them: those before are acknowledged
        self._oldest = 0
        #: octets below were sent again, or waited for such: their acknowledgement gives no sample
        self._ambiguous = first

    def handle_sent(self, end: int, now: int) -> None:
        """Take the first transmission of octets up to `end`; not needed with timestamps."""
        if not (self._one_timed and self._ends):
            self._ends.append(end)
            self._sent_at.append(now)

    def handle_sent_again(self, end: int) -> None:
        """Take another transmission of octets up to `end`."""
        if end > self._ambiguous:
            self._ambiguous = end
        if self._one_timed:
            self._forget(len(self._ends))

    def handle_ack(self, segment: Segment, una: int, ack: int, now: int) -> None:
        """Take an acknowledgement of [una, ack), and its sample if it gives one."""
        ends, oldest = self._ends, self._oldest
        sent_at = -1
        if oldest < len(ends) and ends[oldest] <= ack:
            sent_at = self._sent_at[oldest]
            oldest += 1
            while oldest < len(ends) and ends[oldest] <= ack:
                oldest += 1
            self._forget(oldest)
        if self.timestamps and segment.timestamps is not None:
            # RFC 7323 section 4.1; in ms, the unit of our timestamps
            now_ms = now // MS
            elapsed_ms = now_ms - unwrap(segment.timestamps[1], now_ms)
            if elapsed_ms >= 0:
                self._rto.handle_sample(elapsed_ms * MS)
        elif sent_at >= 0 and una >= self._ambiguous:
            self._rto.handle_acked(sent_at, now)

    def _forget(self, oldest: int) -> None:
        """Forget the transmissions before an index, those of a long list in one go."""
        if oldest == len(self._ends) or oldest >= _MANY:
            del self._ends[:oldest]
            del self._sent_at[:oldest]
            oldest = 0
        self._oldest = oldest
