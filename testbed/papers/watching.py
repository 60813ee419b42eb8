"""Watching the flow of a run from its SYN on: time, and octets of payload."""

from tcpip.segment import ACK
from testbed.model.watch import Segment, Watch

__all__ = ["SinceSyn", "acknowledged", "octet"]


def octet(number: int, iss: int) -> int:
    """Return which octet of the payload a sequence number is, counted from 0; the SYN takes one number."""
    return (number - iss - 1) % 2**32


def acknowledged(segment: Segment, iss: int) -> int | None:
    """Return how many octets of payload a segment acknowledges; None: it acknowledges nothing, or the SYN alone."""
    octets = octet(segment.ack, iss)
    return octets if segment.flags & ACK and octets < 2**31 else None


class SinceSyn(Watch):
    """Knows when the first segment of a run with one flow was sent, and its initial sequence number."""

    def __init__(self) -> None:
        self.started_at = -1
        self.iss = 0

    def sent(self, flow: str, segment: Segment, now: int) -> None:
        """A segment leaves the sender; the first is the SYN."""
        if self.started_at < 0:
            self.iss, self.started_at = segment.seq, now
