"""The clock of an engine.

Rule kept: an engine reads `now` and never a clock. The driver sets it: to the time of the event in virtual time, and
before each callback and each packet in real time.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final

from mypy_extensions import mypyc_attr, trait

from hosts.engine.packets import Taker

#: priorities: events of the network, then those of observers, which see the state after all events of the instant
NETWORK: Final = 0
OBSERVER: Final = 1


@mypyc_attr(allow_interpreted_subclasses=True)
class Clock(ABC):
    """The time `now` in ns, and the calls ahead."""

    now: int

    @abstractmethod
    def at(self, time: int, call: Callable[[Any], object], argument: Any = None, priority: int = NETWORK) -> None:
        """Call `call(argument)` at `time`, in the order (time, priority, insertion).

        A call cannot be cancelled: a timer that has moved must check the time when it is called. A time in the past
        raises ValueError in virtual time, and means the next turn in real time.
        """

    def give(self, time: int, to: Taker, packet: Any) -> None:
        """Let `to` take a packet at `time`; as `at`, and faster in virtual time."""
        self.at(time, to.take, packet)


@trait
class Sleeper(ABC):
    """Wants to be woken."""

    @abstractmethod
    def wake(self, at: int) -> None:
        """Act at the alarm's time; `at` is the value given to the clock with it."""


class Alarm(Taker):
    """Wakes a sleeper; to be given to a clock."""

    def __init__(self, sleeper: Sleeper) -> None:
        self._sleeper = sleeper

    def take(self, packet: int) -> None:
        self._sleeper.wake(packet)
