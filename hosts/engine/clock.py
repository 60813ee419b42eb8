"""The time, as an engine sees it.

Rule kept: an engine reads `now` and never a clock. The driver sets it: to the time of the event in virtual time, and
before each callback and each packet in real time.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final

#: priorities: what happens in the network, and what looks at it or counts it at an instant, after that instant's events
NETWORK: Final = 0
OBSERVER: Final = 1


class Clock(ABC):
    """The time `now` in ns, and the calls that are to come."""

    __slots__ = ("now",)

    now: int

    @abstractmethod
    def at(self, time: int, call: Callable[[Any], object], argument: Any = None, priority: int = NETWORK) -> None:
        """Call `call(argument)` at `time`, in the order (time, priority, insertion).

        There is no taking back: a timer that has moved finds out when it wakes. A time that is over raises ValueError
        in virtual time and is the next turn in real time.
        """
