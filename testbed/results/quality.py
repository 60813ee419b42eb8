"""What users feel of a run: percentiles of the delays of packets under load.

Rules kept
- Percentiles are nearest ranks: the smallest delay that at least so many percent of the delays do not exceed. Delays
  count by the whole microsecond (`hosts/engine/delays.py`).
- A delay between two hosts exists only where both have one clock, and a round trip of packets only where both ends of
  the connection are the hosts'. What is not known is None; no estimate stands for it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hosts.engine.delays import Counts
from hosts.engine.results import EndReport, Received, TcpReceived, TcpSent
from hosts.workloads import Workload


@dataclass(frozen=True, slots=True)
class Percentiles:
    """A distribution of delays."""

    #: number of delays
    n: int
    mean_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class FlowQuality:
    """The delays of one flow; None: not known."""

    #: of its packets with data, from host to host
    one_way: Percentiles | None = None
    #: from the sending of data to the ACK
    round_trip: Percentiles | None = None
    #: of the sender's smoothed round-trip time, in the records of a real-time run
    smoothed: Percentiles | None = None


@dataclass(frozen=True, slots=True)
class Quality:
    """What users feel of a run. The first three are of the main flows, all packets together."""

    one_way: Percentiles | None = None
    round_trip: Percentiles | None = None
    smoothed: Percentiles | None = None
    flows: Mapping[str, FlowQuality] = field(default_factory=dict)


def percentiles(counts: Iterable[tuple[int, int]]) -> Percentiles | None:
    """Return the percentiles of delays, given their numbers by µs; None without delays."""
    ordered = sorted(counts)
    n = sum(number for _, number in ordered)
    if not n:
        return None
    return Percentiles(
        n=n,
        mean_ms=sum(us * number for us, number in ordered) / n / 1e3,
        p50_ms=_rank(ordered, -(-n * 50 // 100)) / 1e3,
        p95_ms=_rank(ordered, -(-n * 95 // 100)) / 1e3,
        p99_ms=_rank(ordered, -(-n * 99 // 100)) / 1e3,
    )


def _rank(ordered: Sequence[tuple[int, int]], rank: int) -> int:
    """Return the delay of a rank, from 1 on."""
    for us, number in ordered:
        rank -= number
        if rank <= 0:
            return us
    raise AssertionError("the rank is above the number of delays")


def joined(parts: Iterable[Counts]) -> Counts:
    """Return the counts of several ends as one."""
    total: Counter[int] = Counter()
    for counts in parts:
        for us, number in counts:
            total[us] += number
    return tuple(sorted(total.items()))


def assess(
    workloads: Sequence[Workload],
    reports: Sequence[EndReport],
    *,
    main: str,
    end_to_end: bool,
    smoothed_us: Mapping[str, Counts],
) -> Quality:
    """Return what users feel, from the reports of both hosts.

    `main`: direction of the main flows. `end_to_end`: whether TCP connections join the hosts themselves; false where
    the base station splits them. `smoothed_us`: by flow, the smoothed round-trip times of the records.
    """
    mains = [flow for work in workloads if work.direction == main for flow in work.ports().values()]
    one_way: dict[str, Counts] = {}
    round_trip: dict[str, Counts] = {}
    for work in workloads:
        for flow in work.ports().values():
            results = [report.result for report in reports if report.flow == flow]
            if not end_to_end:
                results = [result for result in results if not isinstance(result, TcpSent | TcpReceived)]
            one_way[flow] = joined(result.delays for result in results if isinstance(result, Received))
            round_trip[flow] = joined(result.round_trips for result in results if not isinstance(result, Received))
    smoothed = {flow: smoothed_us.get(flow, ()) for flow in one_way}

    def together(parts: Mapping[str, Counts]) -> Percentiles | None:
        return percentiles(joined(parts[flow] for flow in mains))

    return Quality(
        one_way=together(one_way),
        round_trip=together(round_trip),
        smoothed=together(smoothed),
        flows={
            flow: FlowQuality(percentiles(one_way[flow]), percentiles(round_trip[flow]), percentiles(smoothed[flow]))
            for flow in one_way
        },
    )
