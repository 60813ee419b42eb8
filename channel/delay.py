"""Excess delay: now and then a frame is held for seconds.

Read first: SLOWLINK's section on excessive delays (a simple stand-in for link layer retransmissions below
us).

Rules: one draw per frame; the hop keeps order, so whatever is behind a held frame waits with it. The hold is
on the way, behind the transmitter: the MAC buffer keeps draining meanwhile. Left out: delays that lose or
reorder.
"""

import random

from channel import limits


class ExcessDelay:
    """Each frame is held for `hold_ns` with probability `probability`, independently of all others."""

    __slots__ = ("_draw", "hold_ns", "probability")

    def __init__(self, probability: float, hold_ns: int, rng: random.Random) -> None:
        self.probability = limits.probability("probability", probability)
        self.hold_ns = limits.positive("hold_ns", hold_ns)
        self._draw = rng.random

    def draw(self) -> int:
        """Return how long the next frame is held, in ns: 0 or `hold_ns`."""
        return self.hold_ns if self._draw() < self.probability else 0
