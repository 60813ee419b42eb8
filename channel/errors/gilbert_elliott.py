"""Two states, each with an error rate (E. N. Gilbert, BSTJ 1960)."""

import random
from dataclasses import dataclass

from channel.errors import ERASED, INTACT, ErrorModel, ErrorModelPlugin, Verdict
from common.options import Milliseconds, Probability
from common.units import ns


@dataclass(frozen=True, kw_only=True)
class GilbertElliottOptions:
    """Good and bad states of exponential length, with an error rate in each."""

    #: means
    good_ms: Milliseconds
    bad_ms: Milliseconds
    good_per: Probability = 0
    bad_per: Probability = 1


class GilbertElliott(ErrorModel):
    """Two states with exponential sojourn times and an error rate in each.

    The options have the mean sojourns, and the probabilities that a frame starting in each state is erased. The state
    at the first frame is drawn from the stationary distribution.
    """

    def __init__(self, options: GilbertElliottOptions, rng: random.Random) -> None:
        self.good_ns, self.bad_ns = ns(options.good_ms), ns(options.bad_ms)
        self.good_per, self.bad_per = float(options.good_per), float(options.bad_per)
        self._draw = rng.random
        # a second generator, so that the states do not depend on the number of frames
        self._states = random.Random(rng.getrandbits(64))
        self._started = False
        self._in_bad = False
        #: the instant the present state ends
        self._until = 0

    def judge(self, start: int, end: int, nbytes: int) -> Verdict:
        """Return ERASED or INTACT by the error rate of the state at `start`."""
        if self._until <= start:
            if not self._started:
                self._started = True
                self._in_bad = self._states.random() * (self.good_ns + self.bad_ns) < self.bad_ns
                self._until = start + self._sojourn()
            while self._until <= start:
                self._in_bad = not self._in_bad
                self._until += self._sojourn()
        per = self.bad_per if self._in_bad else self.good_per
        return ERASED if self._draw() < per else INTACT

    def _sojourn(self) -> int:
        return round(self._states.expovariate(1.0 / (self.bad_ns if self._in_bad else self.good_ns)))


ERROR_MODEL = ErrorModelPlugin(
    name="gilbert-elliott",
    summary="by the state's error rate; sojourns are exponential, `good_ms` and `bad_ms` their means",
    options=GilbertElliottOptions,
    make=GilbertElliott,
    example={"good_ms": 30, "bad_ms": 10, "good_per": 0.1, "bad_per": 0.8},
)
