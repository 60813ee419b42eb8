"""The charts of the page: one list, from which live stream, history, comparison, plots and exports are made.

Read first: `telemetry/records.py`, whose fields these are.

A chart has *lines*. A line takes the records of one kind and one source (a link, a flow), in the order of their time,
and makes a value of each: the field itself, the rate of a counter, or the share that one counter is of another. Rates
and shares cover the last second, or what there has been of it; a rate never less than half a second. A counter that
falls was started anew, and so is its window.

Rules kept: values are in the unit of the chart, times are the records'; what a line gives depends on the records before
and on nothing else, so a stream and a file give the same numbers; None means that there is no value at that time.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from telemetry.records import FlowRecord, LinkRecord, PhyRecord, Record, TcpRecord

WINDOW_S = 1.0
#: how far apart the points of a line over all sources are at least
ALL_SOURCES_STEP_S = 0.1

#: gives a line's value for the next record of its source; takes its time (s), too. `SKIP` means no point at all
Step = Callable[[float, Any], float | None]
SKIP = float("-inf")

#: whose records make one line: each link's, each flow's, or all of a kind together
Source = Literal["link", "flow", "all"]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart, for each source."""

    record: type[Record]
    by: Source
    #: follows the source in the line's label, as in "up before"; empty for the chart's main line
    suffix: str
    #: makes the state of one line
    start: Callable[[], Step]

    def label(self, source: str) -> str:
        """Return what the line of a source is called."""
        return f"{source} {self.suffix}".strip()


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart; `key` is its name in addresses and files."""

    key: str
    title: str
    unit: str
    #: whether the axis begins at zero or is free
    scale: Literal["zero", "free"]
    description: str
    lines: tuple[Line, ...]


def value(field: str, factor: float = 1.0) -> Callable[[], Step]:
    """Make a line of a field's values."""

    def start() -> Step:
        def step(_: float, record: Any) -> float | None:
            found = getattr(record, field)
            return None if found is None else found * factor

        return step

    return start


def rate(counter: str, factor: float = 1.0) -> Callable[[], Step]:
    """Make a line of how much a counter grew per second."""

    def start() -> Step:
        window = _Window()

        def step(time_s: float, record: Any) -> float | None:
            found = getattr(record, counter)
            if found is None:
                return None
            span_s, growth, _ = window.grow(time_s, found)
            return growth * factor / max(span_s, WINDOW_S / 2) if span_s else None

        return step

    return start


def share(counter: str, of: str) -> Callable[[], Step]:
    """Make a line of the growth of one counter in percent of that of another."""

    def start() -> Step:
        window = _Window()

        def step(time_s: float, record: Any) -> float | None:
            part, whole = getattr(record, counter), getattr(record, of)
            if part is None or whole is None:
                return None
            _, parts, wholes = window.grow(time_s, part, whole)
            # What was lost may have been sent in the second before.
            return min(100.0 * parts / wholes, 100.0) if wholes > 0 else None

        return step

    return start


def total_rate(counter: str, factor: float = 1.0) -> Callable[[], Step]:
    """Make a line of how much the sum of all sources' counters grew per second; there is one from two sources on."""

    def start() -> Step:
        window, latest = _Window(), dict[tuple[str, ...], int]()
        total, previous_s = 0, 0.0

        def step(time_s: float, record: Any) -> float | None:
            nonlocal total, previous_s
            source = source_of(record)
            found = getattr(record, counter)
            total += found - latest.get(source, 0)
            latest[source] = found
            if len(latest) < 2 or time_s < previous_s + ALL_SOURCES_STEP_S:
                return SKIP
            previous_s = time_s
            span_s, growth, _ = window.grow(time_s, total)
            return growth * factor / max(span_s, WINDOW_S / 2) if span_s else SKIP

        return step

    return start


class _Window:
    """Two counters over the last second."""

    def __init__(self) -> None:
        self._points: deque[tuple[float, int, int]] = deque()

    def grow(self, time_s: float, one: int, other: int = 0) -> tuple[float, int, int]:
        """Return the time since the window's beginning, and how much each counter grew in it."""
        points = self._points
        if points and (one < points[-1][1] or other < points[-1][2]):
            points.clear()
        points.append((time_s, one, other))
        while len(points) > 2 and points[1][0] <= time_s - WINDOW_S:
            points.popleft()
        first_s, first_one, first_other = points[0]
        return time_s - first_s, one - first_one, other - first_other


def source_of(record: Record) -> tuple[str, ...]:
    """Return whose record it is: the values of its tags."""
    return tuple(getattr(record, tag) for tag in record.tags)


CHARTS: tuple[Chart, ...] = (
    Chart(
        "throughput",
        "Throughput",
        "bit/s",
        "zero",
        "All bytes each direction of the link sends: headers, retransmissions and redundancy included",
        (Line(LinkRecord, "link", "", value("throughput_bps")),),
    ),
    Chart(
        "goodput",
        "Goodput",
        "bit/s",
        "zero",
        "Payload the receiver of each flow gets, mean of the last second",
        (
            Line(FlowRecord, "flow", "", rate("bytes_received", 8)),
            Line(FlowRecord, "all", "", total_rate("bytes_received", 8)),
        ),
    ),
    Chart(
        "cwnd",
        "Congestion window",
        "bytes",
        "zero",
        "What each TCP sender may have under way, and its slow start threshold",
        (
            Line(TcpRecord, "flow", "", value("cwnd_bytes")),
            Line(TcpRecord, "flow", "ssthresh", value("ssthresh_bytes")),
        ),
    ),
    Chart(
        "srtt",
        "Round-trip time",
        "ms",
        "zero",
        "Each TCP sender's smoothed round-trip time, and its retransmission timeout",
        (
            Line(TcpRecord, "flow", "", value("srtt_ms")),
            Line(TcpRecord, "flow", "RTO", value("rto_ms")),
        ),
    ),
    Chart(
        "snr",
        "SNR and EVM",
        "dB",
        "free",
        "What each receiver measures: signal to noise, and the error vector of its symbols",
        (
            Line(PhyRecord, "link", "SNR", value("snr_db")),
            Line(PhyRecord, "link", "EVM", value("evm_db")),
        ),
    ),
    Chart(
        "per",
        "Errors before and after repair",
        "%",
        "zero",
        "Frames the medium took, and packets the link layer lost for good, over the last second",
        (
            Line(LinkRecord, "link", "before", share("corruption_losses", "frames")),
            Line(LinkRecord, "link", "after", share("residual_losses", "packets")),
        ),
    ),
    Chart(
        "repairs",
        "Repairs",
        "1/s",
        "zero",
        "What the link layer and TCP spend on repair, and ACKs marked with ELN, mean of the last second",
        (
            Line(LinkRecord, "link", "retransmissions", rate("retransmissions")),
            Line(LinkRecord, "link", "FEC frames", rate("fec_frames")),
            Line(LinkRecord, "link", "FEC repairs", rate("fec_repairs")),
            Line(LinkRecord, "link", "ELN marks", rate("eln_marks")),
            Line(TcpRecord, "flow", "TCP retransmits", rate("retransmits")),
        ),
    ),
    Chart(
        "queue",
        "Queue",
        "bytes",
        "zero",
        "Bytes that wait in each direction's IP queue",
        (Line(LinkRecord, "link", "", value("queue_bytes")),),
    ),
)

#: loss marks: the counter whose growth they are, and the cause people read
MARKS: tuple[tuple[str, str], ...] = (
    ("corruption_losses", "corruption"),
    ("residual_losses", "given up"),
    ("congestion_losses", "congestion"),
)

_RADIO_TIERS = frozenset({"vusrp", "usrp"})


def offered(tier: str) -> tuple[str, ...]:
    """Return the keys of the charts that a run of this tier can fill."""
    return tuple(chart.key for chart in CHARTS if chart.key != "snr" or tier in _RADIO_TIERS)
