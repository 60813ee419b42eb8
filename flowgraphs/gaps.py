"""Gaps in a device's samples: what they have taken, and where.

Rules kept: a core. The device gives the time of its first sample and of the first one behind every gap, so that the
number of lost samples is known, and with it the time of every later sample.
"""

from bisect import bisect_left, bisect_right
from typing import NamedTuple


class Lost(NamedTuple):
    """What gaps have taken of a stream of samples."""

    gaps: int = 0
    samples: int = 0


class SampleGaps:
    """The gaps in a stream of `rate_sps`."""

    def __init__(self, rate_sps: float) -> None:
        self._rate_sps = rate_sps
        #: of the samples behind each gap: the first, and what all gaps up to there have taken
        self._firsts: list[int] = []
        self._lost: list[int] = []

    @property
    def count(self) -> int:
        """The number of gaps."""
        return len(self._lost)

    @property
    def lost_ns(self) -> int:
        """The time of all lost samples."""
        return round(self._lost[-1] * 1e9 / self._rate_sps) if self._lost else 0

    def handle(self, sample: int, at_s: float) -> None:
        """Take the next gap: index of the first sample behind it, and its time after the stream's first sample."""
        before = self._lost[-1] if self._lost else 0
        self._firsts.append(sample)
        # never less than before: times are rounded
        self._lost.append(max(round(at_s * self._rate_sps) - sample, before))

    def before(self, first: int, end: int) -> Lost:
        """Return the gaps before sample `end`, and the samples lost before sample `first`."""
        before = bisect_right(self._firsts, first)
        return Lost(bisect_left(self._firsts, end), self._lost[before - 1] if before else 0)
