"""LT-TCP, and its parts as the paper's component study adds them to SACK (docs/lt-tcp.md)."""

from typing import Final

from hosts.tcp.config import TcpConfig
from hosts.tcp.profiles import UserProfile

_ECN_ONLY: Final = TcpConfig().but(receive_buffer=1 << 20, ecn=True, ecn_only=True, byte_counting=True)
_ADAPTIVE: Final = _ECN_ONLY.but(adaptive_mss=True)

PROFILE = (
    UserProfile(
        name="lt-ecn", summary="LT-TCP's first part: sack-ecn whose window only ECN reduces (and a timeout)",
        config=_ECN_ONLY,
    ),
    UserProfile(
        name="lt-mss", summary="lt-ecn, and segments that get smaller with the window", config=_ADAPTIVE
    ),
    UserProfile(
        name="lt-proactive", summary="lt-mss, and FEC for each window", config=_ADAPTIVE.but(proactive_fec=True)
    ),
    UserProfile(
        name="lt-reactive", summary="lt-mss, and FEC for duplicate ACKs", config=_ADAPTIVE.but(reactive_fec=True)
    ),
    UserProfile(
        name="lt-tcp", summary="LT-TCP: all four parts",
        config=_ADAPTIVE.but(proactive_fec=True, reactive_fec=True),
    ),
)  # fmt: skip
