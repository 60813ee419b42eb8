"""The rate of a byte count that is read now and then.

Between two probes an application gets nothing while TCP waits for a segment, and all that waited behind it at once when
the segment has come: for a tenth of a second a link looks several times as fast as it is. Over a second that evens out.
"""

from collections import deque

from testbed.results.summary import rise

_WINDOW_S = 1.0


class RecentRate:
    """Mean rate over the last second; over the time since the start, as long as that is shorter."""

    def __init__(self) -> None:
        #: (time in s, bytes by then), oldest first, and back to the window's begin
        self._points: deque[tuple[float, float]] = deque([(0.0, 0.0)])

    def add(self, time_s: float, nbytes: int) -> None:
        """Take the count at a time after the start; one that comes late counts as of the last time."""
        points = self._points
        points.append((max(time_s, points[-1][0]), nbytes))
        while points[1][0] <= points[-1][0] - _WINDOW_S:
            points.popleft()

    @property
    def bps(self) -> float:
        """The rate until the last time given (bit/s); between two times the count rose evenly."""
        end_s = self._points[-1][0]
        span_s = min(end_s, _WINDOW_S)
        return rise(self._points, end_s - span_s, end_s) * 8 / span_s if span_s else 0.0
