"""DDA: dupacks wait for the retransmission of the link, and TCP hears of a hole only if it stays.

Read first: Mehta and Vaidya, "Delayed duplicate acknowledgements: a TCP-unaware approach to improve performance of TCP
over wireless" (1997); COHERENCE sections 2.5 and 4.1. `coherence.py` adds the congestion marks.

A link that retransmits and does not keep the order shows TCP a hole after each loss, and three dupacks make TCP halve
its window for a segment that is on its way. The filter stands at either end of the link. There it holds back the
dupacks of data that crosses the link in either direction: those of its own host on their way to the link, and those
that have crossed the link to its host's sender.

Rules kept
- A dupack is an ACK without data that repeats the highest number, while data beyond that number has been seen; it
  repeats the window (RFC 5681 section 2), or it has SACK blocks (RFC 6675 section 2). No other packet is held.
- The dupacks of a hole pass before the `first` one (the third). This one and the later ones wait until `wait_ns` after
  it. Then all of them go on in their order, and further dupacks of the hole pass.
- A new ACK ends the wait: the dupacks held are dropped, since their news is old.
- There is one guess per hole, at the third dupack or, if later, at the first that is held: `late`.
- Memory is bounded: flows, dupacks of one flow, octets of all. A flow that would hold more stops waiting; the flow
  unused for longest is forgotten, with its dupacks.

Left out: what the first two dupacks tell a sender with SACK and RACK (RFC 8985). With `dupacks: 1` it hears nothing.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from mypy_extensions import mypyc_attr
from typing_extensions import override

from common.options import Count, Positive
from common.sequence import MASK, unwrap
from common.units import ns
from linklayer.filters.filter import ENDS, Cause, End, Filter, FilterPlugin, Guess
from linklayer.filters.ranges import Ranges
from linklayer.link import LinkContext
from tcpip.access import Access
from tcpip.segment import ACK, CE, ECE, FIN, RST, SYN, Flow, Segment

#: flows remembered; dupacks held of one flow; octets held of all
MAX_FLOWS: Final = 1024
MAX_HELD: Final = 512
MAX_OCTETS: Final = 1 << 22
#: separate marked ranges of one flow
MAX_MARKS: Final = 64
#: TCP takes so many dupacks for a loss (RFC 5681 section 3.2)
_LOSS: Final = 3
#: so many ACKs in a row below the highest one: it was not this receiver's
_MISFITS: Final = 32
#: below all numbers
_NONE: Final = -(1 << 61)


@dataclass(frozen=True, kw_only=True)
class HoldOptions:
    """Options of `dda`, `cc` and `cc-sender`."""

    #: the paper's w: two retransmissions of its link ARQ
    wait_ms: Positive = 81
    #: the first dupack of a hole that waits
    dupacks: Count = _LOSS
    #: the end of the link that has the filter
    end: End = "mobile"


class HeldFlow:
    """The data of one direction of a connection, and the ACKs of its receiver. Numbers are unwrapped."""

    def __init__(self, seq: int, from_link: bool) -> None:
        #: whether the data comes from the link, and its ACKs go there
        self.from_link = from_link
        #: behind the highest number seen
        self.top = seq
        #: largest payload seen
        self.mss = 0
        #: marked CE
        self.marked = Ranges(MAX_MARKS)
        #: highest acknowledgement number
        self.ack = _NONE
        self.window = -1
        self.dupacks = 0
        #: whether the last new ACK, or one of the first two dupacks behind it, has ECN-Echo
        self.echo = False
        #: dupacks of the present hole that wait, with their channels; their octets, and until when
        self.held: list[tuple[Any, int]] = []
        self.held_octets = 0
        self.release_at: int | None = None
        #: ACKs below `ack` since the last other one
        self.misfits = 0


@mypyc_attr(allow_interpreted_subclasses=True)
class Hold(Filter):
    """Holds dupacks of data from the link (`receiving`), of data for the link (`sending`), or of both."""

    def __init__(self, access: Access, options: HoldOptions, *, receiving: bool = True, sending: bool = True) -> None:
        super().__init__()
        self._access = access
        self._wait_ns = ns(options.wait_ms)
        self._first = options.dupacks
        self._receiving, self._sending = receiving, sending
        #: by the direction of the data, the longest unused first
        self._flows: OrderedDict[Flow, HeldFlow] = OrderedDict()
        #: octets held
        self._octets = 0
        #: (when, whose wait ends); all waits are equally long, and an entry counts only if it is its flow's latest
        self._timers: deque[tuple[int, HeldFlow]] = deque()

    @override
    def handle_to_link(self, packet: Any, channel: int, now: int) -> None:
        segment = self._access.view(packet)
        if segment is not None:
            if self._sending:
                self._note_data(segment, False)
            if self._receiving and _is_ack(segment) and self._holds(segment, packet, channel, True, now):
                return
        self._to_link.append((packet, channel))

    @override
    def handle_from_link(self, packet: Any, channel: int, now: int) -> None:
        segment = self._access.view(packet)
        if segment is not None:
            if self._receiving:
                self._note_data(segment, True)
            if self._sending and _is_ack(segment) and self._holds(segment, packet, channel, False, now):
                return
        self._from_link.append((packet, channel))

    def next_deadline(self) -> int | None:
        """When dupacks have waited long enough, or None."""
        timers = self._timers
        while timers:
            at, flow = timers[0]
            if flow.release_at == at:
                return at
            timers.popleft()
        return None

    def handle_deadline(self, now: int) -> None:
        """Let the dupacks go that have waited long enough; a no-op when early."""
        while (at := self.next_deadline()) is not None and at <= now:
            self._release(self._timers.popleft()[1])

    def _is_congestion(self, flow: HeldFlow) -> bool:
        """Whether the segment at the acknowledgement number was probably dropped by a queue."""
        return False

    # -- data ------------------------------------------------------------------------------------------------

    def _note_data(self, segment: Segment, from_link: bool) -> None:
        key, length = segment.flow, segment.length
        if segment.flags & (SYN | RST):
            self._forget(key)
            return
        if not length:
            return
        flow = self._flows.get(key)
        if flow is None:
            flow = self._flows[key] = HeldFlow(segment.seq, from_link)
            if len(self._flows) > MAX_FLOWS:
                self._forget(next(iter(self._flows)))
        elif flow.from_link != from_link:
            return
        else:
            self._flows.move_to_end(key)
        left = unwrap(segment.seq, flow.top)
        right = left + length
        if right > flow.top:
            flow.top = right
        if length > flow.mss:
            flow.mss = length
        if segment.ecn == CE:
            flow.marked.add(left, right)

    # -- ACKs ------------------------------------------------------------------------------------------------

    def _holds(self, segment: Segment, packet: Any, channel: int, to_link: bool, now: int) -> bool:
        """Take an ACK; return whether it is held."""
        flow = self._flows.get(segment.flow.reversed())
        if flow is None or flow.from_link != to_link:
            return False
        number = unwrap(segment.ack, flow.top)
        if number > flow.top:
            return False
        if number < flow.ack:
            flow.misfits += 1
            if flow.misfits < _MISFITS:
                return False
            # the highest number was forged, or is of an earlier flow of this name
            flow.ack = _NONE
        flow.misfits = 0
        if number > flow.ack:
            self._drop(flow)
            flow.marked.remove_below(number - 1)
            flow.ack, flow.dupacks = number, 0
            flow.echo = bool(segment.flags & ECE)
            flow.window = segment.window
            return False
        repeats = segment.window == flow.window or bool(segment.sack)
        flow.window = segment.window
        if not repeats or not segment.window or number >= flow.top:
            return False
        return self._holds_dupack(flow, segment, packet, channel, now)

    def _holds_dupack(self, flow: HeldFlow, segment: Segment, packet: Any, channel: int, now: int) -> bool:
        flow.dupacks += 1
        count, first = flow.dupacks, self._first
        if count < _LOSS:
            flow.echo = flow.echo or bool(segment.flags & ECE)
        decides = count == max(first, _LOSS)
        congestion = first <= count <= max(first, _LOSS) and self._is_congestion(flow)
        if decides:
            cause: Cause = "congestion" if congestion else "late"
            self._guesses.append(Guess(now, segment.flow.reversed(), segment.ack & MASK, cause, self.name))
        if congestion:
            self._release(flow)
        elif count == first:
            flow.release_at = now + self._wait_ns
            self._timers.append((flow.release_at, flow))
            if len(self._timers) > 2 * MAX_FLOWS:
                self._timers = deque(entry for entry in self._timers if entry[0] == entry[1].release_at)
        if flow.release_at is None:
            return False
        octets = len(packet)
        if len(flow.held) >= MAX_HELD or self._octets + octets > MAX_OCTETS:
            self._release(flow)
            return False
        flow.held.append((packet, channel))
        flow.held_octets += octets
        self._octets += octets
        return True

    # -- dupacks held ----------------------------------------------------------------------------------------

    def _release(self, flow: HeldFlow) -> None:
        """Let the dupacks of a flow go, and the later ones of this hole."""
        (self._to_link if flow.from_link else self._from_link).extend(flow.held)
        self._clear(flow)

    def _drop(self, flow: HeldFlow) -> None:
        self.counters.suppressed_dupacks += len(flow.held)
        self._clear(flow)

    def _clear(self, flow: HeldFlow) -> None:
        if flow.held:
            flow.held = []
        self._octets -= flow.held_octets
        flow.held_octets = 0
        flow.release_at = None

    def _forget(self, key: Flow) -> None:
        flow = self._flows.pop(key, None)
        if flow is not None:
            self._drop(flow)


def _is_ack(segment: Segment) -> bool:
    return segment.flags & (ACK | SYN | FIN | RST) == ACK and not segment.length


def hold_at_one_end(kind: type[Hold], options: HoldOptions, context: LinkContext, **ways: bool) -> Filter:
    """Return a filter of `kind` at the end that the options name, and one that lets all packets pass at the other."""
    return kind(context.access, options, **ways) if context.end == options.end else Filter()


FILTER = FilterPlugin(
    name="dda",
    summary="at one end: dupacks wait for the link's retransmission",
    make=partial(hold_at_one_end, Hold),
    ends=ENDS,
    options_key="hold",
    options=HoldOptions,
    guesses=True,
)
