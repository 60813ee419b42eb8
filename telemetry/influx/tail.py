"""Reads new records from a database as they arrive, from all writers.

Rules kept
- A record is returned once. Writers are not synchronised, so each poll reads the last `overlap_s` again, and omits the
  records of earlier polls.
- A source that writes faster than a page can show is read in part, so it costs no more than others.
- Later records (a spool sent after the database was away) are omitted, too: pages can query them as history.
"""

import time
from collections.abc import Mapping
from math import nan
from typing import Any, NamedTuple

from telemetry.influx.client import Influx, Series, identifier
from telemetry.records import RECORD_TYPES, Record, field_types

_KINDS = {kind.measurement: kind for kind in RECORD_TYPES}
_MEASUREMENTS = ", ".join(identifier(measurement) for measurement in _KINDS)


class Arrival(NamedTuple):
    """A record with its run's tags and its time (Unix, ns)."""

    #: the run's tags; those of the record are in the record
    tags: dict[str, str]
    time_ns: int
    #: its `time_ns` is the same, since a database does not know a run's time 0
    record: Record


class InfluxTail:
    """Reads new records of a database, not older than `since_ns` (Unix; default: now).

    A poll reads at most the `newest` records of each source.
    """

    def __init__(
        self, influx: Influx, *, since_ns: int | None = None, overlap_s: float = 1.0, newest: int = 30
    ) -> None:
        self._influx = influx
        self._newest = newest
        self._overlap_ns = int(overlap_s * 1e9)
        self._since_ns = time.time_ns() if since_ns is None else since_ns
        self._seen: set[tuple[object, ...]] = set()

    def poll(self) -> list[Arrival]:
        """Return the records since the last poll, in order of time. Raises InfluxError."""
        found = self._influx.query(
            f"SELECT * FROM {_MEASUREMENTS} WHERE time >= {self._since_ns} GROUP BY * "
            f"ORDER BY time DESC LIMIT {self._newest}"
        )
        seen: set[tuple[object, ...]] = set()
        arrivals = []
        for series in found:
            kind = _KINDS[series.name]
            key = tuple(sorted(series.tags.items()))
            tags = {name: value for name, value in series.tags.items() if name not in kind.tags and value}
            for time_ns, row in _rows(series):
                seen.add((kind, key, time_ns))
                self._since_ns = max(self._since_ns, time_ns - self._overlap_ns)
                if (kind, key, time_ns) not in self._seen and (record := _record(kind, row)):
                    arrivals.append(Arrival(tags, time_ns, record))
        self._seen = seen
        return sorted(arrivals, key=lambda arrival: arrival.time_ns)


def _rows(series: Series) -> list[tuple[int, dict[str, Any]]]:
    columns = ["time_ns" if column == "time" else column for column in series.columns]
    return [
        (row["time_ns"], row) for row in (series.tags | dict(zip(columns, row, strict=True)) for row in series.values)
    ]


def _record(kind: type[Record], row: Mapping[str, Any]) -> Record | None:
    """Make a record of a row; None for a row of another program that lacks fields."""
    values = {}
    for name, (make, optional) in _FIELDS[kind].items():
        value = row.get(name)
        if value is not None:
            values[name] = make(value)
        elif optional or make in _ABSENT:
            values[name] = None if optional else _ABSENT[make]
        else:
            return None
    return kind(**values)


_FIELDS = {kind: field_types(kind) for kind in RECORD_TYPES}
#: missing values of mandatory fields: the database has neither non-finite floats nor empty tags
_ABSENT: Mapping[type[Any], Any] = {float: nan, str: ""}
