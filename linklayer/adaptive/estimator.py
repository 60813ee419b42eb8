"""What one end knows of the losses in its direction: their rate, how they cluster, and how sure it is of them.

The rate is a beta distribution, the conjugate of independent losses, whose evidence fades: the mean age of what it
knows is `_MEMORY` frames. When the last `_RECENT` frames cannot be told from chance by it any more, all but they are
forgotten, so that a change of the channel is believed after about half a window.

Clustering is the correlation of the losses of two frames that follow each other, c; of frames n apart it is c^n, as in
a chain of two states. Any two of a round's frames are correlated by the mean of these. So are they by our doubt of the
rate, 1 / (a + b + 1) for a beta distribution of a and b. `correlation` is both together: the intra-class correlation of
a beta-binomial.

`interval` is Wilson's of two standard deviations (1927), which a rate near 0 or 1 does not upset. Clustering widens it:
frames that fare alike tell less. docs/adaptive.md says how often it holds the true rate.
"""

from math import sqrt
from typing import Final

#: frames: the mean age of the evidence
_MEMORY: Final = 400
#: frames whose losses may contradict the rest
_RECENT: Final = 32
_RECENT_MASK: Final = (1 << _RECENT) - 1
#: standard deviations that are no chance: 6e-5 in one window
_SURPRISE: Final = 4.0
#: those of `interval`, on either side
_SURE: Final = 2.0
#: losses and arrivals of a channel nobody has seen: 5 %, as sure as 10 frames
_PRIOR_LOST: Final = 0.5
_PRIOR_CAME: Final = 9.5
#: frames of a round, of which the correlation is the mean
_ROUND: Final = 6
#: below so many losses clustering is not judged
_FEW: Final = 8.0


class LossEstimator:
    """Takes the fates of frames in the order in which they were sent."""

    def __init__(self) -> None:
        self._lost = _PRIOR_LOST
        self._came = _PRIOR_CAME
        #: faded counts of losses, and of losses behind a loss
        self._losses = 0.0
        self._pairs = 0.0
        self._last_lost = False
        #: the last fates, the newest in bit 0; a set bit is a loss
        self._recent = 0
        self._known = 0
        #: times that the channel was believed to have changed
        self.changes = 0

    @property
    def loss(self) -> float:
        """The expected rate of losses."""
        return self._lost / (self._lost + self._came)

    @property
    def doubt(self) -> float:
        """The standard deviation of `loss`."""
        total = self._lost + self._came
        return sqrt(self._lost * self._came / (total + 1)) / total

    @property
    def clustering(self) -> float:
        """The correlation of the losses of two frames that follow each other, 0 to 1."""
        if self._losses < _FEW:
            return 0.0
        loss = self.loss
        again = self._pairs / self._losses
        return min(1.0, max(0.0, (again - loss) / (1 - loss)))

    @property
    def interval(self) -> tuple[float, float]:
        """The bounds between which the rate is believed to be."""
        loss, frames = self.loss, (self._lost + self._came) / self._widening
        scale = 1 + _SURE * _SURE / frames
        centre = (loss + _SURE * _SURE / (2 * frames)) / scale
        half = _SURE * sqrt(loss * (1 - loss) / frames + (_SURE / (2 * frames)) ** 2) / scale
        return max(0.0, centre - half), min(1.0, centre + half)

    @property
    def _widening(self) -> float:
        """The variance of the losses of some frames, relative to that of as many independent ones.

        Neighbours that are correlated by c make it (1 + c) / (1 - c).
        """
        clustering = min(self.clustering, 0.95)
        return (1 + clustering) / (1 - clustering)

    @property
    def correlation(self) -> float:
        """The correlation of the losses of one round's frames, our doubt of the rate included."""
        own = 1 / (self._lost + self._came + 1)
        clustering, power, total = self.clustering, 1.0, 0.0
        for apart in range(1, _ROUND):
            power *= clustering
            total += (_ROUND - apart) * power
        return own + (1 - own) * total / (_ROUND * (_ROUND - 1) / 2)

    def handle(self, lost: bool) -> None:
        """Take the fate of the next frame."""
        fade = 1 - 1 / _MEMORY
        self._lost *= fade
        self._came *= fade
        self._losses *= fade
        self._pairs *= fade
        if lost:
            self._lost += 1
            self._losses += 1
            if self._last_lost:
                self._pairs += 1
        else:
            self._came += 1
        self._last_lost = lost
        self._recent = (self._recent << 1 | int(lost)) & _RECENT_MASK
        if self._known < _RECENT:
            self._known += 1
        else:
            self._look_for_change()

    def _look_for_change(self) -> None:
        """Forget all but the last frames when they contradict the rest."""
        losses = self._recent.bit_count()
        total = self._lost + self._came
        # the rest, without them
        rest = total - _RECENT
        if rest < _RECENT:
            return
        loss = max((self._lost - losses) / rest, 1 / rest)
        variance = _RECENT * loss * max(1 - loss, 1 / rest) * self._widening
        if abs(losses - _RECENT * loss) > _SURPRISE * sqrt(variance) + 1:
            self._lost = losses + _PRIOR_LOST
            self._came = _RECENT - losses + _PRIOR_CAME
            pairs = (self._recent & self._recent >> 1).bit_count()
            self._losses, self._pairs = float(losses), float(pairs)
            self._known = 0
            self.changes += 1
