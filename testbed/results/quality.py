"""What users feel of a run: percentiles of the delays of packets under load, and round trips per minute.

Rules kept
- Percentiles are nearest ranks: the smallest delay that at least so many percent of the delays do not exceed. Delays
  count by the whole microsecond (`hosts/engine/delays.py`).
- A delay between two hosts exists only where both have one clock, and a round trip of packets only where both ends of
  the connection are the hosts'. What is not known is None; no estimate stands for it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, get_args

from hosts.engine.delays import Counts, Delays
from hosts.engine.results import EndReport, Received, Sent, TcpReceived, TcpSent
from hosts.workloads import Workload
from hosts.workloads.probe import Probe
from telemetry.records import is_of_flow
from testbed.results.end_reports import EndReports

#: the draft's TMP, and its MAD (4) times its ID (5 s): the last probes count
_TRIMMED_PERCENT: Final = 95
_INTERVALS_NS: Final = 20_000_000_000
_MINUTE_US: Final = 60_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Powers:
    """The power that a radio takes. Assumed: 280, 204 and 178 mA at 4.74 V, values of a 2 Mbit/s WaveLAN card.

    We have no source for these currents that can be checked. They agree with what Feeney and Nilsson (INFOCOM 2001)
    measured, as quoted by T. Kunz (kunz-pc.sce.carleton.ca/talks/Energy_files/slide0041.htm): 0.8 W when idle, and
    above it 1.9 µJ per octet sent (here 1.93 at 2 Mbit/s), 0.42 to 0.50 received (here 0.49).
    """

    transmit_w: float = 1.327
    receive_w: float = 0.967
    idle_w: float = 0.844

    def __str__(self) -> str:
        return f"transmit {self.transmit_w:g} W, receive {self.receive_w:g} W, idle {self.idle_w:g} W"

    def energy_j(self, airtimes_s: Iterable[float], duration_s: float) -> float:
        """Return the energy of two stations that send for these times: each receives the other, and else is idle.

        A station that sends and receives at once takes what both take above idle.
        """
        above_idle_w = self.transmit_w + self.receive_w - 2 * self.idle_w
        return 2 * self.idle_w * duration_s + above_idle_w * sum(airtimes_s)


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
class RoundsPerMinute:
    """Round trips per minute, after draft-ietf-ippm-responsiveness-09; None: not measured.

    The load is the scenario's, and no stability is awaited: see docs/runs.md for this and the other differences.
    """

    #: by TCP probes on connections of their own: section "Aggregating the Measurements", TCP only
    foreign: float | None = None
    #: by the main flows' own round trips, the substitute that the draft names
    loaded: float | None = None
    #: the mean of both
    responsiveness: float | None = None
    #: by UDP probes: no figure of the draft's
    udp: float | None = None


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
    """What users feel of a run. The first three are of the main flows, all packets together, without probes."""

    one_way: Percentiles | None = None
    round_trip: Percentiles | None = None
    smoothed: Percentiles | None = None
    flows: Mapping[str, FlowQuality] = field(default_factory=dict)
    #: of all flows of probes together
    probe_one_way: Percentiles | None = None
    probe_round_trip: Percentiles | None = None
    rpm: RoundsPerMinute = field(default_factory=RoundsPerMinute)
    #: by the side that a station sends on: time on the air over the run's
    airtime_share: Mapping[str, float] = field(default_factory=dict)
    #: of both stations' radios, over the payload bits of all flows but probes; None without a bit
    energy_uj_per_bit: float | None = None


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


def trimmed_mean_us(counts: Iterable[tuple[int, int]]) -> float | None:
    """Return the mean of the smallest 95 % of delays (the draft's TM); None without delays."""
    ordered = sorted(counts)
    kept = left = -(-sum(number for _, number in ordered) * _TRIMMED_PERCENT // 100)
    total = 0
    for us, number in ordered:
        taken = min(number, left)
        total += us * taken
        left -= taken
    return total / kept if kept else None


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
    reports: EndReports,
    *,
    main: str,
    end_to_end: bool,
    smoothed_us: Mapping[str, Counts],
    load_ns: tuple[int, int],
    airtimes_s: Mapping[str, float],
    duration_s: float,
    payload_bytes: int,
) -> Quality:
    """Return what users feel, from the reports of both hosts.

    `main`: direction of the main flows. `end_to_end`: whether TCP connections join the hosts themselves; false where
    the base station splits them. `load_ns`: begin and
    end of the main flows. `smoothed_us`: the smoothed round-trip times of the records, by flow or path.
    `airtimes_s`: by the side that a station sends on, of a run of `duration_s`. `payload_bytes`: delivered.
    """
    mains = [flow for work in main_workloads(workloads, main) for flow in work.ports().values()]
    received = [kind for kind in get_args(Received) if end_to_end or kind is not TcpReceived]
    sent = [kind for kind in get_args(Sent) if end_to_end or kind is not TcpSent]
    one_way: dict[str, Counts] = {}
    round_trip: dict[str, Counts] = {}
    for work in workloads:
        for flow in work.ports().values():
            one_way[flow] = reports.delays(flow, received)
            round_trip[flow] = reports.delays(flow, sent)
    probes = [flow for work in workloads if work.beside for flow in work.ports().values()]
    smoothed = {
        flow: joined(counts for name, counts in smoothed_us.items() if is_of_flow(name, flow)) for flow in one_way
    }

    def together(parts: Mapping[str, Counts], flows: Iterable[str] = mains) -> Percentiles | None:
        return percentiles(joined(parts[flow] for flow in flows))

    loaded = joined(round_trip[flow] for flow in mains) or joined(smoothed[flow] for flow in mains)
    foreign = _foreign_us([report for report in reports if report.flow in probes], *load_ns)
    udp = [work.flow for work in workloads if isinstance(work, Probe)]

    return Quality(
        one_way=together(one_way),
        round_trip=together(round_trip),
        smoothed=together(smoothed),
        flows={
            flow: FlowQuality(percentiles(one_way[flow]), percentiles(round_trip[flow]), percentiles(smoothed[flow]))
            for flow in one_way
        },
        probe_one_way=together(one_way, udp),
        probe_round_trip=together(round_trip, udp),
        rpm=_rounds_per_minute(foreign, loaded, joined(round_trip[flow] for flow in udp)),
        airtime_share={
            side: airtime_s / duration_s if duration_s > 0 else 0.0 for side, airtime_s in airtimes_s.items()
        },
        energy_uj_per_bit=(
            Powers().energy_j(airtimes_s.values(), duration_s) * 1e6 / (8 * payload_bytes) if payload_bytes else None
        ),
    )


def main_workloads(workloads: Sequence[Workload], main: str) -> list[Workload]:
    """Return the workloads whose figures are the run's: of the main direction, without probes if others are there."""
    of_main = [work for work in workloads if work.direction == main]
    return [work for work in of_main if not work.beside] or of_main


def _foreign_us(reports: Sequence[EndReport], load_from_ns: int, load_until_ns: int) -> tuple[Counts, Counts]:
    """Return the times to connect, and those from there to the answer, of the TCP probes at the end of the load."""
    connecting, answering = Delays(), Delays()
    for report in reports:
        end = report.result
        if not isinstance(end, TcpSent) or not end.complete or end.connected_ns is None:
            continue
        if end.started_ns >= load_from_ns and load_until_ns - _INTERVALS_NS < end.finished_ns <= load_until_ns:
            connecting.add(end.connected_ns - end.started_ns)
            answering.add(end.finished_ns - end.connected_ns)
    return connecting.counts(), answering.counts()


def _rounds_per_minute(foreign: tuple[Counts, Counts], loaded: Counts, udp: Counts) -> RoundsPerMinute:
    connect_us, answer_us = (trimmed_mean_us(counts) for counts in foreign)
    of_foreign = None if connect_us is None or answer_us is None else _MINUTE_US / ((connect_us + answer_us) / 2)
    of_loaded = _per_minute(loaded)
    both = None if of_foreign is None or of_loaded is None else (of_foreign + of_loaded) / 2
    return RoundsPerMinute(foreign=of_foreign, loaded=of_loaded, responsiveness=both, udp=_per_minute(udp))


def _per_minute(round_trips: Counts) -> float | None:
    mean_us = trimmed_mean_us(round_trips)
    return _MINUTE_US / mean_us if mean_us else None
