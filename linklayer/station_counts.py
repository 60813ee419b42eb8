"""The counters of a station, and its reports of them while a run goes on: plain data, in real and in virtual time."""

from dataclasses import dataclass

from linklayer.link import Beliefs, LinkCounters


@dataclass(slots=True, kw_only=True)
class StationCounts(LinkCounters):
    """Counters of one station since its start: its link, its radio and its queues.

    A station sends on its own direction, and receives and repairs on the other.
    """

    #: all frames sent, acknowledgements included, and their octets
    frames: int = 0
    frame_bytes: int = 0
    #: octets in the IP queues at present
    queue_bytes: int = 0
    #: packets that an IP queue or the MAC buffer refused
    congestion_losses: int = 0
    #: its own frames that the modelled medium lost
    corruption_losses: int = 0
    #: frames of the far station that its radio missed or received damaged
    unheard: int = 0
    #: part of each of the two, under schemes that count no losses themselves: packets lost for good
    unrepaired_taken: int = 0
    unrepaired_unheard: int = 0
    #: received frames that do not parse, or are of another session
    bad_frames: int = 0
    #: packets that the TAP refused
    port_refusals: int = 0
    #: packets that a packet filter retransmitted although they had crossed
    repeats: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StationReport:
    """A station's periodic report: rates since the previous report, counts since its start."""

    #: after the run's time 0
    time_ns: int
    scheme: str
    established: bool
    #: all bytes sent on the air
    throughput_bps: float
    #: packet bytes that the far side acknowledged; without ARQ, that were sent
    goodput_bps: float
    counts: StationCounts
    #: of the link in use; None: it has none
    beliefs: Beliefs | None = None


@dataclass(slots=True)
class Lateness:
    """Lateness of events against the wall clock."""

    events: int = 0
    #: events later than the scenario's bound
    late_events: int = 0
    #: the largest lateness
    max_ns: int = 0
    #: time of received samples that the radio has lost
    lost_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StationFinal:
    """A station's final report: its counts since its start, and its lateness since the run's time 0."""

    counts: StationCounts
    lateness: Lateness
    #: time on the air of all its frames, at the modelled rate
    airtime_ns: int = 0
