"""The counters of a station, in real time and in virtual time, and its reports of them while a run goes on."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Protocol

from linklayer.link import LinkCounters


class Hop(Protocol):
    """The fate of a station's own transmissions (`channel/hop.py`)."""

    frames: int
    bytes: int
    erased: int
    damaged: int


class Queue(Protocol):
    """Packets that wait (`linklayer/queues/`)."""

    @property
    def nbytes(self) -> int:
        """Their bytes."""


@dataclass(slots=True, kw_only=True)
class StationCounts(LinkCounters):
    """The counts of one station since its start: sent in its own direction, heard and repaired in the other.

    The counters of its link, and those of its radio and its queues.
    """

    #: all that it sent, acknowledgements included
    frames: int = 0
    frame_bytes: int = 0
    #: waiting in its IP queues now
    queue_bytes: int = 0
    #: packets that an IP queue or the MAC buffer refused
    congestion_losses: int = 0
    #: its own frames that the modelled medium took
    corruption_losses: int = 0
    #: the far station's frames that its radio missed or heard damaged
    unheard: int = 0
    #: of both, packets lost for good since the scheme repaired nothing
    unrepaired_taken: int = 0
    unrepaired_unheard: int = 0
    #: received octets that were no frame, or a frame of another session
    bad_frames: int = 0
    #: packets that the TAP did not take
    port_refusals: int = 0
    #: packets that a packet filter sent again although they were across
    repeats: int = 0

    @classmethod
    def of(cls, counters: LinkCounters, hop: Hop, queues: Iterable[Queue], **others: int) -> "StationCounts":
        """Join the counts of a link, a hop and queues; `others` are those that only the station has."""
        return cls(
            **{field.name: getattr(counters, field.name) for field in fields(LinkCounters)},
            frames=hop.frames,
            frame_bytes=hop.bytes,
            queue_bytes=sum(queue.nbytes for queue in queues),
            corruption_losses=hop.erased + hop.damaged,
            **others,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StationReport:
    """The report of a station at every interval: rates since the report before, counts since its start."""

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
    """The last report of a station: its counts, and how well it kept the clock."""

    counts: StationCounts
    events: int
    late_events: int = 0
    #: how late the latest was, ns
    max_ns: int = 0

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> "StationFinal":
        """Return the last report that `dataclasses.asdict` made `body` of."""
        return cls(**{**body, "counts": StationCounts(**body["counts"])})
