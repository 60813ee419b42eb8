"""Octets waiting to be acknowledged, and octets waiting for those before them.

Both hold octets or, in virtual time, only their number. Numbers are unwrapped.
"""

from bisect import bisect_left, bisect_right


class SendBuffer:
    """Octets written and not acknowledged: [start, end)."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.end = start
        self._octets = bytearray()

    def append(self, data: bytes | int) -> None:
        """Add octets, or just so many of them."""
        if isinstance(data, int):
            self.end += data
        else:
            self._octets += data
            self.end += len(data)

    def release(self, una: int) -> None:
        """Let go of the octets below `una`."""
        if self._octets:
            del self._octets[: una - self.start]
        self.start = una

    def take(self, seq: int, length: int) -> bytes | None:
        """Return octets to send, or None where only sizes are kept."""
        if not self._octets:
            return None
        offset = seq - self.start
        return bytes(self._octets[offset : offset + length])


class Reassembly:
    """Octets that came out of order: disjoint, sorted ranges, and their order of change (RFC 2018 section 4)."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._octets: list[bytearray | None] = []
        #: the ranges, the one that changed last first
        self.recent: list[tuple[int, int]] = []

    def __bool__(self) -> bool:
        return bool(self._starts)

    def add(self, start: int, end: int, payload: bytes | None) -> None:
        """Keep [start, end)."""
        starts, ends = self._starts, self._ends
        first = bisect_left(ends, start)
        last = bisect_right(starts, end)
        octets = None if payload is None else bytearray(payload)
        for i in range(first, last):
            self.recent.remove((starts[i], ends[i]))
        if first < last:
            if octets is not None:
                held = self._octets[first]
                if held is not None and starts[first] < start:
                    octets[:0] = held[: start - starts[first]]
                held = self._octets[last - 1]
                if held is not None and ends[last - 1] > end:
                    octets += held[end - ends[last - 1] :]
            start, end = min(start, starts[first]), max(end, ends[last - 1])
        starts[first:last] = (start,)
        ends[first:last] = (end,)
        self._octets[first:last] = (octets,)
        self.recent.insert(0, (start, end))

    def missing(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return the parts of [start, end) that are not here, lowest first."""
        found = []
        at = bisect_right(self._ends, start)
        while start < end and at < len(self._starts) and self._starts[at] < end:
            if self._starts[at] > start:
                found.append((start, self._starts[at]))
            start = self._ends[at]
            at += 1
        if start < end:
            found.append((start, end))
        return found

    def copy(self, start: int, end: int) -> bytes:
        """Return the octets of [start, end), which are here; none where only sizes are kept."""
        at = bisect_right(self._starts, start) - 1
        octets = self._octets[at]
        return b"" if octets is None else bytes(octets[start - self._starts[at] : end - self._starts[at]])

    def overlap(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the lowest octets of [start, end) that are kept already, or None."""
        at = bisect_right(self._ends, start)
        if at == len(self._starts) or self._starts[at] >= end:
            return None
        return max(start, self._starts[at]), min(end, self._ends[at])

    def take(self, seq: int) -> tuple[int, bytes | None] | None:
        """Return the range that continues at `seq`: its end and its octets; None when the gap is still there.

        Ranges that `seq` has overtaken are dropped.
        """
        while self._starts and self._starts[0] <= seq:
            start, end = self._starts.pop(0), self._ends.pop(0)
            octets = self._octets.pop(0)
            self.recent.remove((start, end))
            if end > seq:
                return end, None if octets is None else bytes(octets[seq - start :])
        return None
