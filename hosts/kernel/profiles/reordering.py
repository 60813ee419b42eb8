"""Linux's CUBIC with less tolerance of reordering than today's, with and without ECN.

Read first: RFC 8985 (RACK); the kernel's ip-sysctl.rst on tcp_recovery, tcp_dsack and tcp_max_reordering.

Linux's own (profile `cubic`) waits a quarter of the least round trip before it takes a segment for lost, longer each
time that D-SACK shows a needless retransmission. `strict` keeps the quarter and learns nothing. `nosack` counts three
dupacks, as Reno did.
"""

from hosts.kernel.profiles import LINUX, TcpProfile

_KINDS = {
    "strict": (
        "Linux with CUBIC whose RACK does not learn of reordering",
        # 2: the window for reordering is static
        {"tcp_recovery": "3", "tcp_dsack": "0", "tcp_max_reordering": "3"},
    ),
    "nosack": (
        "Linux with CUBIC, SACK off: three dupacks",
        {"tcp_sack": "0", "tcp_dsack": "0", "tcp_max_reordering": "3"},
    ),
}

PROFILE = tuple(
    TcpProfile(
        name=f"cubic-{kind}{suffix}",
        summary=summary + words,
        sysctls={**LINUX, **sysctls, "tcp_ecn": ecn},
        congestion_control="cubic",
    )
    for kind, (summary, sysctls) in _KINDS.items()
    for suffix, words, ecn in (("", "", "2"), ("-ecn", ", asking for ECN", "1"))
)
