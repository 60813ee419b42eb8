"""Every choice behind COMPARISON's tables: one set for all cells.

Read first: COMPARISON sections 3 and 4; docs/tcp.md for the paper's TCPs, docs/filters.md, docs/eln.md and
docs/split.md for the schemes' own parameters.

Rule kept: cells differ in what the paper's tables name (scheme, LAN or WAN, socket buffer, errors) and in nothing else.
"""

from collections.abc import Mapping

from testbed.papers.runs import Parameter

#: the choices that all cells share
SCENARIO: tuple[Parameter, ...] = (
    Parameter("mtu", 1440, "paper", "1400-byte data packets, read as 1400 octets of data"),
    Parameter("channel.rate_bps", 1_548_000, "ours", "without errors 1.5 Mbps of TCP data, as in the paper"),
    Parameter("channel.delay_ms", 0.3, "ours", "with a packet's time and the Ethernet's an RTT of 10 ms"),
    Parameter("link.ip_queue_bytes", 128_000, "ours", "no queue overflows"),
    Parameter("link.snoop.timeout_ms", 200, "paper", "the least local timeout"),
    Parameter("link.snoop.tick_ms", 200, "ours", "the paper's granularity of 200 ms, read as a clock's"),
    Parameter("limit_s", 7_200, "ours", "far longer than any transfer"),
)

#: the choices of LAN and WAN, and of the two socket buffers
SETTINGS: Mapping[str, tuple[Parameter, ...]] = {
    "lan": (
        Parameter("wired.rate_bps", 10_000_000, "paper", "Ethernet"),
        Parameter("wired.delay_ms", 0.1, "ours", "one segment"),
    ),
    "wan": (
        Parameter("wired.rate_bps", 1_413_000, "ours", "without errors 1.35 Mbps of TCP data"),
        Parameter("wired.delay_ms", 59, "ours", "an RTT of 135 ms"),
    ),
    "8k": (Parameter("receive_buffer_bytes", 8_192, "paper", "8 KB of 1024 octets"),),
    "32k": (Parameter("receive_buffer_bytes", 32_768, "paper", "32 KB of 1024 octets"),),
}

#: the paper's schemes: link.scheme, the hosts' TCP (hosts/tcp/profiles/), link.eln
SCHEMES: Mapping[str, tuple[str, str, str]] = {
    "ll": ("ll", "bsd", "none"),
    "ll-tcp-aware": ("snoop", "bsd", "none"),
    "ll-smart": ("ll-smart", "bsd", "none"),
    "ll-smart-tcp-aware": ("snoop-smart", "bsd", "none"),
    "e2e": ("none", "bsd", "none"),
    "e2e-newreno": ("none", "bsd-newreno", "none"),
    "e2e-smart": ("none", "bsd-smart", "none"),
    "e2e-ietf-sack": ("none", "bsd-sack", "none"),
    "e2e-eln": ("none", "bsd-eln", "base"),
    "e2e-eln-rxmt": ("none", "bsd-eln-rxmt", "base"),
    "split": ("split", "bsd", "none"),
    "split-smart": ("split-smart", "bsd", "none"),
}

#: Ours: the paper's 8 Mbyte, of 2^20 octets as its socket buffers are of 2^10.
TRANSFER_BYTES = 8 * 1_048_576
#: Ours: the paper does not say how often it measured.
REPLICATIONS = 20
