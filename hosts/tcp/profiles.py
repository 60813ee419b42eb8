"""The userspace TCPs by name: `--tcp user:NAME` on the live tiers, `--tcp NAME` on tier `model`.

Read first: the SLACP paper's sections 3 and 4 for `reference` and the `enhanced` ones; COMPARISON section 4 for the
500 ms clock.

A profile is a configuration of one machine; a name that the kernel's profiles (`hosts/kernel_profiles.py`) have too is
the same TCP, as exactly as the papers put it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from hosts.tcp.config import MS, SECOND, TcpConfig


@dataclass(frozen=True, slots=True)
class UserProfile:
    """One named TCP; its `mss` is the scenario's to say (MTU - 40)."""

    name: str
    description: str
    config: TcpConfig


#: The SLACP paper's hosts: Linux 2.4. 3 s before the first sample and a variance term of 200 ms at least were
#: Linux's then; ours where the paper is silent.
_REFERENCE = TcpConfig(
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
_ENHANCED = replace(
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
#: COMPARISON's hosts: BSD/OS, a 4.4BSD. IW 1 and the initial 6 s are 4.4BSD's. Two more ways in which 4.4BSD lets
#: windows grow faster are in TcpConfig, and nobody knows which of them BSD/OS had left (docs/tcp.md).
_BSD = TcpConfig(
    recovery="reno",
    initial_window=1,
    limited_transmit=False,
    careful_timer=True,
    one_reduction_per_window=False,
    halve_window=True,
    slow_start_at_ssthresh=True,
    window_scaling=False,
    timestamps=False,
    delayed_ack_ns=200 * MS,
    ack_at_tick=True,
    initial_rto_ns=6 * SECOND,
    min_rto_ns=1 * SECOND,
    max_rto_ns=64 * SECOND,
    tick_ns=500 * MS,
    receive_buffer=32_768,
)
_BSD_ELN = replace(_BSD, eln_once_per_window=True)
_RFC = TcpConfig(receive_buffer=1 << 20)

#: What Linux's Reno with SACK has in common with ours, beside which `eln` of the kernel is put (docs/kernel-eln.md)
_LINUX = TcpConfig(
    recovery="sack",
    lost_retransmissions=True,
    conserve_kept=True,
    jumped_is_congestion=False,
    initial_window=10,
    forgiven_syns=1,
    byte_counting=True,
    impatient=False,
    careful_timer=True,
    delayed_ack_ns=40 * MS,
    min_rto_ns=200 * MS,
    granularity_ns=200 * MS,
    receive_buffer=1 << 20,
)

USER_PROFILES: Mapping[str, UserProfile] = MappingProxyType(
    {
        profile.name: profile
        for profile in (
            UserProfile(
                "reference",
                "the SLACP paper's reference: NewReno, IW 1, no SACK, no window scaling, delayed ACK 200 ms",
                _REFERENCE,
            ),
            UserProfile(
                "enhanced",
                "IW 4, window scaling, SACK, limited transmit, F-RTO, DAASS",
                _ENHANCED,
            ),
            UserProfile(
                "enhanced-cbi",
                "enhanced, and ssthresh of the previous connection is reused",
                replace(_ENHANCED, cbi=True),
            ),
            UserProfile("enhanced-no-daass", "enhanced without DAASS", replace(_ENHANCED, daass=False)),
            UserProfile("reno", "Reno (RFC 5681), SACK off", replace(_RFC, recovery="reno")),
            UserProfile("newreno", "NewReno (RFC 6582), SACK off", replace(_RFC, recovery="newreno")),
            UserProfile("sack", "Reno's windows with SACK recovery (RFC 6675)", _RFC),
            UserProfile("sack-ecn", "sack, and ECN (RFC 3168)", replace(_RFC, ecn=True)),
            UserProfile("smart", "Reno's windows with SMART recovery", replace(_RFC, recovery="smart")),
            UserProfile(
                "eln", "reno that keeps its window for corruption", replace(_RFC, recovery="reno", eln="keep-window")
            ),
            UserProfile(
                "eln-rxmt",
                "eln that retransmits at the first duplicate with ELN",
                replace(_RFC, recovery="reno", eln="retransmit"),
            ),
            UserProfile(
                "sack-eln",
                "Linux's values: sack that keeps its window for corruption, IW 10, RTO from 200 ms on, sees lost "
                "retransmissions",
                replace(_LINUX, eln="keep-window"),
            ),
            UserProfile("bsd", "the COMPARISON paper's E2E: 4.4BSD's Reno, 500 ms clock, IW 1, SACK off", _BSD),
            UserProfile("bsd-newreno", "bsd with NewReno", replace(_BSD, recovery="newreno")),
            UserProfile("bsd-sack", "bsd with SACK", replace(_BSD, recovery="sack")),
            UserProfile("bsd-smart", "bsd with SMART", replace(_BSD, recovery="smart")),
            UserProfile("bsd-eln", "bsd that keeps its window for corruption", replace(_BSD_ELN, eln="keep-window")),
            UserProfile(
                "bsd-eln-rxmt",
                "bsd-eln that retransmits at the first duplicate with ELN",
                replace(_BSD_ELN, eln="retransmit"),
            ),
            UserProfile(
                "sack-cubic",
                "SACK recovery with CUBIC's window (RFC 9438)",
                replace(_RFC, growth="cubic"),
            ),
        )
    }
)
