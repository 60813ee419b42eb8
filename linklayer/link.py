"""What every link scheme offers to the station that drives it.

Order of calls, all sans-IO: `handle_frame` per frame that arrived; `handle_packet` while `wants_packet`; `poll_frame`
until None while the radio has room; `poll_packet` and `poll_given_up` until None; `handle_deadline` at
`next_deadline()`.

A scheme is a `Scheme`: how to make an endpoint, and how its frames become octets. They are in `schemes/`.
"""

from collections.abc import Callable, Sized
from dataclasses import dataclass, fields
from random import Random
from typing import Any, Protocol

from common.options import NoOptions
from linklayer.filters.filter import End, Filter
from tcpip.access import Access


class FrameError(ValueError):
    """These octets are not a frame of this link; the message says which check failed."""


@dataclass(slots=True)
class LinkCounters:
    """What one endpoint has done so far: the sending side of one direction, the receiving side of the other."""

    #: packets of the IP layer sent for the first time
    packets: int = 0
    retransmissions: int = 0
    fec_frames: int = 0
    #: packet bytes the peer acknowledged; without ARQ, packet bytes sent
    useful_bytes: int = 0
    #: packets given up or lost with their session
    residual_losses: int = 0
    delivered: int = 0
    delivered_bytes: int = 0
    fec_repairs: int = 0
    duplicates: int = 0
    #: frames refused: damaged beyond use, or of another session
    refused: int = 0
    sessions: int = 0
    #: by the packet filters in front of the link: ACKs marked with ELN, and dupacks that TCP was spared
    eln_marks: int = 0
    suppressed_dupacks: int = 0

    def __add__(self, other: "LinkCounters") -> "LinkCounters":
        """Return what two endpoints have done together."""
        return LinkCounters(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


class Link(Protocol):
    """One end of a link."""

    #: whether packets wait in the IP queue until the link wants them; without it they go straight to the radio
    flow_control: bool

    @property
    def established(self) -> bool:
        """Whether packets can cross."""

    def wants_packet(self, channel: int) -> bool:
        """Whether the next packet of `channel` may be handed over."""

    def handle_packet(self, packet: Sized, channel: int) -> None:
        """Take one packet from the IP layer."""

    def poll_frame(self, now: int) -> Any | None:
        """Return the next frame to transmit, or None."""

    def handle_frame(self, frame: Any, now: int) -> None:
        """Take one frame from the radio."""

    def poll_packet(self) -> tuple[Sized, int] | None:
        """Return the next packet for the IP layer and its channel, or None."""

    def poll_given_up(self) -> Sized | None:
        """Return the next packet the link has lost for good and knows it, or None."""

    def next_deadline(self) -> int | None:
        """When `handle_deadline` is due, or None."""

    def handle_deadline(self, now: int) -> None:
        """Expire what is due; a no-op when early."""

    def end(self, now: int) -> None:
        """Give up what is under way and release what is held, for `poll_packet`: the link's use ends here."""

    def counters(self) -> LinkCounters:
        """Return what has happened so far."""


@dataclass(frozen=True, slots=True)
class Description:
    """A frame in words, for people who look at a capture."""

    words: str
    #: whether its checks hold
    intact: bool


@dataclass(frozen=True, kw_only=True)
class LinkContext:
    """What a scheme may need to make one end of a link."""

    end: End
    #: how packets are looked into; `sized`: they have a size and no octets, as in virtual time
    access: Access
    sized: bool
    rng: Random
    now: int
    #: how long the peer's longest frame takes
    frame_ms: float


def _no_filters(options: Any, context: LinkContext) -> tuple[Filter, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Scheme:
    """A link scheme: its endpoint, its packet filters and its wire format."""

    name: str
    summary: str
    #: octets a frame adds to a packet at most
    overhead_bytes: int
    #: whether the link itself repairs losses and knows which it gave up; where not, a lost frame is a lost packet
    repairs: bool
    #: makes the endpoint of one end of its options
    make: Callable[[Any, LinkContext], Link]
    #: (frame, offsets of its wrong bits) -> what `parse` would make of its octets; None: FrameError
    damage: Callable[[Any, tuple[int, ...]], Any | None]
    emit: Callable[[Any], bytes]
    #: raises FrameError
    parse: Callable[[bytes], Any]
    #: takes any octets
    describe: Callable[[bytes], Description]
    #: what captures call its frames: the number of a LINKTYPE_USER (wireshark/)
    link_type: int
    #: the key of a scenario's `link` under which its options are, and their dataclass; schemes may share both
    options_key: str = ""
    options: type[Any] = NoOptions
    #: the packet filters of an end, outermost first
    filters: Callable[[Any, LinkContext], tuple[Filter, ...]] = _no_filters
    #: whether they send packets again: then a lost frame is a lost packet only if no other one brings it across
    resends: bool = False
    #: the userspace TCP of the wireless side, where the base station splits TCP connections in two
    split: str | None = None
    #: the name in texts for people; empty: `name`
    label: str = ""
