"""Schemes `ll` and `snoop`, and both with SMART: frames of `none` behind a packet filter at the base station."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from common.options import Bytes, Count, NotNegative, Positive
from common.units import ns
from linklayer.filters.filter import Filter
from linklayer.filters.snoop import Limits, Snoop
from linklayer.filters.tagger import Tagger
from linklayer.link import LinkContext
from linklayer.schemes.none import NONE


@dataclass(frozen=True, kw_only=True)
class SnoopOptions:
    """The base station's options, of `ll`, `snoop` and both with SMART."""

    #: dupacks that ask for a segment, where only cumulative ACKs speak
    dupacks: Count = 2
    timeout_ms: Positive = 200
    #: 0: the local timers are exact
    tick_ms: NotNegative = 0
    tries: Count = 10
    #: per flow
    cache_bytes: Bytes = 1 << 20

    def limits(self) -> Limits:
        """Return the filter's own."""
        return Limits(
            dupacks=self.dupacks,
            min_timeout_ns=ns(self.timeout_ms),
            tick_ns=ns(self.tick_ms),
            tries=self.tries,
            flow_bytes=self.cache_bytes,
        )


def _filters(suppresses: bool, selective: bool) -> Callable[[SnoopOptions, LinkContext], tuple[Filter, ...]]:
    """Return what makes the filters of one of the schemes."""

    def make(options: SnoopOptions, context: LinkContext) -> tuple[Filter, ...]:
        if context.end == "base":
            return (Snoop(context.access, suppresses=suppresses, selective=selective, limits=options.limits()),)
        return (Tagger(context.access),) if selective else ()

    return make


LL = replace(
    NONE,
    name="ll",
    summary="the base station sends TCP segments again",
    options_key="snoop",
    options=SnoopOptions,
    filters=_filters(suppresses=False, selective=False),
    resends=True,
)
LL_SMART = replace(
    LL,
    name="ll-smart",
    summary="ll, with selective ACKs",
    filters=_filters(suppresses=False, selective=True),
)
SNOOP = replace(
    LL,
    name="snoop",
    summary="ll, and TCP is spared the dupacks",
    filters=_filters(suppresses=True, selective=False),
)
SNOOP_SMART = replace(
    LL,
    name="snoop-smart",
    summary="snoop, with selective ACKs",
    filters=_filters(suppresses=True, selective=True),
)

SCHEME = (LL, LL_SMART, SNOOP, SNOOP_SMART)
