"""Error models: the fate of each frame on the air. A file each, which declares an `ERROR_MODEL`.

Read first: COMPARISON section 4 (exponentially spaced bit errors, bursts of frames); SLACP section 4 and
table 1 (good and bad states); E. N. Gilbert, "Capacity of a burst-noise channel", BSTJ 1960.

Rules kept here:

- A model is asked once per frame, in order of the frames' starts. It draws only from the generator it was
  given, so a seed and a sequence of frames fix every verdict.
- A model driven by time (`UniformOnOff`, `GilbertElliott`) draws its states independently of its frames: the traffic
  does not change the bad times. Its clock starts with the first frame.
- A model gives the frame that arrives: a DAMAGED frame arrives with those bits flipped, and the CRC must detect it.

Left out: soft information, and all below the bits of a frame; the radio tiers have it.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from mypy_extensions import mypyc_attr

from common.registry import Registry


class Fate(Enum):
    """The fate of one frame on the air."""

    INTACT = "intact"
    #: received with flipped bits
    DAMAGED = "damaged"
    #: not received
    ERASED = "erased"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One frame's fate, and the offsets of its flipped bits (0: first bit of the frame's first byte)."""

    fate: Fate
    bit_errors: tuple[int, ...] = ()


INTACT: Final = Verdict(Fate.INTACT)
ERASED: Final = Verdict(Fate.ERASED)


@mypyc_attr(allow_interpreted_subclasses=True)
class ErrorModel(ABC):
    """Decides the fate of frames, one after another."""

    @abstractmethod
    def judge(self, start: int, end: int, nbytes: int) -> Verdict:
        """Return the fate of a frame of `nbytes` whose first and last bit are on the air at `start` and `end`
        (ns).

        Calls come with non-decreasing `start`.
        """


@dataclass(frozen=True, kw_only=True)
class ErrorModelPlugin:
    """An error model as scenarios know it: `channel.errors.model` is its name, its options are further keys."""

    name: str
    #: when a frame is lost, for the table in docs/scenarios.md
    summary: str
    #: a dataclass (`common/options.py`)
    options: type[Any]
    #: makes a model of its options and the generator it draws from. Raises ValueError in one line.
    make: Callable[[Any, random.Random], ErrorModel]
    #: options as a scenario gives them, for tests: some of a few hundred frames are lost
    example: Mapping[str, Any]


ERROR_MODELS: Final = Registry("channel.errors", "ERROR_MODEL", ErrorModelPlugin)
