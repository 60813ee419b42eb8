"""Delays of packets, counted by their whole microseconds: percentiles of any number of packets in little memory.

Rules kept

- A delay counts as its whole microseconds, rounded down, so a percentile is exact to 1 µs.
- There are `_MOST` different values at most. With more the unit doubles: it stays below a 4096th of the largest delay.
"""

from typing import Final

#: number of delays by their microseconds, in ascending order
Counts = tuple[tuple[int, int], ...]

_MOST: Final = 8192
_NS_PER_US: Final = 1000


class Delays:
    """The delays of one end of a transfer."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._unit_us = 1

    def add(self, delay_ns: int) -> None:
        """Count a delay; one below 0, which only the steps of a clock make, counts as 0."""
        self._count(max(delay_ns // _NS_PER_US, 0), 1)

    def merge(self, counts: Counts) -> None:
        """Count the delays of others."""
        for us, number in counts:
            self._count(us, number)

    def counts(self) -> Counts:
        """Return the counts so far."""
        return tuple(sorted(self._counts.items()))

    def _count(self, us: int, number: int) -> None:
        counts = self._counts
        us -= us % self._unit_us
        counts[us] = counts.get(us, 0) + number
        while len(self._counts) > _MOST:
            self._double_unit()

    def _double_unit(self) -> None:
        self._unit_us *= 2
        before, self._counts = self._counts, {}
        for us, number in before.items():
            us -= us % self._unit_us
            self._counts[us] = self._counts.get(us, 0) + number
