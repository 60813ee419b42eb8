"""Which segments have left the network, and how many of them have arrived: for the sender of FEC segments.

Read first: docs/lt-tcp.md, "Reports".

Rules: segments with payload have ordinals, from 1 on, in the order they are sent: new data, retransmissions and FEC. A
path keeps that order, so that with one segment all before it have left the network, arrived or lost. An ACK shows the
arrival of new data by its numbers and of FEC by its report; how many segments have arrived the report says.
"""

from collections import deque
from typing import Final

_MASK: Final = 0xFFFF
_HALF: Final = 0x8000


class Ledger:
    """Ordinals of one sender. `left` is the highest that is known to have left the network."""

    def __init__(self) -> None:
        self.sent = 0
        self.left = 0
        #: segments that have arrived, as reported: only differences of it mean anything
        self.arrived = 0
        #: octets of FEC segments in the network
        self.fec_octets = 0
        #: new data not known to have arrived: the octet behind a segment, and its ordinal
        self._ends: deque[tuple[int, int]] = deque()
        #: FEC segments in the network: ordinal, octets
        self._fec: deque[tuple[int, int]] = deque()

    def handle_data(self, end: int) -> None:
        """Take a segment of new data up to `end` that is sent."""
        self.sent += 1
        self._ends.append((end, self.sent))

    def handle_sent_again(self) -> None:
        """Take a retransmission."""
        self.sent += 1

    def handle_fec(self, nbytes: int) -> int:
        """Take a FEC segment that is sent; return its ordinal."""
        self.sent += 1
        self._fec.append((self.sent, nbytes))
        self.fec_octets += nbytes
        return self.sent

    def handle_ack(self, high: int) -> None:
        """Take an ACK that shows the arrival of octets up to `high`."""
        ends, left = self._ends, self.left
        while ends and ends[0][0] <= high:
            ordinal = ends.popleft()[1]
            if ordinal > left:
                left = ordinal
        self._leave(left)

    def handle_report(self, count: int, serial: int) -> bool:
        """Take a report's count and serial (16-bit); return whether a segment has arrived that was not reported."""
        for ordinal, _ in self._fec:
            if ordinal & _MASK == serial:
                self._leave(ordinal)
                break
        more = (count - self.arrived) & _MASK
        if not 0 < more < _HALF:
            return False
        self.arrived += more
        return True

    def _leave(self, left: int) -> None:
        self.left = left
        fec = self._fec
        while fec and fec[0][0] <= left:
            self.fec_octets -= fec.popleft()[1]
