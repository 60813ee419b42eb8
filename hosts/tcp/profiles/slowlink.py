"""SLOWLINK's hosts: Linux before RACK and PRR, NewReno as the baseline, and the enhancements of its section 3.

The paper names the enhancements, not the other options. Ours: IW 2 (RFC 2581's largest, against which the paper holds
IW 4), no timestamps and no window scaling (12 octets of 296, and no window above 64 KB), ACKs of every second segment,
3 s before the first sample (RFC 2988).
"""

from typing import Final

from hosts.tcp.profiles import UserProfile
from hosts.tcp.profiles.old_linux import OLD_LINUX

_NEWRENO: Final = OLD_LINUX.but(initial_window=2)
_SACK: Final = _NEWRENO.but(recovery="sack")
_FACK: Final = _NEWRENO.but(recovery="fack")

PROFILE = (
    UserProfile(
        name="slowlink-newreno",
        summary="the SLOWLINK paper's baseline: NewReno, IW 2, no SACK, no limited transmit",
        config=_NEWRENO,
    ),
    UserProfile(name="slowlink-sack", summary="slowlink-newreno with SACK", config=_SACK),
    UserProfile(
        name="slowlink-lt",
        summary="slowlink-newreno with limited transmit",
        config=_NEWRENO.but(limited_transmit=True),
    ),
    UserProfile(
        name="slowlink-sack-lt",
        summary="slowlink-newreno with SACK and limited transmit",
        config=_SACK.but(limited_transmit=True),
    ),
    UserProfile(name="slowlink-fack", summary="slowlink-newreno with the paper's SACK, which is FACK", config=_FACK),
    UserProfile(
        name="slowlink-fack-lt",
        summary="slowlink-newreno with FACK and limited transmit",
        config=_FACK.but(limited_transmit=True),
    ),
    UserProfile(name="slowlink-iw4", summary="slowlink-newreno with IW 4", config=_NEWRENO.but(initial_window=4)),
)
