"""Capacity models: the rate at which a hop's MAC buffer is served. A file each, which declares a `CAPACITY_MODEL`.

Read first: SLACP section 4 (constant, rate-based and volume-based assignment); `superframes.py` for the two that
signal.

Rules kept here:

- A capacity is a piecewise-constant rate. Order of calls: the hop reports its backlog with `handle_backlog` whenever it
  accepts a frame and right before each deadline. Only `handle_deadline` changes the rate, and the deadline after it
  lies later than `now`.
- All bits are served in the end: while bits wait, the rate is above 0 or a deadline is set.
- A model draws only from the generator it was given.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from mypy_extensions import mypyc_attr

from common.registry import Registry


@mypyc_attr(allow_interpreted_subclasses=True)
class Capacity(ABC):
    """A piecewise-constant service rate. Times are in ns. A model whose rate changes overrides all methods."""

    #: whether the rate never changes, so that there are no deadlines and no calls of `handle_backlog`
    constant: ClassVar[bool] = False

    @abstractmethod
    def rate_bps(self) -> int:
        """Return the present rate in bits on the wire per second; 0 when nothing may be sent."""

    def handle_backlog(self, backlog_bits: int, now: int) -> None:  # noqa: B027 (a constant rate takes no requests)
        """Take note of the backlog: bits on the wire still to be served, the frame being sent included."""

    def next_deadline(self) -> int | None:
        """Return the next instant at which the rate may change, or None."""
        return None

    def handle_deadline(self, now: int) -> None:  # noqa: B027 (a constant rate has no deadlines)
        """Update the rate at `now`; does nothing when early."""


@dataclass(frozen=True, kw_only=True)
class CapacityModel:
    """A capacity model as scenarios know it: `channel.assignment.kind` is its name, its options are further keys."""

    name: str
    #: the capacity a terminal gets, for the table in docs/scenarios.md
    summary: str
    #: a dataclass (`common/options.py`) whose fields have defaults
    options: type[Any]
    #: makes a capacity of its options, the direction's `rate_bps` and the generator it draws from. Raises ValueError in
    #: one line.
    make: Callable[[Any, int, random.Random], Capacity]
    #: options as a scenario gives them, for tests at a rate of 128 kbit/s
    example: Mapping[str, Any]


CAPACITY_MODELS: Final = Registry("channel.capacity", "CAPACITY_MODEL", CapacityModel)
