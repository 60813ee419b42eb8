"""Which holes of a window were corruption, as explicit loss notifications say.

Read first: COMPARISON sections 2.3, 3.1 and 4.2; docs/tcp.md, "ELN".

Rules: numbers are unwrapped; a hole is called by its first octet. A hole is corruption if an ACK at its number has said
so before it is acknowledged. `eln_once_per_window` and `jumped_is_congestion` of `LossOptions` make that stricter.
"""

from hosts.tcp.options import LossOptions


class Corruption:
    """The holes of one connection's recoveries."""

    def __init__(self, options: LossOptions, una: int) -> None:
        self._corrupt: set[int] = set()
        #: holes that were sent again while the window is kept
        self._holes: list[int] = []
        #: whether ELN tells of one hole of a window only, and where the window of the latest recovery ends
        self._one_told = options.eln_once_per_window
        self._told_until = una
        self._jumped_counts = options.jumped_is_congestion

    def __contains__(self, number: int) -> bool:
        return number in self._corrupt

    def tell(self, number: int, una: int) -> None:
        """Take the word that the segment at `number` was lost by corruption."""
        if not self._one_told or number >= self._told_until or number in self._corrupt:
            self._corrupt = {number, *(known for known in self._corrupt if known >= una)}

    def begin(self, una: int, end: int) -> bool:
        """Begin a recovery of [una, end); return whether its first hole is corruption."""
        self._holes.clear()
        self._told_until = end
        return una in self._corrupt

    def send_again(self, number: int) -> None:
        """Note that a hole is sent again in a recovery that keeps the window."""
        self._holes.append(number)

    def were_congestion(self, una: int, acked: int) -> bool:
        """Whether any of the holes that an ACK of `acked` octets up to `una` has filled was not called corruption."""
        closed = {number for number in self._holes if number < una}
        if not closed:
            return False
        self._holes = [number for number in self._holes if number >= una]
        if not self._jumped_counts:
            closed &= {una - acked}
        return not self._corrupt.issuperset(closed)
