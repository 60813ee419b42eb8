"""Watching the flow of a run from its SYN on: time, and octets of payload."""

from testbed.model.watch import Segment, Watch

__all__ = ["SinceSyn", "octet"]


def octet(number: int, iss: int) -> int:
    """Return which octet of the payload a sequence number is, counted from 0; the SYN takes one number."""
    return (number - iss - 1) % 2**32


class SinceSyn(Watch):
    """Knows when the first segment of a run with one flow was sent, and its initial sequence number."""

    def __init__(self) -> None:
        self.started_at = -1
        self.iss = 0

    def sent(self, flow: str, segment: Segment, now: int) -> None:
        """A segment leaves the sender; the first is the SYN."""
        if self.started_at < 0:
            self.iss, self.started_at = segment.seq, now
