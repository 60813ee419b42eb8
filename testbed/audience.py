"""Who gets to see a run besides its folder: a database, a dashboard."""

from collections.abc import Callable

from testbed.live import Onlookers
from testbed.scenario import Scenario
from testbed.store import RunFolder

#: called when a run is about to begin
Audience = Callable[[Scenario, RunFolder], Onlookers]


def nobody(scenario: Scenario, folder: RunFolder) -> Onlookers:
    """Nobody."""
    return Onlookers()
