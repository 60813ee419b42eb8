"""The link schemes by name. A new scheme is a module beside this one and a line here."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from linklayer import plain
from linklayer.link import Scheme
from linklayer.slacp import Counting, ReedSolomon, Slacp, SlacpConfig, wire, words
from linklayer.slacp.frames import MAX_OVERHEAD_BYTES

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
    describe=words.describe,
    link_type=LINKTYPE_USER0,
)

SPLIT = replace(
    NONE,
    name="split",
    summary="the base station splits TCP connections in two, Reno on the wireless side",
    split="reno",
)

SCHEMES: Mapping[str, Scheme] = MappingProxyType({scheme.name: scheme for scheme in (NONE, SLACP, SPLIT)})
