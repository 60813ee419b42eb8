"""The SLACP paper's hosts: Linux 2.4, and the enhancements of its sections 3 and 4."""

from dataclasses import replace
from typing import Final

from common.units import MS, SECOND
from hosts.tcp.config import TcpConfig
from hosts.tcp.profiles import UserProfile

#: 3 s before the first sample and a variance term of 200 ms at least were Linux 2.4's; ours where the paper is silent
_REFERENCE: Final = TcpConfig(
    recovery="newreno",
    initial_window=1,
    limited_transmit=False,
    impatient=False,
    window_scaling=False,
    timestamps=False,
    delayed_ack_ns=200 * MS,
    initial_rto_ns=3 * SECOND,
    min_rto_ns=200 * MS,
    max_rto_ns=120 * SECOND,
    granularity_ns=200 * MS,
)
_ENHANCED: Final = replace(
    _REFERENCE,
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
        config=_REFERENCE,
    ),
    UserProfile(
        name="enhanced", summary="IW 4, window scaling, SACK, limited transmit, F-RTO, DAASS", config=_ENHANCED
    ),
    UserProfile(
        name="enhanced-cbi",
        summary="enhanced, and ssthresh of the previous connection is reused",
        config=replace(_ENHANCED, cbi=True),
    ),
    UserProfile(name="enhanced-no-daass", summary="enhanced without DAASS", config=replace(_ENHANCED, daass=False)),
)
