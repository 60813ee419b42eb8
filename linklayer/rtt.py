"""The link's round-trip time, measured on acknowledged transmissions.

Read first: RFC 6298 section 2. It times nothing: it only tells whether a repeated acknowledgement is too old to
know of a transmission. Integer nanoseconds.
"""

from typing import Final

#: before the first sample (RFC 6298 section 2.1)
INITIAL_NS: Final = 1_000_000_000


class RttEstimator:
    """Smoothed round-trip time and its variation."""

    def __init__(self) -> None:
        self._srtt = 0
        self._variation = 0
        #: the next sample begins anew if it is less than half of the first
        self._guessed = False

    def guess(self, rtt_ns: int) -> None:
        """Take a first measurement that may contain the time of repetitions, such as a handshake's."""
        self.handle_sample(rtt_ns)
        self._guessed = True

    def handle_sample(self, rtt_ns: int) -> None:
        """Take one measurement."""
        if self._guessed:
            self._guessed = False
            if 2 * rtt_ns < self._srtt:
                self._srtt = 0
        if not self._srtt:
            self._srtt = rtt_ns
            self._variation = rtt_ns // 2
            return
        self._variation += (abs(rtt_ns - self._srtt) - self._variation) // 4
        self._srtt += (rtt_ns - self._srtt) // 8

    @property
    def bound_ns(self) -> int:
        """Upper bound of a round trip by the samples so far: srtt + max(4 variation, srtt / 4)."""
        if not self._srtt:
            return INITIAL_NS
        return self._srtt + max(4 * self._variation, self._srtt // 4)
