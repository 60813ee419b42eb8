"""Scheme `arq`: the link ARQ of the COHERENCE paper (`linklayer/arq/`)."""

from dataclasses import dataclass
from typing import Annotated, Final

from annotated_types import Ge, Le

from common.options import Positive
from common.units import ns
from linklayer.arq import frames
from linklayer.arq.endpoint import Arq
from linklayer.arq.receiver import MAX_WINDOW
from linklayer.link import LinkContext, Scheme
from linklayer.schemes import LINKTYPE_USER5


@dataclass(frozen=True, kw_only=True)
class ArqOptions:
    """Link ARQ's options; the times fit the papers' 1.5 Mbit/s and 1 ms (docs/arq.md)."""

    #: longer than the way of a frame and of its acknowledgement, queues included
    resend_after_ms: Positive = 40
    retries: Annotated[int, Ge(0), Le(100)] = 2
    window: Annotated[int, Ge(1), Le(MAX_WINDOW)] = 1024
    in_order: bool = False


def _make(options: ArqOptions, context: LinkContext) -> Arq:
    return Arq(
        resend_after_ns=ns(options.resend_after_ms),
        retries=options.retries,
        window=options.window,
        in_order=options.in_order,
        rng=context.rng,
    )


ARQ: Final = Scheme(
    name="arq",
    summary="a frame not acknowledged in time is sent again, and packets are delivered as they come",
    overhead_bytes=frames.DATA_OVERHEAD_BYTES,
    repairs=True,
    options_key="arq",
    options=ArqOptions,
    make=_make,
    damage=lambda frame, bit_errors: None,
    emit=frames.emit,
    parse=frames.parse,
    describe=frames.describe,
    link_type=LINKTYPE_USER5,
    label="link ARQ",
)

SCHEME = ARQ
