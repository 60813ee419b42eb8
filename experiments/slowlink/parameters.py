"""Every choice behind SLOWLINK's tables: one set for all cells.

Read first: SLOWLINK sections 2 to 4; docs/tcp.md for the TCPs, docs/filters.md for the shared window.

Rules kept
- Cells differ in what the paper's tables name (flows, router queue, excessive delays, TCP variant) and in nothing else.
- The paper's numbers are lost in our copy of its text, so nearly all are `ours`. They are not fitted to its findings:
  first runs changed the transfers' sizes and the span of the first SYNs alone, for the reasons given there.
"""

from collections.abc import Mapping
from typing import NamedTuple

from testbed.papers.runs import Parameter

MSS_BYTES = 256
HEADERS_BYTES = 40
#: frames of 300 octets in the link's send buffer, the one being sent included
MAC_FRAMES = 2
_FRAME_BYTES = MSS_BYTES + HEADERS_BYTES + 4

#: the choices that all cells share
SCENARIO: tuple[Parameter, ...] = (
    Parameter("mtu", MSS_BYTES + HEADERS_BYTES, "ours", "MSS 256 octets"),
    Parameter("channel.rate_bps", 9_600, "ours", "GSM's data service; a packet takes 0.25 s"),
    Parameter("channel.delay_ms", 200, "ours", "propagation; an RTT of 0.7 s for a packet without queues"),
    Parameter("link.scheme", "queued", "paper", "a link that loses nothing, behind a router's queue"),
    Parameter("link.ip_queue_bytes", 1_000_000, "ours", "the limit in packets is the one that counts"),
    Parameter("channel.mac_buffer_bytes", MAC_FRAMES * _FRAME_BYTES, "ours", "the link's send buffer: two frames"),
    Parameter("wired.rate_bps", 10_000_000, "paper", "LAN"),
    Parameter("limit_s", 7_200, "ours", "far longer than any transfer"),
)

#: the choices of excessive delays, in both directions
DELAYS: Mapping[str, tuple[Parameter, ...]] = {
    "steady": (),
    "delays": (
        Parameter("channel.excess_delay.probability", 0.01, "ours", "of a frame, data or ACK"),
        Parameter("channel.excess_delay.hold_ms", 4_000, "ours", "long enough for most timeouts"),
        Parameter(
            "channel.excess_delay.buffer_bytes",
            4 * _FRAME_BYTES,
            "ours",
            "the link's receive buffer: four frames; then the link stops, as one with ARQ does",
        ),
    ),
}

#: packets that the router's queue holds, beside the link's buffers
QUEUES: Mapping[str, int] = {"20": 20, "7": 7}


class Variant(NamedTuple):
    """One of the paper's columns: the hosts' TCP, its label, and which queue the shared window was set for."""

    tcp: str
    label: str
    #: `own`: that of the cell; `other`: the other one of `QUEUES`, so it is too small or too large
    window: str = "none"


VARIANTS: Mapping[str, Variant] = {
    "newreno": Variant("slowlink-newreno", "NewReno"),
    "sack": Variant("slowlink-sack", "SACK"),
    "lt": Variant("slowlink-lt", "limited transmit"),
    "sack-lt": Variant("slowlink-sack-lt", "SACK + lim. tr."),
    "iw4": Variant("slowlink-iw4", "IW 4"),
    "window": Variant("slowlink-newreno", "shared window", "own"),
    "window-misset": Variant("slowlink-newreno", "shared window, mis-set", "other"),
    # the paper's Linux had FACK where ours has RFC 6675
    "fack": Variant("slowlink-fack", "FACK"),
    "fack-lt": Variant("slowlink-fack-lt", "FACK + lim. tr."),
}


def window_bytes(queue: str) -> int:
    """The shared window set for a queue, octets: the data that the queue and the link's send buffer hold."""
    return (QUEUES[queue] + MAC_FRAMES) * MSS_BYTES


#: Ours: KB of 1000 octets. Multiples of the MSS would send the FIN on its own, which the full queue often drops: a
#: timeout of seconds that says nothing about a variant.
ONE_BYTES = 100_000
FOUR_BYTES = 50_000
FLOWS = 4
#: Ours: the first part of a single transfer, about a page of the web then.
FIRST_BYTES = 20_000
#: Ours: the first part of each parallel one, four segments: a larger initial window.
START_BYTES = 4 * MSS_BYTES

#: Ours. Replications differ in the delay of the wired path (ms) and, with several flows, in the times of the first SYNs
#: (s), both uniform, beside the excessive delays. Without those a single flow is nearly the same in all replications.
#: Starts within half a second gave only a few different courses of four flows.
WIRED_DELAY_MS = (0.0, 20.0)
STARTS_S = (0.0, 1.0)
#: Ours: 20 at least are asked for.
REPLICATIONS = 32
