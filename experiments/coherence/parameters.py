"""Every choice behind COHERENCE's figures: one set for all cells and all error rates.

Read first: COHERENCE section 4.1; docs/arq.md and docs/filters.md for link and filters.

Rule kept: cells differ in the scheme, the error rate and the place of the wireless link, and in nothing else.
"""

from collections.abc import Mapping
from typing import Any, Final

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
    Parameter("buffer_packets", 15, "ours", "fitted; of both slow links"),
    Parameter("mark_packets", 9, "ours", "fitted, 0.6 of the buffer; clues tell little apart from 0.5 to 0.7"),
    Parameter("wireless_buffer_packets", 0, "ours", "as the bottleneck's; no influence on the fit"),
    Parameter("resend_after_ms", 40, "paper", "link ARQ"),
    Parameter("retries", 5, "ours", "fitted; w is for two, and three fit as well"),
    Parameter("link_frames", 64, "ours", "fitted; no influence from 64 on"),
    Parameter("ack_losses", False, "ours", "fitted: the air loses data alone"),
    Parameter("wait_ms", 81, "paper", "w"),
    Parameter("cross_bps", 500_000, "paper", "UDP while on"),
    Parameter("cross_on_ms", 100, "paper", "mean of the exponential periods"),
    Parameter("cross_off_ms", 100, "paper", "mean of the exponential periods"),
    Parameter("cross_ect", True, "ours", "fitted: queues may mark UDP"),
    Parameter("delayed_ack_ms", 0, "ours", "fitted, as ns's sink: an ACK for each packet"),
    Parameter("min_rto_ms", 60, "ours", "fitted, the least of the grid: about the path's round trip"),
    Parameter("tick_ms", 0, "ours", "fitted: exact timers"),
    Parameter("limited_transmit", False, "ours", "fitted, as ns's and 4.4BSD's Reno"),
    Parameter(
        "one_reduction_per_window", False, "ours", "fitted, as 4.4BSD's Reno: each hole of a window may halve it"
    ),
    Parameter("receive_buffer_bytes", 64 * 960, "ours", "fitted: 64 packets; no influence from there on"),
)
#: of a cell: the least with which a case of the statement with the most cases is confirmed though one replication
#: disagrees
REPLICATIONS = 16
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


#: `papers coherence --set parameters=NAME` takes another set than the fitted one
SET: Final = "parameters"
#: those chosen before the search, in which CC leads: a high threshold, and no limit to the window
_OURS: Final[Mapping[str, Any]] = {
    "buffer_packets": 50,
    "mark_packets": 45,
    "wireless_buffer_packets": 0,
    "retries": 2,
    "link_frames": 1024,
    "ack_losses": True,
    "cross_ect": False,
    "delayed_ack_ms": 0,
    "min_rto_ms": 1000,
    "tick_ms": 0,
    "limited_transmit": False,
    "one_reduction_per_window": False,
    "receive_buffer_bytes": 1 << 20,
}
SETS: Final[Mapping[str, Mapping[str, Any]]] = {"fitted": {}, "ours": _OURS}


def settings(changes: Mapping[str, Any]) -> PathSettings:
    """Return the choices, some of them changed."""
    return PathSettings(**{**{choice.key: choice.value for choice in CHOICES}, **changes})
