"""Proportional rate reduction: the congestion window while a fast recovery lasts.

Read first: RFC 9937 section 6 (RFC 6937 section 3, with PRR-CRB and PRR-SSRB chosen by whether the recovery makes
progress).

Rules: the window comes down to ssthresh in proportion to the octets that arrive. When fewer are in flight, it comes
back up to it: by what arrives, and by a segment more for each ACK that moves the window and tells of no further loss.
"""


class Prr:
    """The window (octets) of one connection's fast recoveries."""

    def __init__(self) -> None:
        self._ssthresh = 0
        #: octets outstanding when the recovery began (RecoverFS), that have arrived in it, that were sent in it
        self._flight = 1
        self._delivered = self._out = 0

    def begin(self, ssthresh: int, flight: int) -> None:
        """Begin a recovery to `ssthresh` with `flight` octets outstanding, those that have just arrived included."""
        self._ssthresh = ssthresh
        self._flight = max(flight, 1)
        self._delivered = self._out = 0

    def handle_sent(self, octets: int) -> None:
        """Take the octets of a segment that is sent in the recovery."""
        self._out += octets

    def window(self, delivered: int, in_flight: int, safe: bool, smss: int) -> int:
        """Take an ACK of `delivered` more octets, cumulative or selective; return the congestion window.

        `safe`: the ACK moves the window and tells of no further loss (SafeACK).
        """
        self._delivered += delivered
        if in_flight > self._ssthresh:
            count = -(-self._delivered * self._ssthresh // self._flight) - self._out
        else:
            count = max(self._delivered - self._out, delivered) + (smss if safe else 0)
            count = min(self._ssthresh - in_flight, count)
        if not self._out and count < smss:
            # a recovery begins with a retransmission
            count = smss
        return in_flight + max(count, 0)
