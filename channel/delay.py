"""Excess delay: some frames are held for seconds.

Read first: SLOWLINK's section on excessive delays (a simple model of retransmissions in a link layer below ours).

Rules: one draw per frame; the hop keeps order, so all frames behind a held frame wait with it. A frame is held behind
the transmitter, so the MAC buffer keeps draining. Left out: delays with loss or reordering.
"""

import random

from mypy_extensions import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class ExcessDelay:
    """Each frame is held for `hold_ns` with probability `probability`, independently of all others."""

    def __init__(self, probability: float, hold_ns: int, rng: random.Random) -> None:
        self.probability = probability
        self.hold_ns = hold_ns
        self._draw = rng.random

    def draw(self) -> int:
        """Return how long the next frame is held, in ns: 0 or `hold_ns`."""
        return self.hold_ns if self._draw() < self.probability else 0
