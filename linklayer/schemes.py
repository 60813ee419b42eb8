"""The link schemes by name. A new scheme is a module beside this one and a line here."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from linklayer import plain
from linklayer.filters.filter import End, Filter
from linklayer.filters.snoop import Limits, Snoop
from linklayer.filters.tagger import Tagger
from linklayer.link import Scheme
from linklayer.slacp import Counting, ReedSolomon, Slacp, SlacpConfig, describe, wire
from linklayer.slacp.frames import MAX_OVERHEAD_BYTES
from tcpip.access import Access

#: link types of captures, free for everybody (the registry of link-layer header types)
LINKTYPE_USER0, LINKTYPE_USER1 = 147, 148

NONE = Scheme(
    name="none",
    summary="packets cross bare",
    overhead_bytes=plain.TRAILER_BYTES,
    repairs=False,
    make=lambda options, rng, now: plain.Plain(),
    make_sized=lambda options, rng, now: plain.Plain(),
    damage=lambda frame, bit_errors: None,
    emit=plain.emit,
    parse=plain.parse,
    describe=plain.describe,
    link_type=LINKTYPE_USER1,
)

SLACP = Scheme(
    name="slacp",
    summary="selective-repeat ARQ, FEC on retransmissions, no retransmission timers",
    overhead_bytes=MAX_OVERHEAD_BYTES,
    repairs=True,
    make=lambda options, rng, now: Slacp(options or SlacpConfig(), ReedSolomon(), rng, now),
    make_sized=lambda options, rng, now: Slacp(options or SlacpConfig(), Counting(), rng, now),
    damage=wire.damage,
    emit=wire.emit,
    parse=wire.parse,
    describe=describe.describe,
    link_type=LINKTYPE_USER0,
)

SPLIT = replace(
    NONE,
    name="split",
    summary="the base station splits TCP connections in two, Reno on the wireless side",
    split="reno",
)
SPLIT_SMART = replace(
    SPLIT,
    name="split-smart",
    summary="split, with SMART on the wireless side",
    split="smart",
    filters=lambda end, access, options: () if end == "base" else (Tagger(access),),
)


def _base_station(suppresses: bool, selective: bool) -> Callable[[End, Access, Limits | None], tuple[Filter, ...]]:
    """Return what makes the filters of one of Snoop's schemes."""

    def filters(end: End, access: Access, limits: Limits | None) -> tuple[Filter, ...]:
        if end == "base":
            return (Snoop(access, suppresses=suppresses, selective=selective, limits=limits),)
        return (Tagger(access),) if selective else ()

    return filters


#: frames of none, and a packet filter in front
LL = replace(
    NONE,
    name="ll",
    summary="the base station sends TCP segments again",
    filters=_base_station(suppresses=False, selective=False),
    resends=True,
)
LL_SMART = replace(
    LL,
    name="ll-smart",
    summary="ll, with selective ACKs",
    filters=_base_station(suppresses=False, selective=True),
)
SNOOP = replace(
    LL,
    name="snoop",
    summary="ll, and TCP is spared the dupacks",
    filters=_base_station(suppresses=True, selective=False),
)
SNOOP_SMART = replace(
    LL,
    name="snoop-smart",
    summary="snoop, with selective ACKs",
    filters=_base_station(suppresses=True, selective=True),
)

SCHEMES: Mapping[str, Scheme] = MappingProxyType(
    {scheme.name: scheme for scheme in (NONE, SLACP, LL, LL_SMART, SNOOP, SNOOP_SMART, SPLIT, SPLIT_SMART)}
)
