"""Reduces long curves to fewer points without a visible difference.

Each group of points keeps its minimum and maximum, so peaks and dips stay; marks are summed.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from dashboard.curves import Mark

#: most points of a curve, and most marks of a run, for a page
MOST = 2_000


def thin(times: Sequence[float], values: Sequence[float], most: int = MOST) -> tuple[list[float], list[float]]:
    """Return at most `most` (2 or more) of the points, including the first and the last."""
    count = len(times)
    if count <= most:
        return list(times), list(values)
    kept = {0, count - 1}
    stretches = (most - 2) // 2
    for stretch in range(stretches):
        inner = range(1 + stretch * (count - 2) // stretches, 1 + (stretch + 1) * (count - 2) // stretches)
        known = [index for index in inner if not math.isnan(values[index])]
        if known:
            kept |= {min(known, key=values.__getitem__), max(known, key=values.__getitem__)}
        else:
            # keeps gaps
            kept.add(inner[0])
    order = sorted(kept)
    return [times[index] for index in order], [values[index] for index in order]


def thin_marks(marks: Sequence[Mark], most: int = MOST) -> list[Mark]:
    """Return about `most` marks at most; close marks of one cause and link are summed."""
    if len(marks) <= most:
        return list(marks)
    first_s, last_s = marks[0].t, marks[-1].t
    kinds = {(mark.cause, mark.link) for mark in marks}
    step_s = max((last_s - first_s) / (most // len(kinds)), 1e-9)
    sums: dict[tuple[int, str, str], Mark] = {}
    for mark in marks:
        key = int((mark.t - first_s) / step_s), mark.cause, mark.link
        known = sums.get(key)
        sums[key] = mark if known is None else replace(mark, count=mark.count + known.count)
    return sorted(sums.values(), key=lambda mark: mark.t)
