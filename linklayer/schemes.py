"""The link schemes by name. A new scheme is a module beside this one and a line here."""

from collections.abc import Mapping
from types import MappingProxyType

from linklayer import plain
from linklayer.link import Scheme
from linklayer.slacp import ReedSolomon, Slacp, SlacpConfig, wire

NONE = Scheme(
    name="none",
    summary="packets cross bare",
    make=lambda options, rng, now: plain.Plain(),
    emit=plain.emit,
    parse=plain.parse,
)

SLACP = Scheme(
    name="slacp",
    summary="selective-repeat ARQ, FEC on retransmissions, no retransmission timers",
    make=lambda options, rng, now: Slacp(options or SlacpConfig(), ReedSolomon(), rng, now),
    emit=wire.emit,
    parse=wire.parse,
)

SCHEMES: Mapping[str, Scheme] = MappingProxyType({scheme.name: scheme for scheme in (NONE, SLACP)})
