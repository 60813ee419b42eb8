"""Sets of unwrapped sequence numbers, kept as ranges."""

from bisect import bisect_left, bisect_right


class Ranges:
    """Numbers in at most `limit` disjoint ranges [left, right); of more, the lowest goes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        #: ascending, and each left < its right < the next left
        self._lefts: list[int] = []
        self._rights: list[int] = []

    def __len__(self) -> int:
        return len(self._lefts)

    def __contains__(self, number: int) -> bool:
        place = bisect_right(self._lefts, number)
        return place > 0 and number < self._rights[place - 1]

    def overlaps(self, left: int, right: int) -> bool:
        """Whether any number of [left, right) is in."""
        place = bisect_right(self._rights, left)
        return left < right and place < len(self._lefts) and self._lefts[place] < right

    def add(self, left: int, right: int) -> None:
        """Put [left, right) in; nothing for an empty range."""
        if left >= right:
            return
        lefts, rights = self._lefts, self._rights
        # the new range and all ranges that touch it become one
        first, behind = bisect_left(rights, left), bisect_right(lefts, right)
        if first < behind:
            left, right = min(left, lefts[first]), max(right, rights[behind - 1])
        lefts[first:behind] = [left]
        rights[first:behind] = [right]
        if len(lefts) > self._limit:
            del lefts[0], rights[0]

    def remove(self, left: int, right: int) -> None:
        """Take [left, right) out."""
        if left >= right:
            return
        lefts, rights = self._lefts, self._rights
        first, behind = bisect_right(rights, left), bisect_left(lefts, right)
        if first >= behind:
            return
        pieces = [(lefts[first], left), (right, rights[behind - 1])]
        kept = [(begin, end) for begin, end in pieces if begin < end]
        lefts[first:behind] = [begin for begin, _ in kept]
        rights[first:behind] = [end for _, end in kept]
        if len(lefts) > self._limit:
            del lefts[0], rights[0]

    def remove_below(self, number: int) -> None:
        """Take all below `number` out."""
        if self._lefts:
            self.remove(self._lefts[0], number)

    def copy(self) -> "Ranges":
        """Return another set of the same numbers."""
        copy = Ranges(self._limit)
        copy._lefts, copy._rights = self._lefts.copy(), self._rights.copy()
        return copy
