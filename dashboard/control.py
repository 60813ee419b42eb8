"""What the dashboard may ask of those who run things; it knows no more of them than this.

`testbed` implements these protocols and hands them to `create_app`. All methods are called from the server's threads
and return at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Value = float | int | bool | str


class ControlError(RuntimeError):
    """A control that is not there, or a value it does not take; one line."""


@dataclass(frozen=True, slots=True)
class Control:
    """One thing about a live run that can be changed, and what it is now."""

    #: stable, as in snr_db; the page's label is `label`
    name: str
    label: str
    kind: Literal["range", "choice", "switch"]
    value: Value
    unit: str = ""
    #: of a range
    low: float = 0.0
    high: float = 0.0
    step: float = 0.0
    #: of a choice
    choices: tuple[str, ...] = ()
    #: why it cannot be changed in this run; empty when it can
    why_not: str = ""


class Controls(Protocol):
    """The controls of one live run."""

    def describe(self) -> Sequence[Control]:
        """Return all controls with their present values."""

    def set(self, name: str, value: Value) -> None:
        """Change one; raises ControlError. It holds within a tenth of a second or so."""

    def stop(self) -> None:
        """End the run early; its result is kept like any other's."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A scenario that can be started from the page."""

    name: str
    description: str
    #: those that can run on this machine now
    tiers: tuple[str, ...]
    schemes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """What to start: one run per scheme, at the same time where the tier allows it."""

    scenario: str
    tier: str
    schemes: tuple[str, ...]
    seconds: float
    seed: int


class Lab(Protocol):
    """Starts runs on behalf of the page."""

    def offers(self) -> Sequence[Offer]:
        """Return what can be started."""

    def why_not(self) -> str:
        """Return why nothing can be started now (no rights, a run going on), or an empty string."""

    def start(self, order: Order) -> None:
        """Start the runs; they appear in the hub. Raises ControlError."""
