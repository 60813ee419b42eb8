"""The RFCs' TCP with a window that no path here fills: a profile for each loss recovery and each window growth.

A recovery is a profile of its own name. A growth is the profile `sack-` and its name, with SACK recovery.
"""

from typing import Final

from hosts.tcp.config import TcpConfig
from hosts.tcp.growth import GROWTHS
from hosts.tcp.profiles import UserProfile
from hosts.tcp.recovery import RECOVERIES

_RFC: Final = TcpConfig().but(receive_buffer=1 << 20)
_RENO: Final = _RFC.but(recovery="reno")

PROFILE = (
    *(
        UserProfile(name=name, summary=recovery.summary, config=_RFC.but(recovery=name))
        for name, recovery in RECOVERIES.items()
    ),
    *(
        UserProfile(name=f"sack-{name}", summary=f"sack, {growth.summary}", config=_RFC.but(growth=name))
        for name, growth in GROWTHS.items()
        if name != _RFC.growth.name
    ),
    UserProfile(name="sack-ecn", summary="sack, ECN (RFC 3168)", config=_RFC.but(ecn=True)),
    UserProfile(
        name="sack-accecn",
        summary="sack, accurate ECN (RFC 9768); ECN alone where the peer has no more",
        config=_RFC.but(accecn=True, dsack=True),
    ),
    UserProfile(name="eln", summary="reno that keeps its window for corruption", config=_RENO.but(eln="keep-window")),
    UserProfile(
        name="eln-rxmt",
        summary="eln that retransmits at the first duplicate with ELN",
        config=_RENO.but(eln="retransmit"),
    ),
)
