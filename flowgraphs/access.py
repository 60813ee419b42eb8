"""One carrier for all stations: the options of listen before talk.

Read first: docs/one-carrier.md; flowgraphs/native/access/contention.hpp, the machine.
"""

from dataclasses import dataclass, fields
from typing import Annotated

from annotated_types import Ge, Gt, Le


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessOptions:
    """Listen before talk; times are those of the device's clock."""

    #: idle carrier before a backoff, longer than the gaps within a burst
    defer_us: Annotated[float, Ge(0), Le(100_000)] = 100.0
    #: slots of a backoff: longer than `lead_us`, else stations with different draws collide
    slot_us: Annotated[float, Gt(0), Le(100_000)] = 900.0
    #: from a decision to the first sample on the air: what host and device need to hear the carrier and to send
    lead_us: Annotated[float, Gt(0), Le(100_000)] = 800.0
    #: the receiver hears nothing for so long after an own burst
    turnaround_us: Annotated[float, Ge(0), Le(10_000)] = 20.0
    #: longest time on the air at once
    occupancy_ms: Annotated[float, Gt(0), Le(1000)] = 13.0
    #: slots that each backoff is drawn from; 1 serves two stations
    window: Annotated[int, Ge(1), Le(1024)] = 4
    #: slots that the last sender leaves to the others before
    yield_slots: Annotated[int, Ge(0), Le(1024)] = 4
    #: power above the noise from which the carrier is busy
    threshold_db: Annotated[float, Ge(1), Le(60)] = 6.0
    #: whether a detected frame keeps the carrier busy until its end, with PHYs that tell
    preamble: bool = True

    def __post_init__(self) -> None:
        if self.slot_us <= self.lead_us:
            raise ValueError(f"slot_us is {self.slot_us:g}: must be more than lead_us, {self.lead_us:g}")

    @property
    def lot_s(self) -> float:
        """Samples must come from the device so often, so that a decision is not late."""
        return self.lead_us / 4e6


@dataclass(frozen=True, slots=True)
class AccessCounts:
    """Counters of a station's channel accesses since its start."""

    bursts: int = 0
    #: bursts that had to wait for another station
    deferrals: int = 0
    #: idle carrier that bursts waited
    backoff_s: float = 0.0
    airtime_s: float = 0.0
    #: collisions as far as one station hears them (contention.hpp)
    collisions_heard: int = 0

    def __sub__(self, earlier: "AccessCounts") -> "AccessCounts":
        return AccessCounts(*(getattr(self, f.name) - getattr(earlier, f.name) for f in fields(self)))
