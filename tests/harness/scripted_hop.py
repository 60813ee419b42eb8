"""A hop whose channel does as it is told, and frames to send over it, for radios in simulated time."""

from collections.abc import Sequence
from random import Random

from channel.capacity.cra import ConstantRate
from channel.errors import INTACT, ErrorModel, Verdict
from channel.framing import raw
from channel.hop import Hop

MS = 1_000_000
#: a byte a microsecond
RATE_BPS = 8_000_000
DELAY_NS = 5 * MS
BOUND_NS = 10 * MS


class Script(ErrorModel):
    """An error model that says what it is told, and keeps what it was asked."""

    def __init__(self, verdicts: Sequence[Verdict]) -> None:
        self._verdicts = iter(verdicts)
        self.asked: list[tuple[int, int, int]] = []

    def judge(self, start: int, end: int, nbytes: int) -> Verdict:
        self.asked.append((start, end, nbytes))
        return next(self._verdicts, INTACT)


def scripted_hop(verdicts: Sequence[Verdict], *, buffer: int, delay_ns: int = DELAY_NS) -> Hop[bytes]:
    """A hop of `RATE_BPS` with these verdicts, INTACT after the last."""
    return Hop(
        capacity=ConstantRate(RATE_BPS),
        framing=raw,
        errors=Script(verdicts),
        propagation_ns=delay_ns,
        buffer_bytes=buffer,
    )


def frames_of(sizes: Sequence[int]) -> list[bytes]:
    rng = Random(7)
    return [rng.randbytes(size) for size in sizes]
