"""The interface of every link scheme to the station that drives it.

Order of calls, all sans-IO: `handle_frame` per frame that arrived; `handle_packet` while `wants_packet`; `poll_frame`
until None while the radio has room; `poll_packet` and `poll_given_up` until None; `handle_deadline` at
`next_deadline()`.

A scheme is a `Scheme`: how to make an endpoint, and how its frames become octets. They are in `schemes/`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass, field, fields
from random import Random
from typing import Any, Literal

from mypy_extensions import mypyc_attr

from common.options import NoOptions
from linklayer.filters.filter import End, FilterPlugin
from tcpip.access import Access


class FrameError(ValueError):
    """These octets are not a frame of this link; the message says which check failed."""


#: frames that a missed packet costs, as in docs/adaptive.md for a residual loss of 10^-3
MISS_PRICE = 256.0

#: what a link does about lost frames, and so what a lost packet is:
#: none   a packet goes in one frame: a lost frame is a lost packet
#: blind  a packet goes in several frames, any of which delivers it, once; nothing tells what has come: it is lost when
#:        the medium takes them all
#: known  both ends know what has come, by numbers and acknowledgements, and count what has not (`abandoned`)
Repairs = Literal["none", "blind", "known"]


@mypyc_attr(allow_interpreted_subclasses=True)
@dataclass(slots=True)
class LinkCounters:
    """Counters of one endpoint: the sending side of one direction, the receiving side of the other."""

    #: packets of the IP layer sent for the first time
    packets: int = 0
    retransmissions: int = 0
    fec_frames: int = 0
    #: packet octets that the peer acknowledged; without ARQ, packet octets sent
    useful_bytes: int = 0
    #: packets given up or lost with their session: as far as this end knows, since their acknowledgements may be lost
    residual_losses: int = 0
    #: those of them that were lost with their session
    session_losses: int = 0
    #: packets of the peer that have not come here, and that it has left behind
    abandoned: int = 0
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
        """Return the counters of two endpoints together."""
        return LinkCounters(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(LinkCounters)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Beliefs:
    """What one end believes of the losses in its direction, and does about them; counts are since it was made."""

    #: share of frames that are lost, and the bounds between which it is believed to be
    loss: float
    loss_low: float
    loss_high: float
    #: correlation of the losses of two frames that follow each other
    burst_correlation: float
    #: rounds that a new packet has
    rounds_planned: int
    #: how long a packet may be under way; None: not known yet
    budget_ms: float | None
    #: packets sent for the first time, and the rounds that they have begun
    packets: int
    rounds: int
    #: frames with packets or combinations of them
    frames: int
    #: packets whose fate is known: delivered (some of them in time) or missed
    settled: int
    delivered: int
    in_time: int
    missed: int


@mypyc_attr(allow_interpreted_subclasses=True)
class Link(ABC):
    """One end of a link. This class has no timers and reports no losses; a scheme's endpoint overrides that."""

    #: whether packets wait in the IP queue until the link wants them; without it they go straight to the radio
    flow_control: bool = True

    @property
    def established(self) -> bool:
        """Whether packets can cross."""
        return True

    @abstractmethod
    def wants_packet(self, channel: int) -> bool:
        """Whether the next packet of `channel` may be handed over."""

    @abstractmethod
    def handle_packet(self, packet: Sized, channel: int) -> None:
        """Take one packet from the IP layer."""

    @abstractmethod
    def poll_frame(self, now: int) -> Any | None:
        """Return the next frame to transmit, or None."""

    @abstractmethod
    def handle_frame(self, frame: Any, now: int) -> None:
        """Take one frame from the radio."""

    @abstractmethod
    def poll_packet(self) -> tuple[Sized, int] | None:
        """Return the next packet for the IP layer and its channel, or None."""

    def poll_given_up(self) -> Sized | None:
        """Return the next packet that the link has lost for good and reports, or None."""
        return None

    def next_deadline(self) -> int | None:
        """When `handle_deadline` is due, or None."""
        return None

    def handle_deadline(self, now: int) -> None:  # noqa: B027 (there are links without timers)
        """Expire what is due; a no-op when early."""

    def end(self, now: int) -> None:  # noqa: B027 (there are links that hold nothing)
        """Give up packets under way and release those held, for `poll_packet`: the link's use ends here."""

    @abstractmethod
    def counters(self) -> LinkCounters:
        """Return the counters so far."""

    def frame_cost(self, loss: float) -> float:
        """Return what a packet costs where so many frames are lost, 0 to 1: frames, and misses at their price.

        A radio chooses its mode by it (`linklayer/adaptive/modes.py`). Here: a lost frame is a miss.
        """
        return 1 + MISS_PRICE * loss

    def beliefs(self) -> Beliefs | None:
        """Return what this end believes of its direction now; None: it has no beliefs."""
        return None


@dataclass(frozen=True, slots=True)
class Description:
    """A frame in words, for the readers of a capture."""

    words: str
    #: whether its checks hold
    intact: bool


@dataclass(frozen=True, kw_only=True)
class LinkContext:
    """The context in which a scheme or a packet filter makes one end of a link."""

    end: End
    #: how packets are looked into; `sized`: they have a size and no octets, as in virtual time
    access: Access
    sized: bool
    rng: Random
    now: int
    #: how long the peer's longest frame takes
    frame_ms: float
    #: whether the link reports the packets it has given up
    reports: bool = False


@dataclass(frozen=True, slots=True)
class Scheme:
    """A link scheme: its endpoint, its packet filters and its wire format.

    Frames are objects with `nbytes`; unless `repairs` is "known" a frame's `payload` is its packet.
    """

    name: str
    summary: str
    #: octets a frame adds to a packet at most
    overhead_bytes: int
    repairs: Repairs
    #: makes the endpoint of one end of its options
    make: Callable[[Any, LinkContext], Link]
    #: (frame, offsets of its wrong bits) -> the result of `parse` for its octets; None: FrameError
    damage: Callable[[Any, tuple[int, ...]], Any | None]
    emit: Callable[[Any], bytes]
    #: raises FrameError
    parse: Callable[[bytes], Any]
    #: takes any octets
    describe: Callable[[bytes], Description]
    #: its frames in captures: the number of a LINKTYPE_USER (wireshark/)
    link_type: int
    #: the key of a scenario's `link` under which its options are, and their dataclass; schemes may share both
    options_key: str = ""
    options: type[Any] = NoOptions
    #: the packet filters in front of the endpoints; of one position, the outermost first
    filters: tuple[FilterPlugin, ...] = ()
    #: the userspace TCP of the wireless side, where the base station splits TCP connections in two
    split: str | None = None
    #: what a scenario has that does not set `link.queue` (`queues/`); empty: drop-tail
    queue: Mapping[str, Any] = field(default_factory=dict)
    #: likewise `link.ip_queue_bytes`; None: the scenario's default
    ip_queue_bytes: int | None = None
    #: the name in texts for people, of this scheme alone; empty: `name`
    label: str = ""

    @property
    def resends(self) -> bool:
        """Whether packet filters put packets on the link again."""
        return any(each.resends for each in self.filters)
