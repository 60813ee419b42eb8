"""The two ends of a scenario's link: the endpoint of the scheme, behind the scenario's packet filters."""

from collections.abc import Iterable
from random import Random
from typing import Any

from common.sides import Side, other
from linklayer.filters.filter import End, Filter, FilterPlugin
from linklayer.filters.filtered import Filtered
from linklayer.link import Link, LinkContext, Scheme
from linklayer.schemes import SCHEMES
from tcpip.access import Objects, Octets
from testbed.scenario.channel_models import frame_ms
from testbed.scenario.schema import Scenario

#: the end that transmits on a side
ENDS: dict[Side, End] = {"up": "mobile", "down": "base"}


def make_link(scenario: Scenario, side: Side, rng: Random, now: int, *, sized: bool) -> Link:
    """Return the end of the link that transmits on `side`; packets are octets or, `sized`, objects with a size."""
    scheme, context = SCHEMES[scenario.link.scheme], _context(scenario, side, rng, now, sized=sized)
    return make_end(scheme, scenario.link.scheme_options(), _chosen(scenario), context)


def make_end(scheme: Scheme, options: Any, filters: Iterable[tuple[FilterPlugin, Any]], context: LinkContext) -> Link:
    """Return one end of a link: the endpoint of a scheme, behind those of `filters` (and their options) at this end."""
    link = scheme.make(options, context)
    made = _make_filters(filters, context)
    return Filtered(link, made) if made else link


def refit(link: Link, scenario: Scenario, side: Side) -> Link:
    """Put the live end that transmits on `side` behind the scenario's packet filters; filters that it has stay."""
    there = {each.name: each for each in link.filters} if isinstance(link, Filtered) else {}
    fresh = _make_filters(_chosen(scenario), _context(scenario, side, Random(scenario.seed), 0, sized=False))
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


def _chosen(scenario: Scenario) -> list[tuple[FilterPlugin, Any]]:
    """Return the packet filters of a scenario, with their options."""
    link = scenario.link
    return [(plugin, link.options_at(plugin.options_key, plugin.options)) for plugin in link.packet_filters()]


def _make_filters(filters: Iterable[tuple[FilterPlugin, Any]], context: LinkContext) -> tuple[Filter, ...]:
    """Make the packet filters of an end, outermost first."""
    made = []
    for plugin, options in sorted(filters, key=lambda chosen: chosen[0].position):
        if context.end in plugin.ends:
            filter_ = plugin.make(options, context)
            filter_.name = plugin.name
            made.append(filter_)
    return tuple(made)
