"""The context that all transfers of one host share."""

from dataclasses import dataclass

from hosts.engine.clock import Clock
from hosts.engine.content import Contents
from hosts.engine.probe import Emit, Probe


def ignore(record: object) -> None:
    """Ignore a record or a result."""


@dataclass(slots=True, kw_only=True)
class Context:
    """One host's part of a run: its clock, and the callback for its records. `epoch` is the run's time 0."""

    clock: Clock
    host: str
    seed: int
    contents: Contents
    probe: Probe
    emit: Emit = ignore
    epoch: int = 0

    @property
    def time_ns(self) -> int:
        """The time since the run's start."""
        return self.clock.now - self.epoch
