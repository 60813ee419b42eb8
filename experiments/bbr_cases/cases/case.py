"""What a test case is, and its declaration."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, Literal, Protocol

from experiments.bbr_cases.flow import Flow

#: the unit of facts
FACT: Final = "yes = 1"


class New(Protocol):
    """Makes a flow over the path of a replication, with so many BDPs of buffer."""

    def __call__(self, *, buffer_bdp: float = inf) -> Flow: ...


@dataclass(frozen=True, kw_only=True)
class Number:
    """One number of a case, and the range in which the draft has it; `low` or `high` None: no bound there."""

    name: str
    #: the step of the case
    step: str
    #: in our words
    words: str
    low: float | None = None
    high: float | None = None
    unit: str = FACT
    #: of the bounds
    whose: Literal["draft", "ours"] = "draft"
    #: why ours is not expected to meet it
    disagrees: str = ""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One test case; `name` is the number of its section."""

    name: str
    #: the draft's title, in short
    title: str
    script: Callable[[New], Mapping[str, float]]
    numbers: Sequence[Number]
    #: the path's RTT (ms), where the case asks for a certain range; default: the set's
    rtt_ms: tuple[float, float] | None = None
    #: the path's rate (Mbit/s) likewise
    rate_mbps: float | None = None


#: by name
DECLARED: Final[dict[str, Case]] = {}


def case(
    name: str,
    title: str,
    *numbers: Number,
    rtt_ms: tuple[float, float] | None = None,
    rate_mbps: float | None = None,
) -> Callable[[Callable[[New], Mapping[str, float]]], Callable[[New], Mapping[str, float]]]:
    """Declare a script as a test case, judged by its numbers."""

    def declare(script: Callable[[New], Mapping[str, float]]) -> Callable[[New], Mapping[str, float]]:
        DECLARED[name] = Case(
            name=name, title=title, script=script, numbers=numbers, rtt_ms=rtt_ms, rate_mbps=rate_mbps
        )
        return script

    return declare


def yes(name: str, step: str, words: str, disagrees: str = "") -> Number:
    """Return a fact that the draft expects."""
    return Number(name=name, step=step, words=words, low=1.0, disagrees=disagrees)
