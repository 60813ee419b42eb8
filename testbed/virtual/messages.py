"""What a run inside a machine in virtual time says to the outside: pickled objects in base64, a line each."""

from dataclasses import dataclass

from telemetry.records import Record
from telemetry.views import PhyView
from testbed.results.summary import Summary
from testbed.run_hooks import Progress


@dataclass(frozen=True, slots=True)
class Began:
    """The run's time 0 is known."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The run has failed for a reason that the user can mend."""

    line: str
    notes: tuple[str, ...]


Message = Progress | Began | Record | PhyView | Summary | Failed
