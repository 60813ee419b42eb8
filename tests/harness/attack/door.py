"""The common part of all doors: a thing under attack, and its rules."""

from abc import ABC, abstractmethod
from random import Random

from tests.harness.checked import RuleBrokenError


class Door(ABC):
    """One thing under attack; any method raises RuleBrokenError."""

    @abstractmethod
    def shoot(self, rng: Random) -> None:
        """Hand over one hostile input, and let the valid flows go on for a moment."""

    def forget(self) -> None:  # noqa: B027 (a restart may cost data)
        """Restart it, if a restart costs no data."""

    @abstractmethod
    def check(self) -> None:
        """Check its bounds."""

    def finish(self) -> None:  # noqa: B027 (a door may have no valid flow)
        """Check the octets that the valid flows have got in the end."""


def require(holds: bool, what: object) -> None:
    if not holds:
        raise RuleBrokenError(str(what))
