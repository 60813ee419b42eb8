"""The two ends of a scenario's link: the endpoint of the scheme, behind the scenario's packet filters."""

from random import Random

from common.sides import Side, other
from linklayer.filters.filter import End, Filter
from linklayer.filters.filtered import Filtered
from linklayer.link import Link, LinkContext
from linklayer.schemes import SCHEMES
from tcpip.access import Objects, Octets
from testbed.scenario.channel_models import frame_ms
from testbed.scenario.schema import Scenario

#: the end that transmits on a side
ENDS: dict[Side, End] = {"up": "mobile", "down": "base"}


def make_link(scenario: Scenario, side: Side, rng: Random, now: int, *, sized: bool) -> Link:
    """Return the end of the link that transmits on `side`; packets are octets or, `sized`, objects with a size."""
    scheme = SCHEMES[scenario.link.scheme]
    context = _context(scenario, side, rng, now, sized=sized)
    link = scheme.make(scenario.link.scheme_options(), context)
    filters = _filters(scenario, context)
    return Filtered(link, filters) if filters else link


def refit(link: Link, scenario: Scenario, side: Side) -> Link:
    """Put the live end that transmits on `side` behind the scenario's packet filters; filters that it has stay."""
    there = {each.name: each for each in link.filters} if isinstance(link, Filtered) else {}
    fresh = _filters(scenario, _context(scenario, side, Random(scenario.seed), 0, sized=False))
    filters = tuple(there.get(each.name, each) for each in fresh)
    if isinstance(link, Filtered):
        link.refit(filters)
        return link
    return Filtered(link, filters) if filters else link


def has_guessers(scenario: Scenario) -> bool:
    """Whether a packet filter at any end guesses why segments are missing."""
    return any(plugin.guesses for plugin in scenario.link.packet_filters())


def _context(scenario: Scenario, side: Side, rng: Random, now: int, *, sized: bool) -> LinkContext:
    back = scenario.channel.direction(other(side))
    return LinkContext(
        end=ENDS[side],
        access=Objects() if sized else Octets(),
        sized=sized,
        rng=rng,
        now=now,
        frame_ms=frame_ms(back, scenario.max_frame_bytes),
        reports=SCHEMES[scenario.link.scheme].repairs,
    )


def _filters(scenario: Scenario, context: LinkContext) -> tuple[Filter, ...]:
    """Make the packet filters of an end, outermost first."""
    link = scenario.link
    wanted = [plugin for plugin in link.packet_filters() if context.end in plugin.ends]
    made = []
    for plugin in sorted(wanted, key=lambda plugin: plugin.position):
        filter_ = plugin.make(link.options_at(plugin.options_key, plugin.options), context)
        filter_.name = plugin.name
        made.append(filter_)
    return tuple(made)
