"""The error models of the papers, by name.

Read first: SLACP table 1 (interval between bursts and length of a burst; both uniform).

Left out: the models that take one number (`Bernoulli`, `ExponentialBitErrors`, `FixedBursts`); a scenario
gives it.
"""

import random
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from channel.errors import ErrorModel, NoErrors, UniformOnOff

SECOND_NS = 1_000_000_000
MS_NS = 1_000_000

#: Mean distance between bit errors in COMPARISON section 4: 64 KB.
COMPARISON_SPACING_BYTES = 65_536


class OnOff(NamedTuple):
    """The ranges (shortest, longest) of the good and the bad state, in ns."""

    good_ns: tuple[int, int]
    bad_ns: tuple[int, int]


#: SLACP table 1. None is the clean channel.
PAPER_MODELS: Mapping[str, OnOff | None] = MappingProxyType(
    {
        "none": None,
        "low": OnOff((10 * SECOND_NS, 30 * SECOND_NS), (60 * MS_NS, 60 * MS_NS)),
        "med": OnOff((5 * SECOND_NS, 15 * SECOND_NS), (100 * MS_NS, 300 * MS_NS)),
        "high": OnOff((2 * SECOND_NS, 10 * SECOND_NS), (100 * MS_NS, 300 * MS_NS)),
        "vhigh": OnOff((0, 10 * SECOND_NS), (100 * MS_NS, 300 * MS_NS)),
        "huge": OnOff((0, 7 * SECOND_NS), (100 * MS_NS, 100 * MS_NS)),
    }
)


def named(name: str, rng: random.Random) -> ErrorModel:
    """Return a new model of SLACP table 1; raise ValueError for a name that is not in it."""
    try:
        ranges = PAPER_MODELS[name]
    except KeyError:
        raise ValueError(f"error model is {name!r}; known are {', '.join(PAPER_MODELS)}.") from None
    if ranges is None:
        return NoErrors()
    return UniformOnOff(ranges.good_ns, ranges.bad_ns, rng)
