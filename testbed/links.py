"""The two ends of a scenario's link: the scheme's endpoint, behind the packet filters that are asked for."""

from random import Random

from linklayer.filters.eln import Marker
from linklayer.filters.filter import End, Filter
from linklayer.filters.filtered import Filtered
from linklayer.link import Link
from linklayer.schemes import SCHEMES
from tcpip.access import Access, Objects, Octets
from testbed.medium import frame_ms
from testbed.scenario import Scenario, Side, other

#: who transmits on a side
ENDS: dict[Side, End] = {"up": "mobile", "down": "base"}


def make_link(scenario: Scenario, side: Side, rng: Random, now: int, *, sized: bool) -> Link:
    """Return the end of the link that transmits on `side`; packets are octets or, `sized`, objects with a size."""
    scheme = SCHEMES[scenario.link.scheme]
    back = scenario.channel.direction(other(side))
    # the peer's frames set our ACK timer
    options = scenario.link.slacp.config(frame_ms(back, scenario.max_frame_bytes))
    link = (scheme.make_sized if sized else scheme.make)(options, rng, now)
    access: Access = Objects() if sized else Octets()
    # next to the link, where the marker sees all that others put there
    filters = (*scheme.filters(ENDS[side], access), *_eln_filters(scenario, ENDS[side], access))
    return Filtered(link, filters) if filters else link


def _eln_filters(scenario: Scenario, end: End, access: Access) -> tuple[Filter, ...]:
    """The marker of explicit loss notifications, where the scenario asks for one at this end."""
    place = scenario.link.eln
    if place == "none" or (place == "base" and end == "mobile"):
        return ()
    reports = SCHEMES[scenario.link.scheme].repairs
    return (Marker(access, reports=reports, holes=place == "base"),)
