"""The two ends of a scenario's link: the scheme's endpoint, behind the packet filters that are asked for."""

from random import Random

from linklayer.filters.eln import Marker
from linklayer.filters.filter import End, Filter
from linklayer.filters.filtered import Filtered
from linklayer.filters.tagger import Tagger
from linklayer.link import Link, LinkContext
from linklayer.schemes import SCHEMES
from tcpip.access import Access, Objects, Octets
from testbed.scenario.channel_models import frame_ms
from testbed.scenario.schema import SIDES, Scenario, Side, other

#: who transmits on a side
ENDS: dict[Side, End] = {"up": "mobile", "down": "base"}


def make_link(scenario: Scenario, side: Side, rng: Random, now: int, *, sized: bool) -> Link:
    """Return the end of the link that transmits on `side`; packets are octets or, `sized`, objects with a size."""
    scheme = SCHEMES[scenario.link.scheme]
    context = _context(scenario, side, rng, now, sized=sized)
    link = scheme.make(scenario.link.scheme_options(), context)
    filters = _filters(scenario, context)
    return Filtered(link, filters) if filters else link


def refit(link: Link, scenario: Scenario, side: Side) -> Link:
    """Return the live end that transmits on `side` with the marker that the scenario asks for, else as it is."""
    markers = _eln_filters(scenario, ENDS[side], Octets())
    if not isinstance(link, Filtered):
        return Filtered(link, markers) if markers else link
    link.refit((*(each for each in link.filters if not isinstance(each, Marker)), *markers))
    return link


def has_guessers(scenario: Scenario) -> bool:
    """Whether a packet filter at any end guesses why segments are missing; taggers do not."""
    contexts = (_context(scenario, side, Random(0), 0, sized=True) for side in SIDES)
    return any(not isinstance(each, Tagger) for context in contexts for each in _filters(scenario, context))


def _context(scenario: Scenario, side: Side, rng: Random, now: int, *, sized: bool) -> LinkContext:
    back = scenario.channel.direction(other(side))
    return LinkContext(
        end=ENDS[side],
        access=Objects() if sized else Octets(),
        sized=sized,
        rng=rng,
        now=now,
        frame_ms=frame_ms(back, scenario.max_frame_bytes),
    )


def _filters(scenario: Scenario, context: LinkContext) -> tuple[Filter, ...]:
    """The packet filters of an end, outermost first."""
    scheme = SCHEMES[scenario.link.scheme]
    # the marker is next to the link, where it sees all that others put there
    return (
        *scheme.filters(scenario.link.scheme_options(), context),
        *_eln_filters(scenario, context.end, context.access),
    )


def _eln_filters(scenario: Scenario, end: End, access: Access) -> tuple[Filter, ...]:
    """The marker of explicit loss notifications, where the scenario asks for one at this end."""
    place = scenario.link.eln
    if place == "none" or (place == "base" and end == "mobile"):
        return ()
    reports = SCHEMES[scenario.link.scheme].repairs
    return (Marker(access, reports=reports, holes=place == "base"),)
