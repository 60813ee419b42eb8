"""Sinks: consumers of a run's records.

Order of calls: `begin` once the run's time 0 is known, `write` for every record, `close` at the end in any case. A sink
never blocks its run: slow work happens in a thread of the sink, or in `close`.
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
        """End: no more records come."""


class Sinks:
    """Several sinks as one. `close` closes all before it raises an error of one."""

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
