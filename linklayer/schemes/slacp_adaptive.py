"""Scheme `slacp-adaptive`: spends what a delay budget leaves on the losses it measures (`linklayer/adaptive/`)."""

from dataclasses import dataclass
from typing import Annotated, Final

from annotated_types import Ge, Le

from common.options import Milliseconds
from common.units import MS, ns
from linklayer.adaptive import frames
from linklayer.adaptive.code import Counting, Field
from linklayer.adaptive.endpoint import Adaptive
from linklayer.adaptive.plan import MAX_ROUNDS
from linklayer.link import LinkContext, Scheme
from linklayer.schemes import LINKTYPE_USER6


@dataclass(frozen=True, kw_only=True)
class AdaptiveOptions:
    """The delay budget: how long a packet may take from queue to delivery, in round trips of the link or in ms."""

    #: link round trips, from the radio's taking a frame to its acknowledgement
    budget_round_trips: Annotated[float, Ge(1), Le(MAX_ROUNDS)] = 3
    #: the same in ms; none: so many round trips
    budget_ms: Annotated[Milliseconds, Le(frames.MAX_PATIENCE_MS)] | None = None


def _make(options: AdaptiveOptions, context: LinkContext) -> Adaptive:
    return Adaptive(
        round_trips=options.budget_round_trips,
        budget_ns=0 if options.budget_ms is None else ns(options.budget_ms),
        frame_ns=round(context.frame_ms * MS),
        code=Counting() if context.sized else Field(),
        rng=context.rng,
        now=context.now,
    )


SCHEME: Final = Scheme(
    name="slacp-adaptive",
    summary="repeats and codes as the measured losses and a delay budget demand",
    overhead_bytes=frames.CODED_OVERHEAD_BYTES,
    repairs="known",
    options_key="slacp-adaptive",
    options=AdaptiveOptions,
    make=_make,
    damage=lambda frame, bit_errors: None,
    emit=frames.emit,
    parse=frames.parse,
    describe=frames.describe,
    link_type=LINKTYPE_USER6,
    label="SLACP adaptive",
    # round trips of TCP are as long as the budget: a shorter target would stop it early
    queue={"kind": "fq-codel", "target_ms": 60, "interval_ms": 600},
)
