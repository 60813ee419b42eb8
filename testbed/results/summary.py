"""The results of a run: flows, links, and one summary.

`Summary` is what `--json` prints and `summary.json` keeps. Rates are bit/s of: application payload at the receiver
(`goodput_bps`), all frame bytes sent on the link (`throughput_bps`), the medium (`capacity_bps`), each over
`duration_s` and in the direction of the scenario's first workload.

docs/runs.md defines every field.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

from common.sides import SIDES, Side, other
from hosts.engine.delays import Counts
from hosts.engine.results import EndReport, ProgramReceived, ProgramSent, Received, Sent, Subflow, TcpSent, Told
from hosts.engine.split_pairs import SplitCounters
from hosts.workloads import Workload
from linklayer.schemes import SCHEMES
from linklayer.station_counts import StationCounts, StationFinal, StationReport
from telemetry.parquet import SECOND
from telemetry.records import AccessRecord, BeliefRecord, LinkRecord
from testbed.results.end_reports import EndReports
from testbed.results.ground_truth import Confusion
from testbed.results.quality import Quality, assess, main_workloads
from testbed.scenario.run_plan import Plan


@dataclass(frozen=True, slots=True)
class PathSummary:
    """One path of an MPTCP flow, by the sender's counts of its subflow."""

    #: 1: the link, 2: the second link
    path: int
    #: the link scheme at the run's start
    scheme: str
    #: payload acknowledged on it; the scheduler may send octets on both paths
    bytes: int
    #: of the octets that all paths have carried; None without any
    share: float | None
    bytes_sent: int
    retransmits: int
    timeouts: int


@dataclass(frozen=True, slots=True)
class FlowSummary:
    """One flow: a TCP connection, a series of short ones, or a UDP flow."""

    flow: str
    kind: str
    direction: Side
    #: payload bytes the receiver had when the flow's time was up or the transfer complete
    bytes: int
    #: from the first SYN to the end of the transfer, or the flow's set duration; short ones: without the gaps
    duration_s: float
    #: when that was, after the run's start
    start_s: float
    end_s: float
    goodput_bps: float
    #: whether the transfer came to its end (a flow with a duration: whether it ran that long)
    finished: bool
    #: whether the receiver got the octets that were sent (SHA-256, and byte by byte; in virtual time, their number);
    #: None for UDP, whose packets may be lost
    intact: bool | None
    retransmits: int = 0
    timeouts: int = 0
    #: payload the sender's TCP has sent, retransmissions included; 0 where its kernel does not tell
    bytes_sent: int = 0
    #: short transfers: each one's time
    transfer_s: tuple[float, ...] = ()
    #: of a program of others: what it tells
    told: Told | None = None
    #: of our own TCP: what its window growth was in place of itself, as the peer had not agreed to its needs; of MPTCP:
    #: that a connection was plain TCP
    fallback: str | None = None
    #: of MPTCP
    paths: tuple[PathSummary, ...] = ()


@dataclass(frozen=True, slots=True)
class LinkSummary:
    """One direction of the link, whole run; counters as in telemetry's LinkRecord."""

    throughput_bps: float
    frames: int
    packets: int
    retransmissions: int
    fec_frames: int
    fec_repairs: int
    residual_losses: int
    congestion_losses: int
    corruption_losses: int
    #: share of frames that the medium took
    per: float
    #: share of packets that never left the link at the far side
    residual_per: float
    #: by packet filters of the station that sends here: ACKs marked with ELN, and dupacks that TCP was spared
    eln_marks: int = 0
    suppressed_dupacks: int = 0


@dataclass(frozen=True, slots=True)
class AccessSummary:
    """The channel accesses of a station on a shared carrier, whole run; counters as in telemetry's AccessRecord."""

    bursts: int
    deferrals: int
    backoff_ms: float
    #: time on the air over the run's
    airtime_share: float
    collisions_heard: int
    #: None where the stations' clocks differ
    collisions: int | None


@dataclass(frozen=True, slots=True)
class Summary:
    """The result of one run."""

    run: str
    scenario: str
    tier: str
    scheme: str
    tcp: str
    seed: int
    duration_s: float
    goodput_bps: float
    throughput_bps: float
    capacity_bps: int
    #: of TCP, all flows
    retransmissions: int
    timeouts: int
    #: events later than the scenario's bound, of all events, and the worst
    late_events: int
    events: int
    max_late_ms: float
    #: whether the clock was kept: late events, and the time of lost samples, within the scenario's fraction
    on_time: bool
    #: changes that a person made while the run went on; above 0 its scenario does not tell all
    changes: int
    finished: bool
    intact: bool
    #: time of received samples that a radio has lost, of the one that has lost more
    lost_s: float = 0.0
    #: whether octets that TCP has acknowledged have reached the receiver's host; false for split connections
    end_to_end_acks: bool = True
    flows: tuple[FlowSummary, ...] = ()
    link: Mapping[str, LinkSummary] = field(default_factory=dict)
    #: counters of the base station that splits connections
    split: SplitCounters | None = None
    #: packet filters' guesses of why segments were missing beside the true causes (ground_truth.py); None: unknown
    confusion: Confusion | None = field(default_factory=dict)
    folder: str | None = None
    #: by the side that a station sends on, where both share a carrier
    access: Mapping[str, AccessSummary] = field(default_factory=dict)
    #: delays under load
    quality: Quality = field(default_factory=Quality)
    #: as `link`, of the second link
    second_link: Mapping[str, LinkSummary] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """Return the fields as plain data.

        `access` only where stations share a carrier, `second_link` only where there is one, `told` only of programs,
        `paths` only of MPTCP, `fallback` only where there was one.
        """
        values = asdict(self)
        for flow in values["flows"]:
            for rare in ("told", "fallback", "paths"):
                if flow[rare] in (None, ()):
                    del flow[rare]
        for part in ("access", "second_link"):
            if not values[part]:
                del values[part]
        return values

    @property
    def lateness(self) -> str:
        """The late events in words."""
        lost = f", samples of {self.lost_s:.2f} s were lost" if self.lost_s else ""
        return f"{self.late_events} of {self.events} events were late (worst {self.max_late_ms:.0f} ms{lost})"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkResult:
    """The results of one link's stations; the mappings as in `summarize`."""

    plan: Plan
    finals: Mapping[Side, StationFinal]
    sent_bits: Mapping[Side, Sequence[tuple[float, float]]]
    access: Mapping[str, AccessSummary]


def summarize(
    plan: Plan,
    *,
    run: str,
    folder: str | None,
    reports: EndReports,
    finals: Mapping[Side, StationFinal],
    sent_bits: Mapping[Side, Sequence[tuple[float, float]]],
    until_s: float,
    changes: int,
    split: SplitCounters | None = None,
    confusion: Confusion | None = MappingProxyType({}),
    access: Mapping[str, AccessSummary] = MappingProxyType({}),
    smoothed_us: Mapping[str, Counts] = MappingProxyType({}),
    second: LinkResult | None = None,
) -> Summary:
    """Join the reports of a run that went on until `until_s`.

    `finals`: the stations' last reports, by the side they transmit on. `sent_bits`: the bits they had sent, over time
    (s). `split`: counters of the splitting base station, or null. `confusion`: per filter, how its guesses compare with
    the true cause of each loss. `access`: the channel accesses by side, on a shared carrier. `smoothed_us`: by flow,
    the smoothed round-trip times of a real-time run's records. `second`: the second link, whose rate and frames are
    counted with the first's, and whose late events, too.
    """
    workloads = plan.workloads
    by_flow: dict[str, list[EndReport]] = {flow: [] for work in workloads for flow in work.ports().values()}
    for report in reports:
        by_flow[report.flow].append(report)
    schemes = [each.scheme.name for each in (plan, plan.second) if each is not None]
    flows = tuple(
        summarize_flow(work, flow, by_flow[flow], until_s, schemes)
        for work in workloads
        for flow in work.ports().values()
    )
    main = plan.main
    beside = {flow for work in workloads if work.beside for flow in work.ports().values()}
    main_flows = {flow for work in main_workloads(workloads, main) for flow in work.ports().values()}
    mains = [flow for flow in flows if flow.flow in main_flows]
    start_s, end_s = min(flow.start_s for flow in mains), max(flow.end_s for flow in mains)
    duration_s = end_s - start_s
    further = {} if second is None else second.finals
    everything = [*finals.values(), *further.values()]
    events = sum(final.lateness.events for final in everything)
    late = sum(final.lateness.late_events for final in everything)
    lost_s = max(final.lateness.lost_ns for final in everything) / 1e9
    sent = rise(sent_bits[main], start_s, end_s)
    capacity_bps = plan.stations[main].hop.rate_bps
    if second is not None:
        sent += rise(second.sent_bits[main], start_s, end_s)
        capacity_bps += second.plan.stations[main].hop.rate_bps
    return Summary(
        run=run,
        scenario=plan.name,
        tier=plan.tier.name,
        scheme=plan.scheme.name,
        tcp=plan.tcps,
        seed=plan.seed,
        duration_s=duration_s,
        goodput_bps=sum(flow.bytes for flow in mains) * 8 / duration_s if duration_s else 0.0,
        throughput_bps=sent / duration_s if duration_s else 0.0,
        capacity_bps=capacity_bps,
        retransmissions=sum(flow.retransmits for flow in flows),
        timeouts=sum(flow.timeouts for flow in flows),
        late_events=late,
        events=events,
        max_late_ms=max(final.lateness.max_ns for final in everything) / 1e6,
        on_time=late <= plan.late_fraction * events and lost_s <= plan.late_fraction * until_s,
        lost_s=lost_s,
        changes=changes,
        finished=all(flow.finished for flow in flows),
        intact=all(flow.intact is not False for flow in flows),
        end_to_end_acks=plan.split is None,
        flows=flows,
        link=_both_sides(plan, finals, until_s),
        second_link={} if second is None else _both_sides(second.plan, further, until_s),
        split=split,
        confusion=None if confusion is None else {name: confusion[name] for name in sorted(confusion)},
        folder=folder,
        access=dict(access),
        quality=assess(
            workloads,
            reports,
            main=main,
            end_to_end=plan.split is None,
            smoothed_us=smoothed_us,
            load_ns=(round(start_s * 1e9), round(end_s * 1e9)),
            airtimes_s={
                side: access[side].airtime_share * until_s if side in access else finals[side].airtime_ns / 1e9
                for side in SIDES
            }
            | {f"{SECOND}{side}": final.airtime_ns / 1e9 for side, final in further.items()},
            duration_s=until_s,
            payload_bytes=sum(flow.bytes for flow in flows if flow.flow not in beside),
        ),
    )


def _both_sides(plan: Plan, finals: Mapping[Side, StationFinal], until_s: float) -> dict[str, LinkSummary]:
    blind = plan.scheme.repairs == "blind"
    return {
        side: summarize_link(finals[side].counts, finals[other(side)].counts, until_s, blind=blind) for side in SIDES
    }


def summarize_access(newest: AccessRecord, collisions: int | None, duration_s: float) -> AccessSummary:
    """Return the channel accesses of a run from a station's newest record."""
    return AccessSummary(
        bursts=newest.bursts,
        deferrals=newest.deferrals,
        backoff_ms=newest.backoff_ms,
        airtime_share=newest.airtime_ms / 1e3 / duration_s if duration_s > 0 else 0.0,
        collisions_heard=newest.collisions_heard,
        collisions=collisions,
    )


def summarize_flow(
    work: Workload, flow: str, reports: Sequence[EndReport], until_s: float, schemes: Sequence[str] = ()
) -> FlowSummary:
    """Join the reports of both ends of one flow; one that was cut short counts the octets that arrived by `until_s`.

    `schemes`: of the link of each path.
    """
    ends = [report.result for report in sorted(reports, key=lambda report: report.index)]
    senders = [end for end in ends if isinstance(end, Sent)]
    outcome = work.outcome(senders, [end for end in ends if isinstance(end, Received)], until_s)
    connections = [end for end in senders if isinstance(end, TcpSent)]
    tellers = [end.told for end in ends if isinstance(end, ProgramSent | ProgramReceived)]
    told = next((each for each in tellers if each is not None), None)
    start_s, end_s = outcome.span
    duration_s = end_s - start_s if outcome.duration_s is None else outcome.duration_s
    return FlowSummary(
        flow=flow,
        kind=work.kind,
        direction=work.direction,
        bytes=outcome.nbytes,
        duration_s=duration_s,
        start_s=start_s,
        end_s=end_s,
        goodput_bps=outcome.nbytes * 8 / duration_s if duration_s > 0 else 0.0,
        finished=outcome.finished,
        intact=outcome.intact,
        retransmits=sum(end.retransmits for end in connections) + (0 if told is None else told.retransmissions or 0),
        timeouts=sum(end.timeouts for end in connections),
        bytes_sent=sum(end.bytes_sent for end in connections),
        transfer_s=outcome.transfer_s,
        told=told,
        fallback=next((end.fallback for end in connections if end.fallback is not None), None),
        paths=_paths([each for end in connections for each in end.subflows], schemes),
    )


def _paths(subflows: Sequence[Subflow], schemes: Sequence[str]) -> tuple[PathSummary, ...]:
    """Return the counts of every path, also of one that no subflow took; none without subflows."""
    total = sum(each.bytes_acked for each in subflows)
    found = []
    for path, scheme in enumerate(schemes if subflows else (), 1):
        own = [each for each in subflows if each.path == path]
        nbytes = sum(each.bytes_acked for each in own)
        found.append(
            PathSummary(
                path=path,
                scheme=scheme,
                bytes=nbytes,
                share=nbytes / total if total else None,
                bytes_sent=sum(each.bytes_sent for each in own),
                retransmits=sum(each.retransmits for each in own),
                timeouts=sum(each.timeouts for each in own),
            )
        )
    return tuple(found)


def summarize_link(
    sender: StationCounts, receiver: StationCounts, duration_s: float, *, blind: bool = False
) -> LinkSummary:
    """Join the counts of the two stations of one direction; `blind`: under a scheme that cannot count its losses."""
    frames, packets = sender.frames, sender.packets
    lost = max(0, packets - receiver.delivered) if blind else residual_losses(sender, receiver)
    corrupted = sender.corruption_losses + receiver.unheard
    joined: dict[str, Any] = _shared(sender, LinkSummary) | {
        "fec_repairs": receiver.fec_repairs,
        "residual_losses": lost,
        "corruption_losses": corrupted,
    }
    return LinkSummary(
        throughput_bps=sender.frame_bytes * 8 / duration_s if duration_s > 0 else 0.0,
        per=corrupted / frames if frames else 0.0,
        residual_per=max(0.0, 1 - (receiver.delivered - sender.repeats) / packets) if packets else 0.0,
        **joined,
    )


def link_record(side: str, report: StationReport) -> LinkRecord:
    """Return the record of the direction that a station sends on, as far as that station alone knows it."""
    known: dict[str, Any] = _shared(report, LinkRecord) | _shared(report.counts, LinkRecord)
    # only the far side knows these; a link with acknowledgements knows the packets it gave up
    known |= {"fec_repairs": None, "corruption_losses": None}
    if SCHEMES[report.scheme].repairs != "known":
        known["residual_losses"] = None
    return LinkRecord(link=side, **known)


def belief_record(side: str, report: StationReport) -> BeliefRecord | None:
    """Return the record of what the link believes of the direction that a station sends on; None: it has no beliefs."""
    beliefs = report.beliefs
    if beliefs is None:
        return None
    return BeliefRecord(time_ns=report.time_ns, link=side, **asdict(beliefs))


def _shared(source: StationCounts | StationReport, kind: type[LinkSummary | LinkRecord]) -> dict[str, Any]:
    """Return the fields of `source` that `kind` has, too."""
    names = {field.name for field in fields(kind)}
    return {field.name: getattr(source, field.name) for field in fields(source) if field.name in names}


def joined_record(side: str, report: StationReport, far: StationCounts) -> LinkRecord:
    """Return the record of one direction, as far as its sending station and the far one know it."""
    # frames that the air has lost are not told apart by their packets
    unknown = SCHEMES[report.scheme].repairs == "blind" and far.unheard
    return replace(
        link_record(side, report),
        fec_repairs=far.fec_repairs,
        residual_losses=None if unknown else residual_losses(report.counts, far),
        corruption_losses=report.counts.corruption_losses + far.unheard,
    )


def residual_losses(sender: StationCounts, receiver: StationCounts) -> int:
    """Return the packets of one direction lost for good, measured between its two stations.

    A link with acknowledgements counts them where they are missed: its sender gives up packets of which only the
    acknowledgements are lost, too.
    """
    missed = receiver.abandoned + sender.session_losses
    return missed + sender.unrepaired_taken + receiver.unrepaired_unheard


def rise(points: Sequence[tuple[float, float]], start: float, end: float) -> float:
    """Return how much a counter grew between two times, from its `points` (time, value) in order."""
    return _value_at(points, end) - _value_at(points, start)


def _value_at(points: Sequence[tuple[float, float]], time: float) -> float:
    after = bisect_left(points, time, key=lambda point: point[0])
    if after == 0 or after == len(points):
        return points[min(after, len(points) - 1)][1]
    (t0, v0), (t1, v1) = points[after - 1], points[after]
    return v0 + (v1 - v0) * (time - t0) / (t1 - t0)
