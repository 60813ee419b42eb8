"""Bursts of a fixed number of frames."""

import random
from dataclasses import dataclass

from channel.errors import ERASED, INTACT, ErrorModel, ErrorModelPlugin, Verdict
from common.options import Bytes, Count


class FixedBursts(ErrorModel):
    """Bursts of exactly `burst_frames` consecutive frames are lost (COMPARISON table 5).

    Bursts are triggered at exponential distances along the bytes sent, with mean `mean_spacing_bytes`. A burst
    triggered inside another one, or by the frame right behind it, waits until one frame is intact: so every burst
    keeps its length, no burst is dropped, and the rate of bursts is exact.
    """

    def __init__(self, burst_frames: int, mean_spacing_bytes: int, rng: random.Random) -> None:
        self.burst_frames = burst_frames
        self.mean_spacing_bytes = mean_spacing_bytes
        self._rate_per_byte = 1.0 / mean_spacing_bytes
        self._rng = rng
        #: frames of the present burst still to lose, plus the one that separates it from the next
        self._left = 0
        self._to_next_bytes = int(rng.expovariate(self._rate_per_byte))

    def judge(self, start: int, end: int, nbytes: int) -> Verdict:
        """Return ERASED inside a burst, else INTACT."""
        self._to_next_bytes -= nbytes
        if self._left:
            self._left -= 1
            return ERASED if self._left else INTACT
        if self._to_next_bytes >= 0:
            return INTACT
        # from trigger to trigger: the length of a burst or a wait does not add to the distance
        self._to_next_bytes += int(self._rng.expovariate(self._rate_per_byte))
        self._left = self.burst_frames
        return ERASED


@dataclass(frozen=True, kw_only=True)
class BurstOptions:
    """Bursts of `burst_frames` lost frames (COMPARISON table 5)."""

    burst_frames: Count
    mean_spacing_bytes: Bytes = 65_536


ERROR_MODEL = ErrorModelPlugin(
    name="bursts",
    summary="in bursts of exactly `burst_frames`",
    options=BurstOptions,
    make=lambda options, rng: FixedBursts(options.burst_frames, options.mean_spacing_bytes, rng),
    example={"burst_frames": 4, "mean_spacing_bytes": 20_000},
)
