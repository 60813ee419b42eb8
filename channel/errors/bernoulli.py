"""Independent losses of frames."""

import random
from dataclasses import dataclass

from channel.errors import ERASED, INTACT, ErrorModel, ErrorModelPlugin, Verdict
from common.options import Probability


class Bernoulli(ErrorModel):
    """Each frame is erased with probability `per`, independently of all others (COHERENCE, LT-TCP)."""

    def __init__(self, per: float, rng: random.Random) -> None:
        self.per = per
        self._draw = rng.random

    def judge(self, start: int, end: int, nbytes: int) -> Verdict:
        """Return ERASED or INTACT."""
        return ERASED if self._draw() < self.per else INTACT


@dataclass(frozen=True, kw_only=True)
class BernoulliOptions:
    """Each frame is lost with probability `per`."""

    per: Probability


ERROR_MODEL = ErrorModelPlugin(
    name="bernoulli",
    summary="with probability `per`",
    options=BernoulliOptions,
    make=lambda options, rng: Bernoulli(options.per, rng),
    example={"per": 0.2},
)
