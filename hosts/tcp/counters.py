"""The counters of a connection."""

from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    """Counts since the connection was made."""

    #: all segments, and those with payload
    segments_sent: int = 0
    segments_received: int = 0
    data_segments_sent: int = 0
    #: payload octets sent, retransmissions included
    bytes_sent: int = 0
    #: segments and octets sent again
    retransmits: int = 0
    bytes_retransmitted: int = 0
    #: loss recoveries begun by duplicate ACKs
    fast_retransmits: int = 0
    #: those that left the window as it was, the loss being corruption
    eln_kept: int = 0
    #: RTO expiries
    timeouts: int = 0
    #: timeouts that F-RTO found spurious
    spurious_timeouts: int = 0
    #: tail loss probes (RFC 8985 section 7)
    tail_probes: int = 0
    #: reductions of the window taken back, the segments having been late and not lost
    reductions_taken_back: int = 0
    dupacks: int = 0
    #: window reductions by ECN-Echo
    ecn_reductions: int = 0
    zero_window_probes: int = 0
    #: segments of redundancy, for windows and for duplicate ACKs, and the octets of both (LT-TCP)
    proactive_sent: int = 0
    reactive_sent: int = 0
    fec_bytes_sent: int = 0
