"""The SLACP paper's hosts: Linux 2.4, and the enhancements of its sections 3 and 4."""

from typing import Final

from hosts.tcp.profiles import UserProfile
from hosts.tcp.profiles.old_linux import OLD_LINUX

_ENHANCED: Final = OLD_LINUX.but(
    recovery="sack",
    initial_window=4,
    limited_transmit=True,
    window_scaling=True,
    frto=True,
    daass=True,
    # DAASS lasts for half of it
    receive_buffer=1 << 18,
)

PROFILE = (
    UserProfile(
        name="reference",
        summary="the SLACP paper's reference: NewReno, IW 1, no SACK, no window scaling, delayed ACK 200 ms",
        config=OLD_LINUX,
    ),
    UserProfile(
        name="enhanced", summary="IW 4, window scaling, SACK, limited transmit, F-RTO, DAASS", config=_ENHANCED
    ),
    UserProfile(
        name="enhanced-cbi",
        summary="enhanced, and ssthresh of the previous connection is reused",
        config=_ENHANCED.but(cbi=True),
    ),
    UserProfile(name="enhanced-no-daass", summary="enhanced without DAASS", config=_ENHANCED.but(daass=False)),
)
