"""Good and bad states of uniform length."""

import random
from dataclasses import dataclass

from channel.errors import ERASED, INTACT, ErrorModel, ErrorModelPlugin, Verdict
from common.options import Span
from common.units import ns


class UniformOnOff(ErrorModel):
    """Good and bad states of uniformly distributed length; the bad state loses every frame it touches
    (SLACP).

    `good_ns` and `bad_ns` are the ranges (shortest, longest) of the states' lengths. The good state
    begins with the first frame. One of the states must last.
    """

    def __init__(self, good_ns: tuple[int, int], bad_ns: tuple[int, int], rng: random.Random) -> None:
        self.good_ns = good_ns
        self.bad_ns = bad_ns
        self._randint = rng.randint
        self._started = False
        #: the present or next bad state: from _bad_at until just before _bad_until
        self._bad_at = 0
        self._bad_until = 0

    def judge(self, start: int, end: int, nbytes: int) -> Verdict:
        """Return ERASED if any part of the frame is on the air in the bad state, else INTACT."""
        if self._bad_until <= start:
            if not self._started:
                self._started = True
                self._next_bad(start)
            while self._bad_until <= start:
                self._next_bad(self._bad_until)
        return ERASED if end > self._bad_at else INTACT

    def _next_bad(self, good_from: int) -> None:
        self._bad_at = good_from + self._randint(*self.good_ns)
        self._bad_until = self._bad_at + self._randint(*self.bad_ns)


@dataclass(frozen=True, kw_only=True)
class UniformOptions:
    """Good and bad states of uniform length (as in SLACP table 1, with other numbers)."""

    #: shortest and longest
    good_ms: Span
    bad_ms: Span

    def __post_init__(self) -> None:
        if not ns(self.good_ms[1]) + ns(self.bad_ms[1]):
            raise ValueError("good_ms and bad_ms are both 0: one of the states must last")


ERROR_MODEL = ErrorModelPlugin(
    name="uniform",
    summary="in bad states of uniform length",
    options=UniformOptions,
    make=lambda options, rng: UniformOnOff(
        (ns(options.good_ms[0]), ns(options.good_ms[1])), (ns(options.bad_ms[0]), ns(options.bad_ms[1])), rng
    ),
    example={"good_ms": [10, 50], "bad_ms": [0, 20]},
)
