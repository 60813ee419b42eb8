"""Bit errors at exponential distances."""

import random
from dataclasses import dataclass

from channel.errors import INTACT, ErrorModel, ErrorModelPlugin, Fate, Verdict
from common.options import Bytes


class ExponentialBitErrors(ErrorModel):
    """Bit errors at exponentially distributed distances along the bytes sent (COMPARISON).

    `mean_spacing_bytes` is the mean distance between two bit errors. A frame of n bytes is intact with
    probability exp(-n / mean_spacing_bytes).
    """

    def __init__(self, mean_spacing_bytes: int, rng: random.Random) -> None:
        self.mean_spacing_bytes = mean_spacing_bytes
        self._rate_per_bit = 1.0 / (8 * mean_spacing_bytes)
        self._rng = rng
        #: good bits before the next bit error, counted from the end of the last frame
        self._to_next_bits = self._good_run()

    def judge(self, start: int, end: int, nbytes: int) -> Verdict:
        """Return INTACT, or DAMAGED with all bit errors of the frame."""
        nbits = 8 * nbytes
        at = self._to_next_bits
        if at >= nbits:
            self._to_next_bits = at - nbits
            return INTACT
        hits = []
        while at < nbits:
            hits.append(at)
            at += 1 + self._good_run()
        self._to_next_bits = at - nbits
        return Verdict(Fate.DAMAGED, tuple(hits))

    def _good_run(self) -> int:
        # the whole part of an exponential is geometric: bit errors are independent, with exactly the mean
        # asked for in the probability that a run of n bits is clean.
        return int(self._rng.expovariate(self._rate_per_bit))


@dataclass(frozen=True, kw_only=True)
class ExponentialOptions:
    """Exponential distances between bit errors; by default that of COMPARISON section 4, 64 KB."""

    mean_spacing_bytes: Bytes = 65_536


ERROR_MODEL = ErrorModelPlugin(
    name="exponential",
    summary="damaged, at bit errors this far apart on average",
    options=ExponentialOptions,
    make=lambda options, rng: ExponentialBitErrors(options.mean_spacing_bytes, rng),
    example={"mean_spacing_bytes": 5_000},
)
