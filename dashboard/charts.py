"""The charts: one list, from which live stream, history, comparison, plots, exports and Grafana's boards are made.

Read first: `telemetry/records.py`, whose fields these are.

A chart has *lines*. A line takes the records of one kind and one source (a link, a flow), in the order of their time,
and makes a value of each. How it does so is its *figure*: the field itself, the rate of a counter, the share that one
counter is of another, or a percentile. Rates, shares and percentiles cover the last second, or what there has been of
it; a rate never less than half a second. A counter that falls was started anew, and so is its window.

Rules kept: values are in the unit of the chart, times are the records'; what a line gives depends on the records before
and on nothing else, so a stream and a file give the same numbers; None means that there is no value at that time.
A figure is data, for `grafana_boards/influxql.py` makes queries of it.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from telemetry.records import FlowRecord, LinkRecord, PhyRecord, Record, StationRecord, TcpRecord

WINDOW_S = 1.0
#: how far apart the points of a line over all sources are at least
ALL_SOURCES_STEP_S = 0.1

#: gives a line's value for the next record of its source; takes its time (s), too. `SKIP` means no point at all
Step = Callable[[float, Any], float | None]
SKIP = float("-inf")

#: whose records make one line: each link's, each flow's, each station's, or all of a kind together
Source = Literal["link", "flow", "station", "all"]


@dataclass(frozen=True, slots=True)
class Value:
    """A field's values; `newest` where a mean would have no meaning, as of a count."""

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
    """How much a counter grew per second."""

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
class Share:
    """The growth of one counter in percent of that of another."""

    counter: str
    of: str

    def start(self) -> Step:
        """Begin a line."""
        window = _Window()

        def step(time_s: float, record: Any) -> float | None:
            part, whole = getattr(record, self.counter), getattr(record, self.of)
            if part is None or whole is None:
                return None
            _, parts, wholes = window.grow(time_s, part, whole)
            # What was lost may have been sent in the second before.
            return min(100.0 * parts / wholes, 100.0) if wholes > 0 else None

        return step


@dataclass(frozen=True, slots=True)
class Percentile:
    """That percentile of a field's values: the smallest of which `percent` of 100 are no larger (nearest rank)."""

    field: str
    percent: int

    def start(self) -> Step:
        """Begin a line."""
        points: deque[tuple[float, float]] = deque()

        def step(time_s: float, record: Any) -> float | None:
            found = getattr(record, self.field)
            if found is not None:
                points.append((time_s, found))
            while points and points[0][0] <= time_s - WINDOW_S:
                points.popleft()
            ranked = sorted(value for _, value in points)
            return ranked[-(-len(ranked) * self.percent // 100) - 1] if ranked else None

        return step


@dataclass(frozen=True, slots=True)
class TotalRate:
    """How much the sum of all sources' counters grew per second; there is one from two sources on."""

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
            total += found - latest.get(source, 0)
            latest[source] = found
            if len(latest) < 2 or time_s < previous_s + ALL_SOURCES_STEP_S:
                return SKIP
            previous_s = time_s
            span_s, growth, _ = window.grow(time_s, total)
            return growth * self.factor / max(span_s, WINDOW_S / 2) if span_s else SKIP

        return step


Figure = Value | Rate | Share | Percentile | TotalRate


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart, for each source."""

    record: type[Record]
    by: Source
    #: follows the source in the line's label, as in "up before"; empty for the chart's main line
    suffix: str
    figure: Figure
    #: what the page writes instead of the suffix, or where there is one source only; empty: suffix or source
    short: str = ""

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


#: those of the page, in its order
CHARTS: tuple[Chart, ...] = (
    Chart(
        "throughput",
        "Throughput",
        "bit/s",
        "zero",
        "All bytes each direction of the link sends: headers, retransmissions and redundancy included",
        (Line(LinkRecord, "link", "", Value("throughput_bps")),),
    ),
    Chart(
        "goodput",
        "Goodput",
        "bit/s",
        "zero",
        "Payload the receiver of each flow gets, mean of the last second",
        (
            Line(FlowRecord, "flow", "", Rate("bytes_received", 8)),
            Line(FlowRecord, "all", "", TotalRate("bytes_received", 8)),
        ),
    ),
    Chart(
        "cwnd",
        "Congestion window",
        "bytes",
        "zero",
        "What each TCP sender may have under way, and its slow start threshold",
        (
            Line(TcpRecord, "flow", "", Value("cwnd_bytes"), "cwnd"),
            Line(TcpRecord, "flow", "ssthresh", Value("ssthresh_bytes")),
        ),
    ),
    Chart(
        "srtt",
        "Round-trip time",
        "ms",
        "zero",
        "Each TCP sender's smoothed round-trip time, and its retransmission timeout",
        (
            Line(TcpRecord, "flow", "", Value("srtt_ms"), "SRTT"),
            Line(TcpRecord, "flow", "RTO", Value("rto_ms")),
        ),
    ),
    Chart(
        "snr",
        "SNR and EVM",
        "dB",
        "free",
        "What each receiver measures: signal to noise, and the error vector of its symbols",
        (
            Line(PhyRecord, "link", "SNR", Value("snr_db")),
            Line(PhyRecord, "link", "EVM", Value("evm_db")),
        ),
    ),
    Chart(
        "per",
        "Errors before and after repair",
        "%",
        "zero",
        "Frames the medium took, and packets the link layer lost for good, over the last second",
        (
            Line(LinkRecord, "link", "before", Share("corruption_losses", "frames"), "on the air"),
            Line(LinkRecord, "link", "after", Share("residual_losses", "packets"), "left for TCP"),
        ),
    ),
    Chart(
        "repairs",
        "Repairs",
        "1/s",
        "zero",
        "What the link layer and TCP spend on repair, and ACKs marked with ELN, mean of the last second",
        (
            Line(LinkRecord, "link", "retransmissions", Rate("retransmissions"), "ARQ"),
            Line(LinkRecord, "link", "FEC frames", Rate("fec_frames"), "FEC"),
            Line(LinkRecord, "link", "FEC repairs", Rate("fec_repairs"), "rebuilt"),
            Line(LinkRecord, "link", "ELN marks", Rate("eln_marks"), "ELN"),
            Line(TcpRecord, "flow", "TCP retransmits", Rate("retransmits"), "TCP"),
        ),
    ),
    Chart(
        "queue",
        "Queue",
        "bytes",
        "zero",
        "Bytes that wait in each direction's IP queue",
        (Line(LinkRecord, "link", "", Value("queue_bytes")),),
    ),
)

#: those that only Grafana's boards show, which have the room
FURTHER_CHARTS: tuple[Chart, ...] = (
    Chart(
        "link-goodput",
        "Goodput of the link",
        "bit/s",
        "zero",
        "Bytes of packets that are across: acknowledged or, without ARQ, sent once and not known lost",
        (Line(LinkRecord, "link", "", Value("goodput_bps")),),
    ),
    Chart(
        "acknowledged",
        "Acknowledged",
        "bit/s",
        "zero",
        "Payload that each TCP sender knows to be across",
        (Line(TcpRecord, "flow", "", Rate("bytes_acked", 8)),),
    ),
    Chart(
        "rtt",
        "Percentiles of the round-trip time",
        "ms",
        "zero",
        "Of the smoothed round-trip times recorded in each interval: half, and 95 %, are no longer",
        (
            Line(TcpRecord, "flow", "p50", Percentile("srtt_ms", 50)),
            Line(TcpRecord, "flow", "p95", Percentile("srtt_ms", 95)),
        ),
    ),
    Chart(
        "tcp-retransmits",
        "Retransmitted by TCP",
        "segments/s",
        "zero",
        "Segments sent again: losses TCP saw, or believed to see",
        (Line(TcpRecord, "flow", "", Rate("retransmits")),),
    ),
    Chart(
        "timeouts",
        "Timeouts",
        "timeouts",
        "zero",
        "Retransmission timeouts since the connection began; each one also marks all charts",
        (Line(TcpRecord, "flow", "", Value("timeouts", newest=True)),),
    ),
    Chart(
        "frames",
        "Frames sent",
        "frames/s",
        "zero",
        "All frames but acknowledgements, and those of them that are retransmissions and redundancy",
        (
            Line(LinkRecord, "link", "", Rate("frames")),
            Line(LinkRecord, "link", "retransmissions", Rate("retransmissions")),
            Line(LinkRecord, "link", "FEC frames", Rate("fec_frames")),
        ),
    ),
    Chart(
        "fec",
        "FEC: recovered and lost",
        "packets/s",
        "zero",
        "Packets rebuilt from redundancy, and packets that stayed lost",
        (
            Line(LinkRecord, "link", "recovered", Rate("fec_repairs")),
            Line(LinkRecord, "link", "lost", Rate("residual_losses")),
        ),
    ),
    Chart(
        "packets",
        "Packets sent, refused and marked",
        "packets/s",
        "zero",
        "Packets sent for the first time, packets that a queue refused, and ACKs marked with ELN",
        (
            Line(LinkRecord, "link", "", Rate("packets")),
            Line(LinkRecord, "link", "congestion", Rate("congestion_losses")),
            Line(LinkRecord, "link", "ELN marks", Rate("eln_marks")),
        ),
    ),
    Chart(
        "frames-lost",
        "Frames lost",
        "%",
        "zero",
        "Frames that the receiver missed or heard damaged, and with them those a model took before transmission",
        (
            Line(PhyRecord, "link", "at the receiver", Value("per", 100.0)),
            Line(LinkRecord, "link", "with the model's", Share("corruption_losses", "frames")),
        ),
    ),
    Chart(
        "cfo",
        "Carrier frequency offset",
        "Hz",
        "free",
        "Of the transmitter above the receiver, as estimated on each frame",
        (Line(PhyRecord, "link", "", Value("cfo_hz")),),
    ),
    Chart(
        "processor",
        "Processor time",
        "%",
        "zero",
        "What each station's process uses of one core",
        (Line(StationRecord, "station", "", Value("processor_percent")),),
    ),
    Chart(
        "memory",
        "Memory",
        "bytes",
        "zero",
        "What each station's process has resident",
        (Line(StationRecord, "station", "", Value("memory_bytes")),),
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
