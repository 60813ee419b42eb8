"""Collisions on a shared carrier: bursts of one station that meet bursts of the other.

Rule kept: the times of both stations' bursts are of one clock, as on a virtual air; each station's are in order.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from common.sides import SIDES, Side, other


@dataclass(slots=True)
class _Burst:
    begin_s: float
    end_s: float
    met: bool = False


class CollisionCounter:
    """Takes the bursts of both stations as they are reported."""

    #: the times are kept for so long, since reports of the two stations come apart
    _KEPT_S = 60.0

    def __init__(self) -> None:
        self._bursts: Mapping[Side, deque[_Burst]] = {side: deque() for side in SIDES}
        #: by side: its bursts that met another
        self.collisions = dict.fromkeys(SIDES, 0)

    def handle(self, side: Side, spans_s: Iterable[tuple[float, float]]) -> None:
        """Take begin and end (s) of the next bursts of a side."""
        own, rivals = self._bursts[side], self._bursts[other(side)]
        for begin_s, end_s in spans_s:
            burst = _Burst(begin_s, end_s)
            while own and own[0].end_s < begin_s - self._KEPT_S:
                own.popleft()
            own.append(burst)
            for rival in reversed(rivals):
                if rival.end_s <= begin_s:
                    break
                if rival.begin_s < end_s:
                    self._note(side, burst)
                    self._note(other(side), rival)

    def _note(self, side: Side, burst: _Burst) -> None:
        self.collisions[side] += not burst.met
        burst.met = True
