"""Octets that the receiver holds beyond the cumulative acknowledgement, as its SACK blocks say.

Read first: RFC 6675 sections 3 and 4: Update, IsLost, SetPipe and the first and third rule of NextSeg are the
questions answered here; RFC 2018.

Rules: numbers are unwrapped; `una` to `end` below is [una, end). Octets, not segments, are marked. `high_rxt` is the
first octet not yet retransmitted in this recovery (RFC 6675's HighRxt + 1): missing octets below it were sent twice.
"""

from bisect import bisect_left, bisect_right
from typing import Final

#: RFC 6675 section 2
DUP_THRESH: Final = 3


class Scoreboard:
    """Disjoint, sorted ranges of octets that were selectively acknowledged."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        #: octets marked
        self.sacked = 0

    def __bool__(self) -> bool:
        return bool(self._starts)

    @property
    def high(self) -> int:
        """The octet behind the highest one marked; call only when any is."""
        return self._ends[-1]

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """The marked ranges, lowest first."""
        return list(zip(self._starts, self._ends, strict=True))

    def add(self, start: int, end: int) -> int:
        """Mark [start, end); return how many of these octets were not marked before."""
        starts, ends = self._starts, self._ends
        first = bisect_left(ends, start)
        last = bisect_right(starts, end)
        known = 0
        if first < last:
            if starts[first] <= start and end <= ends[first]:
                return 0
            for i in range(first, last):
                known += ends[i] - starts[i]
            start = min(start, starts[first])
            end = max(end, ends[last - 1])
        starts[first:last] = (start,)
        ends[first:last] = (end,)
        fresh = end - start - known
        self.sacked += fresh
        return fresh

    def advance(self, una: int) -> None:
        """Forget the octets below `una`."""
        starts, ends = self._starts, self._ends
        while starts and starts[0] < una:
            if ends[0] <= una:
                self.sacked -= ends.pop(0) - starts.pop(0)
            else:
                self.sacked -= una - starts[0]
                starts[0] = una

    def clear(self) -> None:
        """Forget everything: the receiver has reneged (RFC 2018 section 8)."""
        self._starts.clear()
        self._ends.clear()
        self.sacked = 0

    def covers(self, seq: int) -> bool:
        """Whether an octet is marked."""
        at = bisect_right(self._starts, seq) - 1
        return at >= 0 and seq < self._ends[at]

    def sacked_below(self, seq: int) -> int:
        """Octets marked below `seq`."""
        starts, ends = self._starts, self._ends
        count = 0
        for i in range(len(starts)):
            if ends[i] > seq:
                if starts[i] < seq:
                    count += seq - starts[i]
                break
            count += ends[i] - starts[i]
        return count

    def lost_below(self, smss: int) -> int:
        """Return the octet below which all that is missing is lost (IsLost), 0 when nothing is.

        Three ranges, or more than two segments' octets, have arrived above a lost octet.
        """
        starts, ends = self._starts, self._ends
        count = 0
        for i in range(len(starts) - 1, -1, -1):
            count += ends[i] - starts[i]
            if count > (DUP_THRESH - 1) * smss or len(starts) - i >= DUP_THRESH:
                return starts[i]
        return 0

    def pipe(self, una: int, end: int, high_rxt: int, smss: int, repairable: int = 1 << 61) -> int:
        """Return the octets in the network, as far as one can tell (SetPipe); none from `repairable` on is lost."""
        lost = max(min(self.lost_below(smss), repairable), una)
        in_flight = end - lost - (self.sacked - self.sacked_below(lost))
        if high_rxt > una:
            in_flight += high_rxt - una - self.sacked_below(high_rxt)
        return in_flight

    def hole(self, seq: int, end: int) -> tuple[int, int] | None:
        """Return the first missing range at or behind `seq` and below `end`, or None."""
        at = bisect_right(self._starts, seq) - 1
        if at >= 0 and seq < self._ends[at]:
            seq = self._ends[at]
        if seq >= end:
            return None
        following = bisect_left(self._starts, seq)
        if following < len(self._starts):
            end = min(end, self._starts[following])
        return seq, end
