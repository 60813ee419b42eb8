"""The estimate of the erasure rate: a moving average that believes bad news more than good news.

Read first: LT-TCP section III.A.3, equations 1 and 2.

Choice: by the equations a window without losses has no weight, so that the estimate cannot fall to zero. With `forgets`
such a window counts as one that has lost half a segment.
"""

from typing import Final

#: segments lost of a window that has lost none
_UNSEEN: Final = 0.5
#: of the first window without losses, nothing is learnt
_NONE: Final = 0.0


class ErasureEstimator:
    """E, as a share of the segments sent."""

    def __init__(self, forgets: bool = True) -> None:
        self.rate = _NONE
        self._unseen = _UNSEEN if forgets else _NONE

    def handle_window(self, sent: int, arrived: int) -> None:
        """Take the numbers of segments sent and arrived of a window; more arrived than sent count as all."""
        if sent <= 0:
            return
        lost = sent - arrived
        rate = self.rate
        measured = lost / sent if lost > 0 else min(rate, self._unseen / sent)
        total = measured + rate
        if total > 0:
            self.rate = (measured * measured + rate * rate) / total
