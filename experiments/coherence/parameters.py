"""Every choice behind COHERENCE's figures: one set for all cells and all error rates.

Read first: COHERENCE section 4.1; docs/arq.md and docs/filters.md for link and filters.

Rule kept: cells differ in the scheme, the error rate and the place of the wireless link, and in nothing else.
"""

from collections.abc import Mapping
from typing import Any

from experiments.coherence.radio_path_runs import PathSettings, Scheme
from testbed.papers.runs import Parameter

CHOICES: tuple[Parameter, ...] = (
    Parameter("duration_s", 500, "paper", "40 for the traces of figure 7"),
    Parameter("packet_bytes", 1000, "paper", "TCP's and UDP's, with their headers: the ceiling is 78,125 packets"),
    Parameter("lan_bps", 10_000_000, "paper", "figure 6"),
    Parameter("lan_delay_ms", 1, "paper", "figure 6"),
    Parameter("bottleneck_bps", 1_500_000, "paper", "figure 6"),
    Parameter("bottleneck_delay_ms", 20, "paper", "figure 6"),
    Parameter("wireless_bps", 1_500_000, "paper", "figure 6"),
    Parameter("wireless_delay_ms", 1, "paper", "figure 6"),
    Parameter("buffer_packets", 50, "ours", "five times the path's 10 packets, ns's default; of both slow links"),
    Parameter(
        "mark_packets",
        45,
        "ours",
        "below the buffer (paper); with less, a window halved by ECN cannot bridge the 40 ms of a retransmission",
    ),
    Parameter("wireless_buffer_packets", 0, "ours", "as the bottleneck's"),
    Parameter("resend_after_ms", 40, "paper", "link ARQ"),
    Parameter("retries", 2, "ours", "w is for two: a third comes when the dupacks have been released"),
    Parameter("link_frames", 1024, "ours", "no limit to the link's window"),
    Parameter("ack_losses", True, "ours", "packets on the wireless link are lost, in whatever direction"),
    Parameter("wait_ms", 81, "paper", "w"),
    Parameter("cross_bps", 500_000, "paper", "UDP while on"),
    Parameter("cross_on_ms", 100, "paper", "mean of the exponential periods"),
    Parameter("cross_off_ms", 100, "paper", "mean of the exponential periods"),
    Parameter("cross_ect", False, "ours", "UDP without ECN, as in ns: a queue drops what it cannot mark (RFC 3168)"),
    Parameter("delayed_ack_ms", 0, "ours", "an ACK for each packet, as ns's sink; three dupacks are three packets"),
    Parameter("min_rto_ms", 1000, "ours", "RFC 6298"),
    Parameter("tick_ms", 0, "ours", "exact timers"),
    Parameter("limited_transmit", False, "ours", "Reno as in ns and 4.4BSD"),
    Parameter("one_reduction_per_window", False, "ours", "the same: each hole of a window may halve it"),
    Parameter("receive_buffer_bytes", 1 << 20, "ours", "no limit to the window"),
)
#: replications of a cell
REPLICATIONS = 5
#: of the traces of figure 7
TRACE_S = 40.0


SCHEMES: Mapping[str, Scheme] = {
    "tcp": Scheme("arq"),
    "ecn": Scheme("arq", ecn=True),
    "snoop": Scheme("snoop"),
    "dda": Scheme("arq", ("dda",)),
    "cc": Scheme("arq", ("cc",), ecn=True),
}
#: with a mobile sender
FIRST_HOP: Mapping[str, Scheme] = {
    **SCHEMES,
    "snoop": Scheme("none", ("eln-base",), "eln"),
    "cc": Scheme("arq", ("cc-sender",), ecn=True),
}


def settings(changes: Mapping[str, Any]) -> PathSettings:
    """Return the choices, some of them changed."""
    return PathSettings(**{**{choice.key: choice.value for choice in CHOICES}, **changes})
