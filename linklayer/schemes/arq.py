"""Schemes `arq`, the link of the COHERENCE paper, and `fec` and `hybrid`, those of LT-TCP's (`linklayer/arq/`)."""

from dataclasses import dataclass, replace
from typing import Annotated, Final

from annotated_types import Ge, Le

from common.options import Positive
from common.units import ns
from linklayer.arq import frames
from linklayer.arq.code import MAX_FRAGMENTS, Counting, ReedSolomon
from linklayer.arq.endpoint import Arq
from linklayer.arq.receiver import MAX_WINDOW
from linklayer.arq.sender import Cutter
from linklayer.link import LinkContext, Scheme
from linklayer.schemes import LINKTYPE_USER5

_Retries = Annotated[int, Ge(0), Le(100)]
_Fragments = Annotated[int, Ge(1), Le(MAX_FRAGMENTS)]


@dataclass(frozen=True, kw_only=True)
class ArqOptions:
    """Link ARQ's options; the times fit the papers' 1.5 Mbit/s and 1 ms (docs/arq.md)."""

    #: a frame without acknowledgement goes again after this time: longer than its way and the way back, with queues
    resend_after_ms: Positive = 40
    #: retransmissions of one frame at most
    retries: _Retries = 2
    #: frames from the oldest unacknowledged to the newest
    window: Annotated[int, Ge(1), Le(MAX_WINDOW)] = 1024
    #: whether packets leave the link in order, or each at once
    in_order: bool = False


@dataclass(frozen=True, kw_only=True)
class FecOptions:
    """The fragments of a packet: `fragments` in all, any `data_fragments` of them suffice."""

    #: fragments of a packet
    fragments: _Fragments = 10
    #: any so many of them give the packet again
    data_fragments: _Fragments = 9

    def __post_init__(self) -> None:
        if self.data_fragments > self.fragments:
            raise ValueError(f"data_fragments is {self.data_fragments}: must be fragments, {self.fragments}, at most")


@dataclass(frozen=True, kw_only=True)
class HybridOptions(FecOptions, ArqOptions):
    """FEC, and ARQ for the packets that it does not save. LT-TCP's link has three retries."""

    retries: _Retries = 3
    in_order: bool = True
    #: fragments of all copies count together; without, each copy must bring enough by itself
    combine: bool = True


#: without ARQ acknowledgements serve to count the losses only: they may take their time, and nothing comes late
_FEC_ALONE: Final = ArqOptions(resend_after_ms=2000, retries=0)


def _make(arq: ArqOptions, fec: FecOptions | None, context: LinkContext) -> Arq:
    code = Counting() if context.sized else ReedSolomon()
    return Arq(
        resend_after_ns=ns(arq.resend_after_ms),
        retries=arq.retries,
        window=arq.window,
        in_order=arq.in_order,
        rng=context.rng,
        cutter=None if fec is None else Cutter(code, fec.data_fragments, fec.fragments),
        combine=not isinstance(arq, HybridOptions) or arq.combine,
    )


ARQ: Final = Scheme(
    name="arq",
    summary="a frame not acknowledged in time is sent again, and packets are delivered as they come",
    overhead_bytes=frames.DATA_OVERHEAD_BYTES,
    repairs="known",
    options_key="arq",
    options=ArqOptions,
    make=lambda options, context: _make(options, None, context),
    damage=lambda frame, bit_errors: None,
    emit=frames.emit,
    parse=frames.parse,
    describe=frames.describe,
    link_type=LINKTYPE_USER5,
    label="link ARQ",
)
FEC: Final = replace(
    ARQ,
    name="fec",
    summary="each packet goes in fragments with redundancy, and nothing goes again",
    overhead_bytes=frames.FRAGMENT_OVERHEAD_BYTES,
    options_key="fec",
    options=FecOptions,
    make=lambda options, context: _make(_FEC_ALONE, options, context),
    label="link FEC",
)
HYBRID: Final = replace(
    FEC,
    name="hybrid",
    summary="as fec; a packet goes again when too few fragments arrive",
    options_key="hybrid",
    options=HybridOptions,
    make=lambda options, context: _make(options, options, context),
    label="hybrid FEC/ARQ",
)

SCHEME = (ARQ, FEC, HYBRID)
