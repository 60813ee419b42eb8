"""The curves of one run, computed from its records as `charts/` defines.

`Curves.take` takes records. `Curves` keeps a curve (times and values) for every line of every source, a mark for every
loss, and a note for every change by a control. Each call of `take` is one *batch* with a number; a reader asks for the
data after the last batch that it has read.

Rules kept
- Memory is bounded: `points` per curve, `SOURCES` sources per kind of record; further ones are counted in `hidden`.
- A record that is not later than the previous one of its source is left out: times of a curve increase.
- A curve begins with its first value; from then on a missing value is a gap (NaN).

No clock, no lock, no thread.
"""

import math
from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from dashboard.charts import CHARTS, MARKS, SKIP, Chart, Step, source_of
from telemetry.records import ControlRecord, LinkRecord, PhyRecord, Record

#: most sources with curves, per kind of record
SOURCES = 16
#: label of the line over all sources
ALL = "all flows"

_ORDER = {chart.name: place for place, chart in enumerate(CHARTS)}
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Mark:
    """Losses of one cause since the previous record."""

    t: float
    cause: str
    link: str
    count: int


@dataclass(frozen=True, slots=True)
class Note:
    """A change by a control."""

    t: float
    name: str
    value: Any


class Curve:
    """One line of one source; keeps at least the newest `points` points, or all (None)."""

    def __init__(self, chart: str, line: int, source: str, label: str, points: int | None) -> None:
        self.chart = chart
        #: the line's number in the chart, and its source
        self.line = line
        self.source = source
        self.label = label
        self._points = points
        self.times = array("d")
        self.values = array("d")
        self._batches = array("q")

    def append(self, batch: int, time_s: float, value: float) -> None:
        """Add a point."""
        self.times.append(time_s)
        self.values.append(value)
        self._batches.append(batch)
        # trimmed at twice the length, so that appending stays cheap
        if self._points is not None and len(self.times) >= 2 * self._points:
            for kept in (self.times, self.values, self._batches):
                del kept[: -self._points]

    def copy(self) -> "Curve":
        """Return a copy of the curve."""
        copy = Curve(self.chart, self.line, self.source, self.label, self._points)
        copy.times, copy.values, copy._batches = self.times[:], self.values[:], self._batches[:]
        return copy

    def after(self, batch: int, since_s: float) -> slice:
        """Return the slice of points after a batch that are not older than `since_s`."""
        return slice(max(bisect_right(self._batches, batch), bisect_left(self.times, since_s)), len(self.times))


@dataclass(frozen=True, slots=True)
class Picture:
    """The data of a run to draw, at one instant; read-only."""

    curves: tuple[Curve, ...]
    marks: tuple[Mark, ...]
    notes: tuple[Note, ...]
    #: the newest state of each direction, as `Curves.links` returns it
    links: dict[str, dict[str, Any]]
    #: number of sources that a chart leaves out, if any
    hidden: dict[str, int]
    #: files of the run that cannot be read; empty: none
    problem: str = ""

    def charts(self) -> list[str]:
        """Return the keys of the charts that have a curve, in the page's order."""
        filled = {curve.chart for curve in self.curves}
        return [chart.name for chart in CHARTS if chart.name in filled]


class Curves:
    """The curves, marks and notes of one run."""

    def __init__(self, points: int | None = None) -> None:
        self._points = points
        #: the number of the newest batch; 0 is before the first
        self.batch = 0
        #: the time of the newest record, s
        self.newest_s = -math.inf
        self.curves: dict[tuple[str, str], Curve] = {}
        self._marks: deque[tuple[int, Mark]] = deque(maxlen=points)
        self._notes: deque[tuple[int, Note]] = deque(maxlen=points)
        self._sources: dict[tuple[type[Record], tuple[str, ...]], _Source] = {}
        self._counts: dict[type[Record], int] = {}
        self._whole = [
            (line.record, self._track(chart, number, ALL, ALL))
            for chart in CHARTS
            for number, line in enumerate(chart.lines)
            if line.by == "all"
        ]

    def take(self, records: Iterable[Record]) -> None:
        """Add records: one batch."""
        self.batch += 1
        for record in records:
            self._take(record)

    def _take(self, record: Record) -> None:
        time_s = record.time_ns / 1e9
        self.newest_s = max(self.newest_s, time_s)
        kind = type(record)
        if isinstance(record, ControlRecord):
            self._notes.append((self.batch, Note(time_s, record.name, record.decoded())))
            return
        for whole, track in self._whole:
            if whole is kind:
                self._go_on(track, time_s, record)
        key = kind, source_of(record)
        source = self._sources.get(key)
        if source is None:
            source = self._sources[key] = self._meet(record)
        if time_s <= source.time_s:
            return
        source.time_s = time_s
        for track in source.tracks:
            self._go_on(track, time_s, record)
        if isinstance(record, LinkRecord):
            for mark in _marks(time_s, source.latest, record):
                self._marks.append((self.batch, mark))
        source.latest = record

    def _meet(self, record: Record) -> "_Source":
        kind = type(record)
        self._counts[kind] = self._counts.get(kind, 0) + 1
        if self._counts[kind] > SOURCES:
            return _Source([])
        *host, name = source_of(record)
        if any(known is kind and tags[-1] == name for known, tags in self._sources):
            name = f"{name} ({', '.join(host)})"
        return _Source(
            [
                self._track(chart, number, name, line.label(name))
                for chart in CHARTS
                for number, line in enumerate(chart.lines)
                if line.record is kind and line.by != "all"
            ]
        )

    def _track(self, chart: Chart, number: int, source: str, label: str) -> "_Track":
        step = chart.lines[number].figure.start()
        return _Track(step, Curve(chart.name, number, source, label, self._points))

    def _go_on(self, track: "_Track", time_s: float, record: Record) -> None:
        value = track.step(time_s, record)
        if value == SKIP:
            return
        if value is None or not math.isfinite(value):
            value = math.nan
        curve = track.curve
        if not curve.times:
            if math.isnan(value):
                return
            self.curves[curve.chart, curve.label] = curve
        curve.append(self.batch, time_s, value)

    # -- reading ---------------------------------------------------------------------------------------------

    def picture(self, problem: str = "") -> Picture:
        """Return all data so far, as a copy."""
        curves = sorted((curve.copy() for curve in self.curves.values()), key=_place)
        return Picture(tuple(curves), tuple(self.marks()), tuple(self.notes()), self.links(), self.hidden(), problem)

    def hidden(self) -> dict[str, int]:
        """Return the number of sources that each chart leaves out, if any."""
        counts = {chart.name: max(self._counts.get(line.record, 0) for line in chart.lines) for chart in CHARTS}
        return {name: count - SOURCES for name, count in counts.items() if count > SOURCES}

    def marks(self, after: int = 0, since_s: float = -math.inf) -> list[Mark]:
        """Return the marks after a batch, oldest first."""
        return [mark for mark in _after(self._marks, after) if mark.t >= since_s]

    def notes(self, after: int = 0, since_s: float = -math.inf) -> list[Note]:
        """Return the notes after a batch, oldest first."""
        return [note for note in _after(self._notes, after) if note.t >= since_s]

    def links(self) -> dict[str, dict[str, Any]]:
        """Return the newest state of each direction; `per` and `residual` are ratios, None when unknown.

        `losses` are those of each cause since the start of the run, as its summary has them in the end.
        """
        heard = {key[1][0]: source.latest for key, source in self._sources.items() if key[0] is PhyRecord}
        found = {}
        for (kind, (name, *_)), source in self._sources.items():
            record = source.latest
            if kind is not LinkRecord or not isinstance(record, LinkRecord):
                continue
            phy = heard.get(name)
            found[name] = {
                "scheme": record.scheme,
                "established": record.established,
                "throughput_bps": record.throughput_bps,
                "goodput_bps": record.goodput_bps,
                "per": self._share(f"{name} before"),
                "residual": self._share(f"{name} after"),
                "snr_db": phy.snr_db if isinstance(phy, PhyRecord) else None,
                "queue_bytes": record.queue_bytes,
                "losses": {cause: getattr(record, counter) for counter, cause in MARKS},
            }
        return found

    def _share(self, label: str) -> float | None:
        curve = self.curves.get(("per", label))
        return None if curve is None or math.isnan(curve.values[-1]) else curve.values[-1] / 100


@dataclass(slots=True)
class _Track:
    """Computes one curve, which counts from its first value on."""

    step: Step
    curve: Curve


@dataclass(slots=True)
class _Source:
    """One link, flow or receiver: its tracks and its newest record."""

    tracks: list[_Track]
    time_s: float = -math.inf
    latest: Record | None = None


def _place(curve: Curve) -> tuple[int, int, bool]:
    """Return a curve's position in a legend; equal positions are ordered by begin."""
    return _ORDER[curve.chart], curve.line, curve.source != "up"


def _marks(time_s: float, before: Record | None, record: LinkRecord) -> Iterator[Mark]:
    if before is None:
        return
    for counter, cause in MARKS:
        now, then = getattr(record, counter), getattr(before, counter)
        if now is not None and then is not None and now > then:
            yield Mark(time_s, cause, record.link, now - then)


def _after(batched: deque[tuple[int, _T]], batch: int) -> list[_T]:
    found = []
    for number, item in reversed(batched):
        if number <= batch:
            break
        found.append(item)
    return found[::-1]
