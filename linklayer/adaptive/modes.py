"""Which mode of a PHY, modulation and code, a station sends in: the second lever of slacp-adaptive. Sans IO.

Read first: docs/adaptive.md, "Modes". Each station chooses for its own direction, frame by frame.

Rules kept
- The objective is the link's own, E[frames] + price * E[packets missed], with frames counted by their airtime: the best
  mode has the least airtime of a frame times `cost(loss)`, what the link spends on a packet at that frame loss, in
  frames.
- A mode's loss follows from the SNR by a measured curve. The SNR is what the peer reports, smoothed, plus an offset
  that the fates of frames set: a lost frame lowers it at once, an arrival raises it by as little as makes both balance
  where frames are lost as often as expected (the outer loop of LTE's link adaptation). So there are no probes: the SNR
  alone tells that a denser mode would do.
- Losses that go on where the SNR is ample are none of the mode's. Their share is learned, and no reason to step down.
- The SNR is believed only within a deviation that is measured, too. Fading makes it large, and a mode's curve flat.
- While frames go out and no report comes, the SNR is believed to fall. Without any report the sturdiest mode is used.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, inf, log, sqrt
from typing import Final

from common.units import MS

#: the share of a report in the smoothed SNR, and in the deviation
_SMOOTHING: Final = 0.2
_DEVIATION_SMOOTHING: Final = 0.05
_LEAST_DEVIATION_DB: Final = 0.2
_FIRST_DEVIATION_DB: Final = 2.0
#: how much a lost frame that nobody expected lowers the offset, and the bounds of the offset
_STEP_DB: Final = 0.5
_LEAST_OFFSET_DB: Final = -30.0
_MOST_OFFSET_DB: Final = 3.0
#: losses between two reports lower it by so much at most: the later report tells how far the SNR has fallen
_MOST_BETWEEN_DB: Final = 1.0
#: a mode that loses more is none to choose
_HOPELESS: Final = 0.9
#: the share of losses that no SNR explains, at first; a curve neither promises less nor claims that all is lost
_FLOOR: Final = 0.002
#: it is learned where the curve alone lets less than this be lost, by so much of each fate, up to a bound
_UNEXPLAINED: Final = 0.005
_FLOOR_SMOOTHING: Final = 1 / 200
_MOST_FLOOR: Final = 0.5
#: with each fate the offset loses this share
_LEAK: Final = 1 / 300
#: so long without a report is usual; after that the SNR falls
_PATIENCE_NS: Final = 200 * MS
_FALL_DB_PER_S: Final = 20.0
#: Gauss-Hermite's three points and weights
_POINTS: Final = ((-sqrt(3), 1 / 6), (0.0, 2 / 3), (sqrt(3), 1 / 6))
#: decisions are kept for steps of the SNR and the deviation
_SNR_STEP_DB: Final = 0.1
#: and of the logarithm of the share that no SNR explains
_FLOOR_STEP: Final = 0.5
_MOST_CHOICES: Final = 4096
_LOG_9: Final = log(9)
#: beyond, a loss is 0 or 1 in floating point
_STEEP: Final = 40.0


@dataclass(frozen=True, slots=True)
class Mode:
    """A mode and its curve: a frame's loss is logistic in the SNR."""

    #: as in `Received.mode`
    name: str
    #: SNR per sample (dB) at which 10 % of long frames are lost
    snr_db: float
    #: from 90 to 10 % loss (dB)
    width_db: float

    def loss(self, snr_db: float) -> float:
        """Return the share of frames that are lost for want of SNR."""
        steep = (snr_db - self.snr_db) * 2 * _LOG_9 / self.width_db + _LOG_9
        return 1 / (1 + exp(min(_STEEP, max(-_STEEP, steep))))


class ModeChooser:
    """Chooses among `modes`, the sturdiest first, for one direction.

    `airtime(nbytes, mode)`: of a frame in the mode of that index, in any unit. `cost(loss)`: what the link spends on a
    packet, in frames, misses included, at this frame loss, 0 to 1. Raises ValueError without modes.
    """

    def __init__(
        self,
        modes: Sequence[Mode],
        airtime: Callable[[int, int], float],
        cost: Callable[[float], float],
        now: int,
    ) -> None:
        if not modes:
            raise ValueError("no modes to choose among")
        self._modes = tuple(modes)
        self._airtime = airtime
        self._cost = cost
        #: smoothed; None: no report yet
        self._snr_db: float | None = None
        self._variance = _FIRST_DEVIATION_DB**2
        self._offset_db = self._reported_offset_db = 0.0
        self._floor = _FLOOR
        self._floor_steps = 0
        self._reported_at = now
        #: by octets, and steps of SNR and deviation
        self._choices: dict[tuple[int, int, int], int] = {}

    @property
    def deviation_db(self) -> float:
        """How far the SNR of a frame is from `snr_db`."""
        return max(sqrt(self._variance), _LEAST_DEVIATION_DB)

    def snr_db(self, now: int) -> float | None:
        """Return the SNR that the choice goes by; None: nothing is known of it."""
        if self._snr_db is None:
            return None
        silent_ns = max(0, now - self._reported_at - _PATIENCE_NS)
        return self._snr_db + self._offset_db - _FALL_DB_PER_S * silent_ns / 1e9

    def loss(self, mode: int, now: int) -> float:
        """Return the expected loss of frames in the mode of that index."""
        snr_db = self.snr_db(now)
        if snr_db is None:
            return 1 - _FLOOR if mode else 0.5
        return self._with_floor(self._faded(mode, snr_db, self.deviation_db))

    def handle_report(self, snr_db: float, now: int) -> None:
        """Take the SNR (dB) at which the peer has heard a frame."""
        silent = self._reported_at + _PATIENCE_NS < now
        self._reported_at = now
        self._offset_db = max(self._offset_db, self._reported_offset_db - _MOST_BETWEEN_DB)
        self._reported_offset_db = self._offset_db
        if self._snr_db is None or silent:
            # nothing before it counts
            self._snr_db = snr_db
            return
        error_db = snr_db - self._snr_db
        self._snr_db += _SMOOTHING * error_db
        self._variance += _DEVIATION_SMOOTHING * (error_db * error_db - self._variance)

    def handle_fate(self, mode: int, lost: bool, now: int) -> None:
        """Take the fate of a frame that went in the mode of that index."""
        snr_db = self.snr_db(now)
        if snr_db is None:
            return
        loss = self._faded(mode, snr_db, self.deviation_db)
        if loss < _UNEXPLAINED:
            floor = self._floor + _FLOOR_SMOOTHING * (lost - self._floor)
            self._floor = min(_MOST_FLOOR, max(_FLOOR, floor))
        offset_db = self._offset_db * (1 - _LEAK) - _STEP_DB * (lost - self._with_floor(loss))
        self._offset_db = min(_MOST_OFFSET_DB, max(_LEAST_OFFSET_DB, offset_db))

    def choose(self, nbytes: int, now: int) -> int:
        """Return the index of the mode for a frame of `nbytes`."""
        snr_db = self.snr_db(now)
        if snr_db is None:
            return 0
        floor_steps = round(log(self._floor) / _FLOOR_STEP)
        if floor_steps != self._floor_steps:
            self._floor_steps = floor_steps
            self._choices.clear()
        key = nbytes, round(snr_db / _SNR_STEP_DB), round(self.deviation_db / _SNR_STEP_DB)
        choice = self._choices.get(key)
        if choice is None:
            if len(self._choices) >= _MOST_CHOICES:
                self._choices.clear()
            choice = self._choices[key] = self._best(nbytes, key[1] * _SNR_STEP_DB, key[2] * _SNR_STEP_DB)
        return choice

    def forget_choices(self) -> None:
        """Decide anew: the link's costs have changed."""
        self._choices.clear()

    def _best(self, nbytes: int, snr_db: float, deviation_db: float) -> int:
        best, least = 0, inf
        for mode in range(len(self._modes)):
            loss = self._with_floor(self._faded(mode, snr_db, deviation_db))
            if loss > _HOPELESS:
                continue
            cost = self._airtime(nbytes, mode) * self._cost(loss)
            # of equals the sturdier
            if cost < least:
                best, least = mode, cost
        return best

    def _with_floor(self, loss: float) -> float:
        return self._floor + (1 - self._floor - _FLOOR) * loss

    def _faded(self, mode: int, snr_db: float, deviation_db: float) -> float:
        """Return the share lost for want of SNR, on average over the SNR's deviation."""
        curve = self._modes[mode]
        return sum(weight * curve.loss(snr_db + point * deviation_db) for point, weight in _POINTS)
