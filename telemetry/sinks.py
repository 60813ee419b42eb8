"""What a run gives its records to.

Order of calls: `begin` once the run's clock has a zero, `write` for every record, `close` at the end, whatever
happened in between. A sink never makes its run wait: what is slow happens in a thread of the sink's own, or in `close`.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Protocol

from telemetry.records import Record


class Sink(Protocol):
    """Keeps or shows the records of one run."""

    def begin(self, epoch_ns: int) -> None:
        """Take the Unix time, in ns, of the run's time 0; before the first record."""

    def write(self, record: Record) -> None:
        """Take one record."""

    def close(self) -> None:
        """Take leave: nothing comes any more."""


class Sinks:
    """Several sinks as one. What one of them raises in `close` is raised when all are closed."""

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self._sinks = tuple(sinks)

    def begin(self, epoch_ns: int) -> None:
        """Pass on the run's time 0."""
        for sink in self._sinks:
            sink.begin(epoch_ns)

    def write(self, record: Record) -> None:
        """Pass on one record."""
        for sink in self._sinks:
            sink.write(record)

    def close(self) -> None:
        """Close all."""
        with ExitStack() as stack:
            for sink in reversed(self._sinks):
                stack.callback(sink.close)
