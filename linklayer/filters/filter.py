"""What every packet filter offers to the link that it stands in front of.

Order of calls, all sans-IO: `handle_to_link` per packet of the IP side that is to cross, `handle_from_link` per packet
that has crossed, `handle_given_up` per packet the link has lost and knows it; after each `poll_to_link` and
`poll_from_link` until None; `handle_deadline` at `next_deadline()`; `poll_guess` whenever one likes.

Rules for every filter:
- Soft state: it may be thrown away at any time, which costs time and never data.
- Nothing it cannot read is held, changed or counted: what `Access.view` has no segment for passes as it is.
- Memory is bounded, whatever comes: flows and octets per flow have limits, and the oldest goes.
- No packet makes it raise.
"""

from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple, Protocol

from tcpip.segment import Flow

#: ST is the mobile end, BAS the base station (COMPARISON's figure 2)
End = Literal["mobile", "base"]
#: why a segment did not come, or why it seems so: damaged on the air; dropped by a full queue; it was only late
Cause = Literal["corruption", "congestion", "late"]


class Guess(NamedTuple):
    """What a filter believes of a segment that seems to be missing; ground truth is the medium's to tell."""

    at: int
    #: the direction of the data
    flow: Flow
    #: 32-bit number of its first octet
    seq: int
    cause: Cause
    #: who believes it; empty: the link scheme
    by: str = ""


@dataclass(slots=True)
class FilterCounters:
    """What one filter has done so far."""

    #: packets put on the link again, and their octets
    retransmissions: int = 0
    retransmitted_bytes: int = 0
    #: packets held back from the IP side
    suppressed_dupacks: int = 0
    #: ACKs marked with ELN
    eln_marks: int = 0

    def __add__(self, other: "FilterCounters") -> "FilterCounters":
        """Return what two filters have done together."""
        return FilterCounters(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


class Filter(Protocol):
    """Sees all packets of one end, both ways. A packet goes with its channel (linklayer/classify.py)."""

    counters: FilterCounters

    def handle_to_link(self, packet: Any, channel: int, now: int) -> None:
        """Take a packet of the IP side."""

    def handle_from_link(self, packet: Any, channel: int, now: int) -> None:
        """Take a packet that has crossed the link."""

    def handle_given_up(self, packet: Any, now: int) -> None:
        """Learn that a packet this filter had passed on is lost for good."""

    def poll_to_link(self) -> tuple[Any, int] | None:
        """Return the next packet for the link, retransmissions first, or None."""

    def poll_from_link(self) -> tuple[Any, int] | None:
        """Return the next packet for the IP side, or None."""

    def poll_guess(self) -> Guess | None:
        """Return the next guess, oldest first, or None."""

    def next_deadline(self) -> int | None:
        """When `handle_deadline` is due, or None."""

    def handle_deadline(self, now: int) -> None:
        """Expire what is due; a no-op when early."""
