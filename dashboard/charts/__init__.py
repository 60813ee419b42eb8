"""The charts: one list for live stream, history, comparison, plots, exports and Grafana's boards.

Read first: `telemetry/records.py`, which defines the fields. A file of this folder declares its `CHART`, or several.

A chart has *lines*. A line takes the records of one kind and one source (a link, a flow), in the order of time, and
computes a value from each by its *figure*: the field itself, the rate of a counter, the ratio of two counters, or a
percentile. Rates, ratios and percentiles cover the last second, or the time since the start if shorter; a rate covers
at least half a second. When a counter decreases, it has restarted, and its window restarts.

Rules kept: values are in the unit of the chart, times are those of the records; the value of a line depends on earlier
records alone, so a stream and a file give the same numbers; None means no value at that time. A figure is data, since
`grafana_boards/influxql.py` makes queries from it.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Container
from dataclasses import dataclass
from math import inf, isnan
from typing import Any, Final, Literal

from common.registry import Registry
from telemetry.records import FlowRecord, LinkRecord, PhyRecord, Record, TcpRecord

WINDOW_S = 1.0
#: least time between two points of a line over all sources
ALL_SOURCES_STEP_S = 0.1

#: returns a line's value for the time (s) and the next record of its source; `SKIP` means no point
Step = Callable[[float, Any], float | None]
SKIP = float("-inf")

#: the source of a line's records: a link, a flow, a station, or all records of a kind
Source = Literal["link", "flow", "station", "all"]


@dataclass(frozen=True, slots=True)
class Value:
    """A field's values; `newest` for fields without a meaningful mean, such as counts."""

    field: str
    factor: float = 1.0
    newest: bool = False

    def start(self) -> Step:
        """Begin a line."""

        def step(_: float, record: Any) -> float | None:
            found = getattr(record, self.field)
            return None if found is None else found * self.factor

        return step


@dataclass(frozen=True, slots=True)
class Rate:
    """The growth of a counter per second."""

    counter: str
    factor: float = 1.0

    def start(self) -> Step:
        """Begin a line."""
        window = _Window()

        def step(time_s: float, record: Any) -> float | None:
            found = getattr(record, self.counter)
            if found is None:
                return None
            span_s, growth, _ = window.grow(time_s, found)
            return growth * self.factor / max(span_s, WINDOW_S / 2) if span_s else None

        return step


@dataclass(frozen=True, slots=True)
class Ratio:
    """The growth of one counter for each of another."""

    counter: str
    of: str

    def start(self) -> Step:
        """Begin a line."""
        return _quotient(self.counter, self.of, 1.0)


@dataclass(frozen=True, slots=True)
class Share:
    """The growth of one counter in percent of that of another."""

    counter: str
    of: str

    def start(self) -> Step:
        """Begin a line."""
        # lost packets may have been sent before the window
        return _quotient(self.counter, self.of, 100.0, 100.0)


@dataclass(frozen=True, slots=True)
class Percentile:
    """A percentile of a field's values: the smallest value not exceeded by `percent` % of them (nearest rank)."""

    field: str
    percent: int

    def start(self) -> Step:
        """Begin a line."""
        points: deque[tuple[float, float]] = deque()
        ranked: list[float] = []

        def step(time_s: float, record: Any) -> float | None:
            found = getattr(record, self.field)
            if found is not None and not isnan(found):
                points.append((time_s, found))
                insort(ranked, found)
            while points and points[0][0] <= time_s - WINDOW_S:
                del ranked[bisect_left(ranked, points.popleft()[1])]
            return ranked[-(-len(ranked) * self.percent // 100) - 1] if ranked else None

        return step


@dataclass(frozen=True, slots=True)
class TotalRate:
    """The growth of the sum of all sources' counters per second; only with two or more sources."""

    counter: str
    factor: float = 1.0

    def start(self) -> Step:
        """Begin a line."""
        window, latest = _Window(), dict[tuple[str, ...], int]()
        total, previous_s = 0, 0.0

        def step(time_s: float, record: Any) -> float | None:
            nonlocal total, previous_s
            source = source_of(record)
            found = getattr(record, self.counter)
            if found is None:
                return SKIP
            total += found - latest.get(source, 0)
            latest[source] = found
            if len(latest) < 2 or time_s < previous_s + ALL_SOURCES_STEP_S:
                return SKIP
            previous_s = time_s
            span_s, growth, _ = window.grow(time_s, total)
            return growth * self.factor / max(span_s, WINDOW_S / 2) if span_s else SKIP

        return step


Figure = Value | Rate | Ratio | Share | Percentile | TotalRate


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart, for each source."""

    record: type[Record]
    by: Source
    #: text behind the source in the line's label, as in "up before"; empty for the chart's main line
    suffix: str
    figure: Figure
    #: the page's text in place of the suffix, or for a single source; empty: suffix or source
    short: str = ""
    #: whether it bounds a band around the chart's first line; two lines do, the lower one first
    band: bool = False

    def label(self, source: str) -> str:
        """Return the label of the line of a source."""
        return f"{source} {self.suffix}".strip()


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart; `name` stands in addresses and files."""

    name: str
    title: str
    unit: str
    description: str
    lines: tuple[Line, ...]
    #: whether the axis begins at zero or is free
    scale: Literal["zero", "free"] = "zero"
    #: its place on the page, from the top; 0: on Grafana's boards alone
    page: int = 0


class _Window:
    """Two counters over the last second."""

    def __init__(self) -> None:
        self._points: deque[tuple[float, int, int]] = deque()

    def grow(self, time_s: float, one: int, other: int = 0) -> tuple[float, int, int]:
        """Return the length of the window, and the growth of each counter in it."""
        points = self._points
        if points and (one < points[-1][1] or other < points[-1][2]):
            points.clear()
        points.append((time_s, one, other))
        while len(points) > 2 and points[1][0] <= time_s - WINDOW_S:
            points.popleft()
        first_s, first_one, first_other = points[0]
        return time_s - first_s, one - first_one, other - first_other


def _quotient(counter: str, of: str, factor: float, most: float = inf) -> Step:
    """Return the step of a line: the growth of one counter over that of another, times `factor`, at most `most`."""
    window = _Window()

    def step(time_s: float, record: Any) -> float | None:
        part, whole = getattr(record, counter), getattr(record, of)
        if part is None or whole is None:
            return None
        _, parts, wholes = window.grow(time_s, part, whole)
        return min(factor * parts / wholes, most) if wholes > 0 else None

    return step


def source_of(record: Record) -> tuple[str, ...]:
    """Return the source of a record: the values of its tags."""
    return tuple(getattr(record, tag) for tag in record.tags)


#: loss marks: the counter of the losses, and the displayed cause
MARKS: tuple[tuple[str, str], ...] = (
    ("corruption_losses", "corruption"),
    ("residual_losses", "given up"),
    ("congestion_losses", "congestion"),
)


ALL: Final = Registry("dashboard.charts", "CHART", Chart)
#: those of the page, in order
CHARTS: Final = tuple(
    sorted((chart for chart in ALL.values() if chart.page), key=lambda chart: (chart.page, chart.name))
)


#: what every run records
_ALWAYS: Final = frozenset({LinkRecord, TcpRecord, FlowRecord})


def offered(recorded: Container[type[Record]], *, radio: bool) -> tuple[str, ...]:
    """Return the names of the page's charts that a run can fill: one with radios or without, and with such records."""

    def fills(kind: type[Record]) -> bool:
        return kind in _ALWAYS or (radio and kind is PhyRecord) or kind in recorded

    return tuple(chart.name for chart in CHARTS if any(fills(line.record) for line in chart.lines))
