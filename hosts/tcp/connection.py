"""One TCP connection.

Read first: RFC 9293 (the machine), RFC 6298 (RTO), RFC 5681 (congestion control); README.md in this folder.

Order of calls, with `now` in ns never going back: `connect` or `listen` once; then `handle_segment` per segment that
came, the application's calls (`write`, `read`, `close`, ...) whenever it likes, `handle_deadline` at `next_deadline()`
(early calls do nothing); after any of these `poll_segment` until None, then `next_deadline` anew.
"""

from dataclasses import dataclass
from enum import Enum

from hosts.tcp.config import TcpConfig
from hosts.tcp.segment import Flow, Segment
from hosts.tcp.shared import Shared


class State(Enum):
    """RFC 9293 section 3.3.2."""

    CLOSED = "CLOSED"
    LISTEN = "LISTEN"
    SYN_SENT = "SYN-SENT"
    SYN_RECEIVED = "SYN-RECEIVED"
    ESTABLISHED = "ESTABLISHED"
    FIN_WAIT_1 = "FIN-WAIT-1"
    FIN_WAIT_2 = "FIN-WAIT-2"
    CLOSE_WAIT = "CLOSE-WAIT"
    CLOSING = "CLOSING"
    LAST_ACK = "LAST-ACK"
    TIME_WAIT = "TIME-WAIT"


@dataclass(slots=True)
class Counters:
    """What a connection has done since it was made."""

    #: all segments, and those with payload
    segments_sent: int = 0
    segments_received: int = 0
    data_segments_sent: int = 0
    #: payload octets sent, retransmissions included
    bytes_sent: int = 0
    #: segments and payload octets sent again
    retransmits: int = 0
    bytes_retransmitted: int = 0
    #: loss recoveries begun by duplicate ACKs
    fast_retransmits: int = 0
    #: RTO expiries
    timeouts: int = 0
    #: timeouts that F-RTO found spurious
    spurious_timeouts: int = 0
    dupacks: int = 0
    #: window reductions by ECN-Echo
    ecn_reductions: int = 0
    zero_window_probes: int = 0


class Connection:
    """One end of a TCP connection; `flow` is the direction it sends in, `iss` the 32-bit initial sequence number."""

    state: State
    #: why the connection came to an end other than by FINs: one line, or None
    error: str | None
    counters: Counters

    def __init__(self, config: TcpConfig, flow: Flow, iss: int, shared: Shared | None = None) -> None:
        raise NotImplementedError

    # -- the application -------------------------------------------------------------------------------------

    def connect(self, now: int) -> None:
        """Open actively: a SYN is ready to be polled."""
        raise NotImplementedError

    def listen(self) -> None:
        """Open passively: the next segment handed in is the SYN."""
        raise NotImplementedError

    @property
    def write_room(self) -> int:
        """Octets `write` would take now."""
        raise NotImplementedError

    def write(self, data: bytes | int) -> int:
        """Take octets to send, or just so many of them (virtual time); return how many were taken.

        May be called as soon as the connection is opened. Raises RuntimeError after `close`.
        """
        raise NotImplementedError

    @property
    def readable(self) -> int:
        """Octets received in order and not read yet."""
        raise NotImplementedError

    def read(self, most: int) -> bytes:
        """Take up to `most` of the received octets."""
        raise NotImplementedError

    def discard(self) -> int:
        """Take all received octets unseen, as an application does that only counts; return how many."""
        raise NotImplementedError

    @property
    def at_end(self) -> bool:
        """Whether the peer's FIN has come and everything before it was read."""
        raise NotImplementedError

    def close(self, now: int) -> None:
        """Send what was written, then FIN. Octets can still be received. No-op when closed already."""
        raise NotImplementedError

    def abort(self, now: int) -> None:
        """End at once; a RST is ready to be polled where the peer must hear of it."""
        raise NotImplementedError

    # -- the network -----------------------------------------------------------------------------------------

    def handle_segment(self, segment: Segment, now: int) -> None:
        """Take one segment of this connection from the network."""
        raise NotImplementedError

    def poll_segment(self, now: int) -> Segment | None:
        """Return the next segment to send, or None."""
        raise NotImplementedError

    def next_deadline(self) -> int | None:
        """When `handle_deadline` is due, or None."""
        raise NotImplementedError

    def handle_deadline(self, now: int) -> None:
        """Expire whatever timer is due; nothing when early."""
        raise NotImplementedError

    # -- for probes ------------------------------------------------------------------------------------------

    @property
    def connected(self) -> bool:
        """Whether the handshake is complete (and stays True afterwards)."""
        raise NotImplementedError

    @property
    def closed(self) -> bool:
        """Whether nothing is left to do: no segment to send, no timer to wait for (TIME-WAIT is not over yet)."""
        raise NotImplementedError

    @property
    def drained(self) -> bool:
        """Whether everything written, and the FIN if there is one, was acknowledged."""
        raise NotImplementedError

    @property
    def bytes_acked(self) -> int:
        """Payload octets the peer has acknowledged."""
        raise NotImplementedError

    @property
    def bytes_received(self) -> int:
        """Payload octets received in order."""
        raise NotImplementedError

    @property
    def cwnd(self) -> int:
        """Congestion window, octets."""
        raise NotImplementedError

    @property
    def ssthresh(self) -> int | None:
        """Slow start threshold, octets; None while it is as high as can be."""
        raise NotImplementedError

    @property
    def srtt_ns(self) -> int | None:
        """Smoothed round-trip time; None before the first sample."""
        raise NotImplementedError

    @property
    def rto_ns(self) -> int:
        """Retransmission timeout, backoff included."""
        raise NotImplementedError


def reset_for(segment: Segment) -> Segment | None:
    """Return the RST that answers a segment for which there is no connection (RFC 9293 section 3.10.7.1), or None."""
    raise NotImplementedError
