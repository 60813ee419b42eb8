"""The records of a run.

Every record carries `time_ns`, nanoseconds since the start of its run (`epoch` in the run's manifest is the
wall-clock time of that instant). Fields that are counters count since the start of the run; fields that are rates
(`*_bps`) cover the interval since the previous record of the same source. A value that does not exist yet
(ssthresh before the first loss) is None.

`measurement` names a kind of record in files and databases; the fields in `tags` name the source of a record;
all others but the time are its figures. No two records of a run have the same measurement, tags and time.
"""

from dataclasses import dataclass, fields
from typing import Any, ClassVar, get_args, get_type_hints

from common.plain_json import parse


def path_name(flow: str, path: int) -> str:
    """Return the name under which the records have one path (from 1) of an MPTCP flow: `mptcp/1`."""
    return f"{flow}/{path}"


def is_of_flow(name: str, flow: str) -> bool:
    """Whether `name` is that of a flow in the records, or of one of its paths."""
    whole, _, path = name.rpartition("/")
    return name == flow or (whole == flow and path.isdecimal())


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpRecord:
    """One sender of TCP at one instant, or of QUIC: there `rto_ms` is the PTO, and `retransmits` are lost packets.

    Of MPTCP one path (`path_name`).
    """

    measurement: ClassVar[str] = "tcp"
    tags: ClassVar[tuple[str, ...]] = ("host", "flow")

    time_ns: int
    host: str
    flow: str
    cwnd_bytes: int
    ssthresh_bytes: int | None
    srtt_ms: float | None
    rto_ms: float | None
    bytes_acked: int
    retransmits: int
    timeouts: int
    #: sent, and neither acknowledged nor held for lost, headers included; None where the transport does not tell
    in_flight_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowRecord:
    """The payload bytes that one application flow has received at one instant."""

    measurement: ClassVar[str] = "flow"
    tags: ClassVar[tuple[str, ...]] = ("host", "flow")

    time_ns: int
    host: str
    flow: str
    bytes_received: int
    goodput_bps: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRecord:
    """One direction of the link, as counted by its sending station."""

    measurement: ClassVar[str] = "link"
    tags: ClassVar[tuple[str, ...]] = ("link",)

    time_ns: int
    link: str
    #: the link scheme in use
    scheme: str
    #: whether packets can cross: a session with the peer, for schemes with sessions
    established: bool
    #: all bytes sent on the air
    throughput_bps: float
    #: bytes of packets that the far side acknowledged; without ARQ, of packets sent and not known to be lost
    goodput_bps: float
    #: packets of the IP layer sent for the first time
    packets: int
    frames: int
    retransmissions: int
    fec_frames: int
    #: frames that the far side rebuilt from redundancy; None without its counts, as for a station on its own
    fec_repairs: int | None
    #: packets lost for good: by links with acknowledgements those that the far side has missed, without its counts
    #: those given up; under other schemes those whose frames the medium has all lost (None without the far side, and
    #: on the air where packets repeat)
    residual_losses: int | None
    #: ACKs marked with ELN; 0 by default, like all counters of few schemes
    eln_marks: int = 0
    #: bytes waiting in the IP queue
    queue_bytes: int
    #: packets that the IP queue or the MAC buffer refused
    congestion_losses: int
    #: frames that the medium damaged or erased (exact where the medium is modelled); None as above
    corruption_losses: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefRecord:
    """What a link believes of the losses in one direction, and does about them; only of schemes that have beliefs.

    Counters count since the sending station began to use the scheme.
    """

    measurement: ClassVar[str] = "belief"
    tags: ClassVar[tuple[str, ...]] = ("link",)

    time_ns: int
    link: str
    #: share of frames that are lost, and the bounds between which it is believed to be
    loss: float
    loss_low: float
    loss_high: float
    #: correlation of the losses of two frames that follow each other: 0 where losses are independent
    burst_correlation: float
    #: rounds that a new packet has
    rounds_planned: int
    #: how long a packet may be under way, from its first frame on; None: not known yet
    budget_ms: float | None
    #: packets sent for the first time, and the rounds that they have begun
    packets: int
    rounds: int
    #: frames with packets or combinations of them
    frames: int
    #: packets whose fate the sender knows: delivered or missed
    settled: int
    delivered: int
    #: those of the delivered that came within the budget, to within the time of a frame
    in_time: int
    #: packets that were given up
    missed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PhyRecord:
    """The physical layer of one receiver, averaged over the interval since its previous record."""

    measurement: ClassVar[str] = "phy"
    tags: ClassVar[tuple[str, ...]] = ("link",)

    time_ns: int
    link: str
    snr_db: float | None
    evm_db: float | None
    cfo_hz: float | None
    per: float | None
    #: modulation and code of the newest received frame, as in "qpsk", "qpsk golay2412" or "qam16-3/4"
    mode: str | None = None
    #: mean power of the frames, relative to full scale
    rssi_dbfs: float | None = None
    #: the receiver's gain now
    rx_gain_db: float | None = None
    #: gaps in the received samples since the start
    overflows: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRecord:
    """The channel accesses of the station that sends on `link`, where both directions share a carrier."""

    measurement: ClassVar[str] = "access"
    tags: ClassVar[tuple[str, ...]] = ("link",)

    time_ns: int
    link: str
    #: channel accesses; each sends one frame or more
    bursts: int
    #: those that had to wait for the other station
    deferrals: int
    #: idle carrier that they waited
    backoff_ms: float
    #: time on the air
    airtime_ms: float
    #: bursts that met another one, as far as the station hears it: that of a collision's two which ends first
    collisions_heard: int
    #: bursts that met one of the other station, by the times of both; None where their clocks differ
    collisions: int | None = None
    #: most that received samples came late over the interval since the previous record
    lag_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StationRecord:
    """Processor time and memory of one station's process, since its previous record, and its late events."""

    measurement: ClassVar[str] = "station"
    tags: ClassVar[tuple[str, ...]] = ("station",)

    time_ns: int
    #: "st" or "bas"
    station: str
    #: processor time of all its threads, in percent of one core
    processor_percent: float
    #: resident memory; None in virtual time, where it is not the same in every run
    memory_bytes: int | None
    #: events later than the scenario's bound since the run's time 0; None in records of versions before
    late_events: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlRecord:
    """A change by a live control."""

    measurement: ClassVar[str] = "control"
    tags: ClassVar[tuple[str, ...]] = ("name",)

    time_ns: int
    #: name of the control, as in snr_db
    name: str
    #: new value, as JSON
    value: str

    def decoded(self) -> Any:
        """Return the new value; text that is no JSON as it is."""
        try:
            return parse(self.value)
        except ValueError:
            return self.value


Record = TcpRecord | FlowRecord | LinkRecord | BeliefRecord | PhyRecord | AccessRecord | StationRecord | ControlRecord
#: a run folder has a file for each type with records
RECORD_TYPES: tuple[type[Record], ...] = (
    TcpRecord,
    FlowRecord,
    LinkRecord,
    BeliefRecord,
    PhyRecord,
    AccessRecord,
    StationRecord,
    ControlRecord,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One run, written at its time 0 and again when it ends.

    Only databases have it, for programs such as Grafana; a run's folder has the same data in other files.
    """

    measurement: ClassVar[str] = "runs"
    tags: ClassVar[tuple[str, ...]] = ()

    time_ns: int
    scheme: str
    tcp: str
    seed: int
    #: Unix time (ms) of its begin and end, as a time range for Grafana; the end of a live run is "now"
    begins: str
    ends: str
    #: as in its summary; None before its end
    goodput_bps: float | None
    duration_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignRecord:
    """One campaign, written at its time 0 and again as its runs end.

    Only databases have the records of campaigns, as they have `RunRecord`: those of one campaign, in all its sessions,
    have one value of the tag `campaign` and one time 0.
    """

    measurement: ClassVar[str] = "campaigns"
    tags: ClassVar[tuple[str, ...]] = ()

    time_ns: int
    name: str
    #: SHA-256 of its plan
    plan: str
    #: "running", "complete" or "interrupted"; of a command that was killed "running"
    state: str
    points: int
    #: runs planned so far, ended ones included; a stopping rule may ask for more
    planned: int
    ended: int
    failed: int
    #: Unix time (ms) of the newest end of a run that was seen; None: none since there are these records
    newest_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignPointRecord:
    """A metric at one point of a campaign, of the runs that have ended at `time_ns`; the newest record counts.

    Figures that the runs do not have are None. Infinite ones are in words alone: databases have no infinity.
    """

    measurement: ClassVar[str] = "campaign_points"
    tags: ClassVar[tuple[str, ...]] = ("point", "metric")

    time_ns: int
    #: name of the point, which begins with its number in the plan
    point: str
    metric: str
    #: its settings
    label: str
    #: runs that count and have the metric
    n: int
    #: with the ends of the 95 % intervals
    median: float | None
    median_low: float | None
    median_high: float | None
    mean: float | None
    mean_low: float | None
    mean_high: float | None
    #: the same in words, as in the campaign's report: "never", or the reason why there is no interval; with marks
    median_text: str
    median_interval: str
    mean_text: str
    mean_interval: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignRunRecord:
    """A metric of one run of a campaign that has ended; `time_ns` is its number in the order of replications."""

    measurement: ClassVar[str] = "campaign_runs"
    tags: ClassVar[tuple[str, ...]] = ("point", "metric")

    time_ns: int
    point: str
    metric: str
    seed: int
    #: how far the run's numbers can be trusted: "whole", "cut", "late", …
    kind: str
    #: None: the run does not count, or does not have the metric
    value: float | None
    #: the same in words: "never" if it is infinite, and marks; the kind of a run that does not count
    text: str


DatabaseRecord = Record | RunRecord | CampaignRecord | CampaignPointRecord | CampaignRunRecord
DATABASE_TYPES: tuple[type[DatabaseRecord], ...] = (
    *RECORD_TYPES,
    RunRecord,
    CampaignRecord,
    CampaignPointRecord,
    CampaignRunRecord,
)


def field_types(kind: type[Any]) -> dict[str, tuple[type[Any], bool]]:
    """Return the type of each field (int, float, bool or str), and whether it may be None."""
    hints = get_type_hints(kind)
    types = {field.name: get_args(hints[field.name]) or (hints[field.name],) for field in fields(kind)}
    return {name: (some[0], type(None) in some) for name, some in types.items()}
