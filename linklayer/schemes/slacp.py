"""Scheme `slacp`: the SLACP paper's protocol (`linklayer/slacp/`)."""

from dataclasses import asdict
from typing import Final

from linklayer.link import LinkContext, Scheme
from linklayer.schemes import LINKTYPE_USER0
from linklayer.slacp import Counting, ReedSolomon, Slacp, SlacpConfig, SlacpOptions, describe, wire
from linklayer.slacp.frames import MAX_OVERHEAD_BYTES


def _make(options: SlacpOptions, context: LinkContext) -> Slacp:
    # the peer's frames set our ACK timer
    config = SlacpConfig(**asdict(options), frame_ms=context.frame_ms)
    return Slacp(config, Counting() if context.sized else ReedSolomon(), context.rng, context.now)


SLACP: Final = Scheme(
    name="slacp",
    summary="selective-repeat ARQ, FEC on retransmissions, no retransmission timers",
    overhead_bytes=MAX_OVERHEAD_BYTES,
    repairs="known",
    options_key="slacp",
    options=SlacpOptions,
    make=_make,
    damage=wire.damage,
    emit=wire.emit,
    parse=wire.parse,
    describe=describe.describe,
    link_type=LINKTYPE_USER0,
    label="SLACP",
)

SCHEME = SLACP
