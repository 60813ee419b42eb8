"""Error models: what the air does to each frame.

Read first: COMPARISON section 4 (exponentially spaced bit errors, bursts of frames); SLACP section 4 and
table 1 (good and bad states); E. N. Gilbert, "Capacity of a burst-noise channel", BSTJ 1960.

Rules kept here:

- A model is asked once per frame, in order of the frames' starts. It draws only from the generator it was
  given, so a seed and a sequence of frames fix every verdict.
- A model driven by time (`UniformOnOff`, `GilbertElliott`) draws its states apart from its frames: what is
  sent does not change when the air is bad. Its clock starts with the first frame it judges.
- A model says what arrives, not what the link makes of it: a DAMAGED frame arrives with those bits flipped,
  and finding that out is the CRC's work.

Left out: soft information and anything below a frame's bits; that is what the radio tiers are for.
"""

import random
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from channel.limits import positive, probability, span


class Fate(Enum):
    """What became of one frame on the air."""

    INTACT = "intact"
    #: heard, with flipped bits
    DAMAGED = "damaged"
    #: not heard at all
    ERASED = "erased"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One frame's fate, and the offsets of its flipped bits (0: first bit of the frame's first byte)."""

    fate: Fate
    bit_errors: tuple[int, ...] = ()


INTACT = Verdict(Fate.INTACT)
ERASED = Verdict(Fate.ERASED)


class ErrorModel(Protocol):
    """Judges frames one after another."""

    def judge(self, start: int, end: int, nbytes: int) -> Verdict:
        """Return the fate of a frame of `nbytes` whose first and last bit are on the air at `start` and `end`
        (ns).

        Calls come with non-decreasing `start`.
        """


class NoErrors:
    """A clean channel."""

    __slots__ = ()

    def judge(self, start: int, end: int, nbytes: int) -> Verdict:
        """Return INTACT."""
        return INTACT


class Bernoulli:
    """Each frame is erased with probability `per`, independently of all others (COHERENCE, LT-TCP)."""

    __slots__ = ("_draw", "per")

    def __init__(self, per: float, rng: random.Random) -> None:
        self.per = probability("per", per)
        self._draw = rng.random

    def judge(self, start: int, end: int, nbytes: int) -> Verdict:
        """Return ERASED or INTACT."""
        return ERASED if self._draw() < self.per else INTACT


class ExponentialBitErrors:
    """Bit errors at exponentially distributed distances along the bytes sent (COMPARISON).

    `mean_spacing_bytes` is the mean distance between two bit errors. A frame of n bytes is intact with
    probability exp(-n / mean_spacing_bytes).
    """

    __slots__ = ("_rate_per_bit", "_rng", "_to_next_bits", "mean_spacing_bytes")

    def __init__(self, mean_spacing_bytes: int, rng: random.Random) -> None:
        self.mean_spacing_bytes = positive("mean_spacing_bytes", mean_spacing_bytes)
        self._rate_per_bit = 1.0 / (8 * mean_spacing_bytes)
        self._rng = rng
        #: good bits ahead of the next wrong one, counted from the end of the last frame judged
        self._to_next_bits = self._good_run()

    def judge(self, start: int, end: int, nbytes: int) -> Verdict:
        """Return INTACT, or DAMAGED with every wrong bit of the frame."""
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
        # The whole part of an exponential is geometric: bits are wrong independently, with exactly the mean
        # asked for in the probability that a run of n bits is clean.
        return int(self._rng.expovariate(self._rate_per_bit))


class FixedBursts:
    """Bursts of exactly `burst_frames` consecutive frames are lost (COMPARISON table 5).

    Bursts are triggered at exponential distances along the bytes sent, with mean `mean_spacing_bytes`. One
    that is triggered inside another burst, or by the frame right behind it, waits until one frame has got
    through: bursts keep their length, and none is dropped, so their rate is exact.
    """

    __slots__ = ("_left", "_rate_per_byte", "_rng", "_to_next_bytes", "burst_frames", "mean_spacing_bytes")

    def __init__(self, burst_frames: int, mean_spacing_bytes: int, rng: random.Random) -> None:
        self.burst_frames = positive("burst_frames", burst_frames)
        self.mean_spacing_bytes = positive("mean_spacing_bytes", mean_spacing_bytes)
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
        # From trigger to trigger: what a burst or a wait takes is not added to the distance.
        self._to_next_bytes += int(self._rng.expovariate(self._rate_per_byte))
        self._left = self.burst_frames
        return ERASED


class UniformOnOff:
    """Good and bad states of uniformly distributed length; the bad state loses every frame it touches
    (SLACP).

    `good_ns` and `bad_ns` are the ranges (shortest, longest) of the states' lengths. The first frame judged
    finds the good state at its beginning.
    """

    __slots__ = ("_bad_at", "_bad_until", "_randint", "_started", "bad_ns", "good_ns")

    def __init__(self, good_ns: tuple[int, int], bad_ns: tuple[int, int], rng: random.Random) -> None:
        self.good_ns = span("good_ns", good_ns)
        self.bad_ns = span("bad_ns", bad_ns)
        if good_ns[1] + bad_ns[1] == 0:
            raise ValueError("good_ns and bad_ns are both 0 to 0; one of the states must last.")
        self._randint = rng.randint
        self._started = False
        #: the bad state that is on, or comes next: from _bad_at, until just before _bad_until
        self._bad_at = 0
        self._bad_until = 0

    @property
    def bad_fraction(self) -> float:
        """The share of time spent in the bad state."""
        return sum(self.bad_ns) / (sum(self.good_ns) + sum(self.bad_ns))

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


class GilbertElliott:
    """Two states with exponential sojourn times and an error rate in each.

    `good_ns` and `bad_ns` are the mean sojourns, `good_per` and `bad_per` the probabilities that a frame
    starting in the state is erased. The state at the first frame is drawn from the stationary distribution,
    so that `stationary_per` holds from there on.
    """

    __slots__ = (
        "_draw",
        "_in_bad",
        "_started",
        "_states",
        "_until",
        "bad_ns",
        "bad_per",
        "good_ns",
        "good_per",
    )

    def __init__(
        self, good_ns: int, bad_ns: int, rng: random.Random, *, good_per: float = 0.0, bad_per: float = 1.0
    ) -> None:
        self.good_ns = positive("good_ns", good_ns)
        self.bad_ns = positive("bad_ns", bad_ns)
        self.good_per = probability("good_per", good_per)
        self.bad_per = probability("bad_per", bad_per)
        self._draw = rng.random
        # A second generator, so that the states do not depend on how many frames were sent.
        self._states = random.Random(rng.getrandbits(64))
        self._started = False
        self._in_bad = False
        #: the instant the present state ends
        self._until = 0

    @property
    def stationary_per(self) -> float:
        """The long-run share of frames erased, if the instants they start at do not depend on the state."""
        return (self.good_ns * self.good_per + self.bad_ns * self.bad_per) / (self.good_ns + self.bad_ns)

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
