"""A limited advertised window that all TCP connections of the mobile host share (SLOWLINK, section 3.4).

Read first: RFC 9293 section 3.8.6 (windows), RFC 7323 section 2 (window scale), RFC 1624 (checksum).

The mobile end changes the window field of the host's segments. n connections that are open may offer `shared_bytes` / n
each, so that their peers together have no more octets under way than the link and the queue before it hold. Neither
host needs a change.

Rules kept
- A window only gets smaller, and its right edge never moves left (RFC 9293 section 3.8.6). So a connection whose share
  gets smaller keeps the window that it has offered until data has used it up.
- A connection is offered no more than slow start can use: four segments, and as much as has come. Otherwise the first
  of several connections that open at once would be promised all.
- A share is one full segment at least: a smaller one would leave silly windows. The sum may be more than `shared_bytes`
  then.
- A connection is open once its peer has acknowledged the host's SYN, by its number, which a blind attacker does not
  know. It is over when the host has acknowledged the peer's FIN, at a RST with the exact number (RFC 5961), or when the
  host has sent nothing for `idle_s`; that one is open again with the host's next segment. Connections that are opening
  count among themselves, for the windows of their SYNs.
- The scale of a window is known from the SYNs alone. A connection met midway passes unchanged and is not counted; so
  does a signed segment.

Left out: window updates of our own. A share that grows is offered with the host's next segment.
"""

from dataclasses import dataclass
from typing import Any, Final

from mypy_extensions import mypyc_attr

from common.options import Bytes, Positive
from common.sequence import MASK, unwrap
from common.units import SECOND
from linklayer.filters.filter import Filter, FilterPlugin
from tcpip.access import Access
from tcpip.segment import ACK, FIN, RST, SYN, Flow, Segment

#: connections remembered: open, idle, and opening ones; the least recently used goes
MAX_FLOWS: Final = 1024
MAX_OPENING: Final = 256
#: RFC 7323 section 2.3: a larger scale counts as this
_MAX_SCALE: Final = 14
#: RFC 9293 section 3.7.1: without an MSS option
_DEFAULT_MSS: Final = 536
#: RFC 3390: the largest initial window of most senders
_FIRST_SEGMENTS: Final = 4
#: how far behind the host's SYN the peer's first acknowledgement may be
_FIRST_WINDOW: Final = 65_536


@mypyc_attr(allow_interpreted_subclasses=True)
@dataclass(frozen=True, kw_only=True)
class WindowOptions:
    """The window that open connections share."""

    #: octets that all open connections together may offer
    shared_bytes: Bytes = 65_536
    #: a connection counts for this long after the host's last segment
    idle_s: Positive = 120


class _Connection:
    """The windows that the host has offered to one peer."""

    def __init__(self, iss: int, scale: int, full_bytes: int, limit: int, now: int) -> None:
        #: 32-bit number of the host's SYN
        self.iss = iss
        self.scale = scale
        #: the largest segment that the host takes
        self.full_bytes = full_bytes
        #: the largest window that its SYN may offer, and the one it has offered
        self.limit = limit
        self.offered = 0
        #: unwrapped: the first octet that the host expects, the next one, and the right edge of its window
        self.first = self.ack = self.edge = 0
        #: 32-bit number behind the peer's FIN
        self.fin = -1
        #: when the host has sent anything
        self.used_at = now

    def establish(self, ack: int) -> None:
        """Begin with the first number that the host expects."""
        self.first = self.ack = ack
        self.edge = ack + self.offered


class SharedWindow(Filter):
    """The mobile end's filter."""

    def __init__(self, access: Access, shared_bytes: int, idle_ns: int) -> None:
        super().__init__()
        self._access, self._shared_bytes, self._idle_ns = access, shared_bytes, idle_ns
        #: by the host's direction, the least recently used first
        self._open: dict[Flow, _Connection] = {}
        self._idle: dict[Flow, _Connection] = {}
        self._opening: dict[Flow, _Connection] = {}

    def handle_to_link(self, packet: Any, channel: int, now: int) -> None:
        """Take a packet of the host's: its window may get smaller."""
        segment = self._access.view(packet)
        if segment is not None:
            flags = segment.flags
            if flags & RST:
                self._forget(segment.flow)
            elif flags & SYN:
                packet = self._handle_syn(packet, segment, now)
            elif flags & ACK:
                packet = self._handle_ack(packet, segment, now)
        self._to_link.append((packet, channel))

    def handle_from_link(self, packet: Any, channel: int, now: int) -> None:
        """Take a packet for the host: it passes, and says which connections are open."""
        segment = self._access.view(packet)
        if segment is not None:
            flow = segment.flow.reversed()
            if flow in self._opening:
                self._handle_answer(segment, flow, now)
            elif segment.flags & (FIN | RST):
                self._handle_end(segment, flow)
        self._from_link.append((packet, channel))

    # -- the host's segments ---------------------------------------------------------------------------------

    def _handle_syn(self, packet: Any, segment: Segment, now: int) -> Any:
        """A connection opens, or its SYN goes again; the window of a SYN is not scaled."""
        flow, options = segment.flow, segment.syn
        known = self._open.get(flow)
        if known is not None and known.iss == segment.seq:
            # the peer had it already: the handshake's last segment was lost
            window = min(segment.window, known.limit)
            known.edge = max(known.edge, known.first + window)
            return self._access.with_window(packet, window)
        self._forget(flow)
        scale = mss = None
        if options is not None:
            scale, mss = options.window_scale, options.mss
        full_bytes = mss or _DEFAULT_MSS
        self._rest(now)
        sharing = len(self._open) + len(self._opening) + 1
        share = min(self._shared_bytes // sharing, _FIRST_SEGMENTS * full_bytes)
        connection = _Connection(segment.seq, min(scale or 0, _MAX_SCALE), full_bytes, max(share, full_bytes), now)
        connection.offered = min(segment.window, connection.limit)
        if segment.flags & ACK:
            connection.establish(segment.ack)
        self._opening[flow] = connection
        _limit(self._opening, MAX_OPENING)
        return self._access.with_window(packet, connection.offered)

    def _handle_ack(self, packet: Any, segment: Segment, now: int) -> Any:
        flow = segment.flow
        connection = self._open.pop(flow, None) or self._idle.pop(flow, None)
        if connection is None:
            return packet
        connection.used_at = now
        # at the end: the latest used
        self._open[flow] = connection
        _limit(self._open, MAX_FLOWS)
        self._rest(now)
        ack = unwrap(segment.ack, connection.ack)
        connection.ack = ack
        scale, full_bytes = connection.scale, connection.full_bytes
        share = min(self._shared_bytes // len(self._open), ack - connection.first + _FIRST_SEGMENTS * full_bytes)
        share = max(share >> scale, _scaled(full_bytes, scale))
        # never more than any share: numbers that jump do not lift the limit
        kept = min(connection.edge - ack, max(self._shared_bytes, full_bytes))
        window = min(segment.window, max(share, _scaled(kept, scale)))
        connection.edge = max(ack + kept, ack + (window << scale))
        if segment.ack == connection.fin:
            del self._open[flow]
        return self._access.with_window(packet, window)

    def _rest(self, now: int) -> None:
        """Count no connection any more that has been idle for too long."""
        since = now - self._idle_ns
        while self._open:
            flow = next(iter(self._open))
            if self._open[flow].used_at > since:
                break
            self._idle[flow] = self._open.pop(flow)
            _limit(self._idle, MAX_FLOWS)
        while self._opening:
            flow = next(iter(self._opening))
            if self._opening[flow].used_at > since:
                break
            del self._opening[flow]

    def _forget(self, flow: Flow) -> None:
        for connections in (self._open, self._idle, self._opening):
            connections.pop(flow, None)

    # -- the peer's segments ---------------------------------------------------------------------------------

    def _handle_answer(self, segment: Segment, flow: Flow, now: int) -> None:
        """The peer may have acknowledged the host's SYN: then the connection is open."""
        connection = self._opening[flow]
        if segment.flags & (ACK | RST) != ACK or not 0 < (segment.ack - connection.iss) & MASK <= _FIRST_WINDOW:
            return
        del self._opening[flow]
        if segment.flags & SYN:
            if segment.syn is None or segment.syn.window_scale is None:
                # RFC 7323 section 2.2: windows are scaled only where both SYNs say so
                connection.scale = 0
            connection.establish(segment.seq + 1 & MASK)
        connection.used_at = now
        self._open[flow] = connection
        _limit(self._open, MAX_FLOWS)
        self._handle_end(segment, flow)

    def _handle_end(self, segment: Segment, flow: Flow) -> None:
        connection = self._open.get(flow) or self._idle.get(flow)
        if connection is None:
            return
        if segment.flags & RST:
            if segment.seq == connection.ack & MASK:
                self._forget(flow)
        elif segment.flags & FIN:
            connection.fin = segment.seq + segment.length + 1 & MASK


def _scaled(nbytes: int, scale: int) -> int:
    """The window field for so many octets, rounded up; 0 for none."""
    return (nbytes + (1 << scale) - 1) >> scale if nbytes > 0 else 0


def _limit(connections: dict[Flow, _Connection], most: int) -> None:
    """Let the least recently used go, if there are too many."""
    if len(connections) > most:
        del connections[next(iter(connections))]


WINDOW: Final = FilterPlugin(
    name="window",
    summary="the mobile host's connections share a limited advertised window",
    make=lambda options, context: SharedWindow(
        context.access, options.shared_bytes, max(1, round(options.idle_s * SECOND))
    ),
    ends=("mobile",),
    options_key="window",
    options=WindowOptions,
)

FILTER = WINDOW
