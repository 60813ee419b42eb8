"""The interface of every packet filter to the link that it stands in front of, and its declaration.

Order of calls, all sans-IO: `handle_to_link` per packet of the IP side that is to cross, `handle_from_link` per packet
that has crossed, `handle_given_up` per packet that the link reports as lost; after each of them `poll_to_link` and
`poll_from_link` until None; `handle_deadline` at `next_deadline()`; `poll_guess` at any time, until None.

Rules for every filter:
- Soft state: the state may be thrown away at any time. That costs time and never data.
- A packet without a view (`Access.view`) passes as it is: it is not held, changed or counted.
- Memory is bounded: flows and octets per flow have limits, and the oldest go.
- No packet makes a filter raise.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from mypy_extensions import mypyc_attr

from common.options import NoOptions
from tcpip.segment import Flow

if TYPE_CHECKING:
    from linklayer.link import LinkContext

#: ST is the mobile end, BAS the base station (COMPARISON's figure 2)
End = Literal["mobile", "base"]
ENDS: Final[tuple[End, ...]] = ("mobile", "base")
#: why a segment is missing: damaged on the air; dropped by a full queue; not missing, only late
Cause = Literal["corruption", "congestion", "late"]
#: guesses that wait to be polled; the oldest go
MAX_GUESSES: Final = 4096


class Guess(NamedTuple):
    """A filter's belief why a segment is missing; the medium knows the truth."""

    at: int
    #: the direction of the data
    flow: Flow
    #: 32-bit number of its first octet
    seq: int
    cause: Cause
    #: name of the filter; empty: the link scheme's own
    by: str = ""


class Loss(NamedTuple):
    """The loss of one copy of a segment."""

    at: int
    flow: Flow
    #: 32-bit numbers: [seq, end)
    seq: int
    end: int
    #: corruption or congestion
    cause: Cause


@dataclass(slots=True)
class FilterCounters:
    """Counters of one filter."""

    #: packets put on the link again, and their octets
    retransmissions: int = 0
    retransmitted_bytes: int = 0
    #: packets held back from the IP side
    suppressed_dupacks: int = 0
    #: ACKs marked with ELN
    eln_marks: int = 0

    def __add__(self, other: "FilterCounters") -> "FilterCounters":
        """Return the counters of two filters together."""
        return FilterCounters(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@mypyc_attr(allow_interpreted_subclasses=True)
class Filter:
    """Sees all packets of one end, both ways. A packet goes with its channel (linklayer/classify.py).

    This class lets every packet pass. A filter overrides the methods in which it does more.
    """

    def __init__(self) -> None:
        #: of its plugin, where a scenario has made it
        self.name = ""
        self.counters = FilterCounters()
        self._to_link: deque[tuple[Any, int]] = deque()
        self._from_link: deque[tuple[Any, int]] = deque()
        self._guesses: deque[Guess] = deque(maxlen=MAX_GUESSES)

    def handle_to_link(self, packet: Any, channel: int, now: int) -> None:
        """Take a packet of the IP side."""
        self._to_link.append((packet, channel))

    def handle_from_link(self, packet: Any, channel: int, now: int) -> None:
        """Take a packet that has crossed the link."""
        self._from_link.append((packet, channel))

    def handle_given_up(self, packet: Any, now: int) -> None:
        """Learn that the link has lost for good a packet which this filter had passed on."""

    def poll_to_link(self) -> tuple[Any, int] | None:
        """Return the next packet for the link, retransmissions first, or None."""
        return self._to_link.popleft() if self._to_link else None

    def poll_from_link(self) -> tuple[Any, int] | None:
        """Return the next packet for the IP side, or None."""
        return self._from_link.popleft() if self._from_link else None

    def poll_guess(self) -> Guess | None:
        """Return the next guess, oldest first, or None."""
        return self._guesses.popleft() if self._guesses else None

    def next_deadline(self) -> int | None:
        """When `handle_deadline` is due, or None."""
        return None

    def handle_deadline(self, now: int) -> None:
        """Expire what is due; a no-op when early."""


@dataclass(frozen=True, kw_only=True)
class FilterPlugin:
    """A packet filter as schemes and scenarios know it. `link.filters` of a scenario adds it by its name."""

    name: str
    #: for the table in docs/filters.md
    summary: str
    #: makes the filter of its options and the end that it stands at
    make: Callable[[Any, "LinkContext"], Filter]
    #: the ends of the link that have one
    ends: tuple[End, ...]
    #: the filter with the greater position stands nearer to the link; of equals, the scheme's stand nearer to IP
    position: int = 0
    #: the key of a scenario's `link` that has the options, and their dataclass; filters may share both
    options_key: str = ""
    options: type[Any] = NoOptions
    #: whether it puts packets on the link again: then a lost frame is a lost packet only if no other frame brings the
    #: packet across
    resends: bool = False
    #: whether it guesses why segments are missing
    guesses: bool = False
