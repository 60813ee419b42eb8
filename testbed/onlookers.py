"""What can be seen of a run while it goes on, and who takes part in it besides its folder."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from telemetry.sinks import Sink
from telemetry.views import PhyView
from testbed.results.summary import Summary
from testbed.scenario.schema import Scenario

if TYPE_CHECKING:
    from testbed.live.steering import Steering


@dataclass(slots=True)
class Progress:
    """What can be shown while a run goes on."""

    phase: str = "setting up"
    elapsed_s: float = 0.0
    #: when the run will end, if that is known
    expected_s: float | None = None
    bytes_received: int = 0
    bytes_expected: int | None = None
    #: mean of the last second, all flows
    goodput_bps: float = 0.0
    cwnd_bytes: int | None = None

    @classmethod
    def of(cls, scenario: Scenario) -> "Progress":
        """Return what can be shown before a run."""
        return cls(expected_s=_expected_s(scenario), bytes_expected=_expected_bytes(scenario))


Show = Callable[[Progress], None]


class Watcher(Protocol):
    """Who looks at the radios of a run."""

    @property
    def watched(self) -> bool:
        """Whether anybody looks right now."""

    def show(self, view: PhyView) -> None:
        """Take a view."""


@dataclass(frozen=True, slots=True)
class Onlookers:
    """Who else takes part in a run: further sinks for its records, eyes for its radios, a hand on its controls."""

    sinks: Sequence[Sink] = ()
    watcher: Watcher | None = None
    steering: "Steering | None" = None
    #: called with the result, or with what went wrong
    ended: Callable[[Summary | None, str | None], None] = lambda summary, error: None


NOBODY = Onlookers()


def _expected_s(scenario: Scenario) -> float | None:
    """How long the run takes if only durations decide, or None."""
    end_s = 0.0
    for work in scenario.make_workloads():
        if work.ends_s is None:
            return None
        end_s = max(end_s, work.ends_s)
    return end_s


def _expected_bytes(scenario: Scenario) -> int | None:
    """How many payload bytes the run moves if only sizes decide, or None."""
    total = 0
    for work in scenario.make_workloads():
        if work.payload_bytes is None:
            return None
        total += work.payload_bytes
    return total
