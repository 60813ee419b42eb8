"""The two directions of the link, and the hosts and stations at its ends.

h1 -- st ~~ up ~~> bas -- h2        (the papers' return link)
h1 -- st <~ down ~~ bas -- h2
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

Side = Literal["up", "down"]
Host = Literal["h1", "h2"]
Station = Literal["st", "bas"]

SIDES: Final[tuple[Side, ...]] = ("up", "down")
HOSTS: Final[tuple[Host, ...]] = ("h1", "h2")
#: the station and the host that send on a side
STATIONS: Final[Mapping[Side, Station]] = MappingProxyType({"up": "st", "down": "bas"})
SENDERS: Final[Mapping[Side, Host]] = MappingProxyType({"up": "h1", "down": "h2"})


def other(side: Side) -> Side:
    """Return the other direction."""
    return "down" if side == "up" else "up"


def peer_of(host: Host) -> Host:
    """Return the other host."""
    return "h2" if host == "h1" else "h1"
