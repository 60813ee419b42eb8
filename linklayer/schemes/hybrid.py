"""Schemes `fec` and `hybrid`: LT-TCP's links with FEC, without and with ARQ (`linklayer/hybrid/`)."""

from dataclasses import dataclass
from typing import Annotated, Final

from annotated_types import Ge, Le

from common.options import Positive
from common.units import ns
from linklayer.hybrid import frames
from linklayer.hybrid.code import MAX_FRAGMENTS, Counting, ReedSolomon
from linklayer.hybrid.endpoint import Hybrid
from linklayer.link import LinkContext, Scheme
from linklayer.schemes import LINKTYPE_USER3


@dataclass(frozen=True, kw_only=True)
class FecOptions:
    """The fragments of a packet: `fragments` in all, any `data_fragments` of which suffice."""

    fragments: Annotated[int, Ge(1), Le(MAX_FRAGMENTS)] = 10
    data_fragments: Annotated[int, Ge(1), Le(MAX_FRAGMENTS)] = 9
    #: a packet that is not acknowledged so long after its last fragment is lost
    wait_ms: Positive = 2000

    def __post_init__(self) -> None:
        if self.data_fragments > self.fragments:
            raise ValueError(f"data_fragments is {self.data_fragments}: must be fragments, {self.fragments}, at most")


@dataclass(frozen=True, kw_only=True)
class HybridOptions(FecOptions):
    """FEC, and retransmissions of the packets that it does not save."""

    #: a packet that is not acknowledged so long after its last fragment is sent again
    wait_ms: Positive = 40
    retries: Annotated[int, Ge(0), Le(100)] = 3
    #: fragments of all sendings count together; without, each sending must bring enough by itself
    combine: bool = True
    in_order: bool = True


def _make(options: FecOptions, context: LinkContext) -> Hybrid:
    # without ARQ nothing is sent again, and nothing comes late
    arq = options if isinstance(options, HybridOptions) else HybridOptions(retries=0, in_order=False)
    return Hybrid(
        Counting() if context.sized else ReedSolomon(),
        data=options.data_fragments,
        total=options.fragments,
        retries=arq.retries,
        wait_ns=ns(options.wait_ms),
        combine=arq.combine,
        in_order=arq.in_order,
        rng=context.rng,
    )


def _scheme(name: str, summary: str, label: str, options: type[FecOptions]) -> Scheme:
    return Scheme(
        name=name,
        summary=summary,
        overhead_bytes=frames.OVERHEAD_BYTES,
        repairs=True,
        options_key=name,
        options=options,
        make=_make,
        # nothing in a damaged frame is to be trusted
        damage=lambda frame, bit_errors: None,
        emit=frames.emit,
        parse=frames.parse,
        describe=frames.describe,
        link_type=LINKTYPE_USER3,
        label=label,
    )


FEC: Final = _scheme("fec", "each packet in fragments with redundancy, no retransmissions", "link FEC", FecOptions)
HYBRID: Final = _scheme(
    "hybrid",
    "each packet in fragments with redundancy, sent again when too few arrive",
    "hybrid FEC/ARQ",
    HybridOptions,
)

SCHEME = (FEC, HYBRID)
