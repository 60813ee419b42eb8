"""What a station counts: the same in real time and in virtual time, and what it says of it while a run goes on."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from linklayer.link import LinkCounters


class Hop(Protocol):
    """What a station's own transmissions have met (`channel/hop.py`)."""

    frames: int
    bytes: int
    erased: int
    damaged: int


class Queue(Protocol):
    """Packets that wait (`linklayer/queues/`)."""

    @property
    def nbytes(self) -> int:
        """How many bytes they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StationCounts:
    """What one station has sent on its own direction, and heard and repaired on the other, since its start."""

    #: all that it sent, acknowledgements included
    frames: int = 0
    frame_bytes: int = 0
    #: of the IP layer, sent for the first time
    packets: int = 0
    retransmissions: int = 0
    fec_frames: int = 0
    #: packets that its link gave up
    residual_losses: int = 0
    #: waiting in its IP queues now
    queue_bytes: int = 0
    #: packets that an IP queue or the MAC buffer refused
    congestion_losses: int = 0
    #: of its own frames, what the modelled medium took
    corruption_losses: int = 0
    #: of the far station's frames, what its radio missed or heard damaged
    unheard: int = 0
    #: of both, packets lost for good since the scheme repaired nothing
    unrepaired_taken: int = 0
    unrepaired_unheard: int = 0
    #: packets that it rebuilt from redundancy
    fec_repairs: int = 0
    #: packets of the far station that it handed to IP
    delivered: int = 0
    delivered_bytes: int = 0
    duplicates: int = 0
    #: by its packet filters: ACKs marked with ELN, and dupacks that TCP was spared
    eln_marks: int = 0
    suppressed_dupacks: int = 0
    #: frames that were none, or of another session
    bad_frames: int = 0
    sessions: int = 0
    #: packets that the TAP did not take
    port_refusals: int = 0
    #: packets that a packet filter sent again although they were across
    repeats: int = 0

    @classmethod
    def of(cls, counters: LinkCounters, hop: Hop, queues: Iterable[Queue], **others: int) -> "StationCounts":
        """Join what a link, a hop and queues have counted; `others` is what only the station knows."""
        return cls(
            frames=hop.frames,
            frame_bytes=hop.bytes,
            packets=counters.packets,
            retransmissions=counters.retransmissions,
            fec_frames=counters.fec_frames,
            residual_losses=counters.residual_losses,
            queue_bytes=sum(queue.nbytes for queue in queues),
            corruption_losses=hop.erased + hop.damaged,
            fec_repairs=counters.fec_repairs,
            delivered=counters.delivered,
            delivered_bytes=counters.delivered_bytes,
            duplicates=counters.duplicates,
            eln_marks=counters.eln_marks,
            suppressed_dupacks=counters.suppressed_dupacks,
            sessions=counters.sessions,
            **others,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StationReport:
    """What a station says at every interval: rates since the report before, counts since its start."""

    #: after the run's time 0
    time_ns: int
    scheme: str
    established: bool
    #: all bytes sent on the air
    throughput_bps: float
    #: packet bytes the far side acknowledged; without ARQ, sent
    goodput_bps: float
    counts: StationCounts

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> "StationReport":
        """Return the report that `dataclasses.asdict` made `body` of."""
        return cls(**{**body, "counts": StationCounts(**body["counts"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class StationFinal:
    """A station's last word: its counts, and how well it kept the clock."""

    counts: StationCounts
    events: int
    late_events: int = 0
    #: how late the latest was, ns
    max_ns: int = 0

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> "StationFinal":
        """Return the last word that `dataclasses.asdict` made `body` of."""
        return cls(**{**body, "counts": StationCounts(**body["counts"])})
