"""The choices that the paper leaves open: f(E), g(E) and their bins, and the segments of a window.

Read first: LT-TCP section III.A.1; docs/lt-tcp.md for the search behind the figures.

f(E) has two parts: the bin of E gives the least P; then P is the least number of redundant segments with which a block
of k is decoded with a probability of `confidence` or more, if segments are lost independently at rate E.
"""

from functools import lru_cache
from typing import Final

#: upper edges of the bins of E, and for each bin the least P of a block, and R of a dupack
_EDGES: Final[tuple[float, ...]] = (0.03, 0.08, 0.15, 0.25, 0.35, 0.45)
_LEAST: Final[tuple[int, ...]] = (0, 1, 1, 2, 2, 3, 3)
_PER_DUPACK: Final[tuple[int, ...]] = (1, 1, 1, 2, 2, 3, 3)
#: segments of a block and its redundancy at most: a code of 8 bits has 256 symbols
MOST_SEGMENTS: Final = 64
#: E is rounded up to a multiple of 1/50, and beyond 0.7 no more is added
_STEPS: Final = 50
_MOST_STEPS: Final = 35


def _bin(rate: float) -> int:
    for at, edge in enumerate(_EDGES):
        if rate < edge:
            return at
    return len(_EDGES)


def least(rate: float) -> int:
    """Return the least number of proactive segments of a block, by the bin of E."""
    return _LEAST[_bin(rate)]


def per_dupack(rate: float) -> int:
    """Return g(E), the reactive segments that a duplicate ACK permits."""
    return _PER_DUPACK[_bin(rate)]


def proactive(members: int, rate: float, confidence: float, most: float = 1.0) -> int:
    """Return P for a block of `members` data segments: a share of `most` of all its segments at most."""
    fewest = least(rate)
    if not fewest:
        return 0
    steps = int(rate * _STEPS) + 1
    enough = _enough(members, steps if steps < _MOST_STEPS else _MOST_STEPS, confidence)
    if most < 1.0:
        enough = min(enough, int(members * most / (1 - most)))
    return max(fewest, enough)


@lru_cache(maxsize=4096)
def _enough(members: int, steps: int, confidence: float) -> int:
    """Return how many redundant segments make at least `members` of all arrive with the confidence wanted."""
    lost = steps / _STEPS
    # with r redundant segments: the probability that exactly j of members + r are lost, for j = 0 to r
    redundant = 0
    while redundant < 2 * MOST_SEGMENTS:
        total = members + redundant
        exactly = (1 - lost) ** total
        within = exactly
        for j in range(redundant):
            exactly *= (total - j) / (j + 1) * lost / (1 - lost)
            within += exactly
        if within >= confidence:
            break
        redundant += 1
    return redundant


def split(segments: int, rate: float, confidence: float, most: float = 1.0) -> int:
    """Return how many segments of a window of so many are data; the others are f(E)."""
    if segments > MOST_SEGMENTS:
        segments = MOST_SEGMENTS
    members = segments
    while members > 1 and members + proactive(members, rate, confidence, most) > segments:
        members -= 1
    return members


def repairs(need: int, rate: float) -> int:
    """Return how many segments make `need` of them arrive, on average and with one more."""
    if rate > 0.7:
        rate = 0.7
    return int(need / (1 - rate)) + 1
