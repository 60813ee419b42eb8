"""The recent rate of a byte count that is sampled from time to time.

While TCP waits for a lost segment, the application receives nothing; when the segment arrives, all data behind it is
received at once. Over a tenth of a second the rate can then be several times that of the link; over a second it is not.
"""

from collections import deque

from testbed.results.summary import rise

_WINDOW_S = 1.0


class RecentRate:
    """Mean rate over the last second, or since the start when that is shorter."""

    def __init__(self) -> None:
        #: (time in s, bytes by then), oldest first, from the begin of the window on
        self._points: deque[tuple[float, float]] = deque([(0.0, 0.0)])

    def add(self, time_s: float, nbytes: int) -> None:
        """Take the count at a time after the start; a time before the last one counts as the last one."""
        points = self._points
        points.append((max(time_s, points[-1][0]), nbytes))
        while points[1][0] <= points[-1][0] - _WINDOW_S:
            points.popleft()

    @property
    def bps(self) -> float:
        """The rate up to the last time (bit/s); between two samples the count rises evenly."""
        end_s = self._points[-1][0]
        span_s = min(end_s, _WINDOW_S)
        return rise(self._points, end_s - span_s, end_s) * 8 / span_s if span_s else 0.0
