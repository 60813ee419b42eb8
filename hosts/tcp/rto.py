"""The retransmission timeout.

Read first: RFC 6298 sections 2 and 5; RFC 7323 section 4 for where samples come from.

Rules: a sample ends the backoff (section 5, the note behind 5.7); without samples it stays, doubling with every expiry
(5.5) up to the maximum (2.5). Integer nanoseconds; divisions round down. `bsd.py` has the timers of a coarse clock.
"""

from typing import Final

from hosts.tcp.options import TimerOptions

#: RFC 6298 section 2.3: K
_K: Final = 4


class RtoEstimator:
    """SRTT, RTTVAR and RTO of one connection, in ns."""

    def __init__(self, options: TimerOptions) -> None:
        self._min_ns = options.min_rto_ns
        self._max_ns = options.max_rto_ns
        self._granularity_ns = options.granularity_ns
        self._max_doublings = options.max_doublings
        #: None before the first sample
        self.srtt_ns: int | None = None
        self.rttvar_ns = 0
        #: the last sample
        self.latest_ns: int | None = None
        self._rto_ns = options.initial_rto_ns
        #: expiries since the last sample
        self._backoff = 0

    @property
    def rto_ns(self) -> int:
        """The timeout in force, backoff included."""
        backoff = self._backoff
        if not backoff:
            return self._rto_ns
        return min(self._rto_ns << backoff, self._max_ns)

    def handle_acked(self, sent_at: int, now: int) -> None:
        """Take a segment that was sent once, at `sent_at`, and is acknowledged."""
        self.handle_sample(now - sent_at)

    def handle_sample(self, rtt_ns: int) -> None:
        """Take a round-trip time (2.2, 2.3)."""
        self.latest_ns = rtt_ns
        self._backoff = 0
        srtt = self.srtt_ns
        if srtt is None:
            self.srtt_ns = srtt = rtt_ns
            self.rttvar_ns = variation = rtt_ns // 2
        else:
            deviation = srtt - rtt_ns if srtt > rtt_ns else rtt_ns - srtt
            self.rttvar_ns = variation = (3 * self.rttvar_ns + deviation) // 4
            self.srtt_ns = srtt = (7 * srtt + rtt_ns) // 8
        variation *= _K
        rto = srtt + (variation if variation > self._granularity_ns else self._granularity_ns)
        if rto < self._min_ns:
            rto = self._min_ns
        self._rto_ns = rto if rto < self._max_ns else self._max_ns

    def back_off(self) -> None:
        """Double the timeout (5.5)."""
        if self._backoff < self._max_doublings and self._rto_ns << self._backoff < self._max_ns:
            self._backoff += 1

    def restart(self, rto_ns: int) -> None:
        """Begin anew from a timeout of `rto_ns` (5.7: 3 s when the SYN's timer has expired)."""
        self._rto_ns = rto_ns
        self._backoff = 0

    def expiry(self, now: int) -> int:
        """When a timer started now expires."""
        return now + (self._rto_ns if not self._backoff else self.rto_ns)

    def after(self, now: int, ns: int) -> int:
        """When a timer of `ns`, started now, expires."""
        return now + ns
