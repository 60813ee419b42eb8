"""Scheme `slacp`: the SLACP paper's protocol (`linklayer/slacp/`)."""

from dataclasses import dataclass
from typing import Annotated, Final

from annotated_types import Ge, Le

from common.options import Count, NotNegative, Positive
from common.units import ns
from linklayer.link import LinkContext, Scheme
from linklayer.schemes import LINKTYPE_USER0
from linklayer.slacp import ChannelOptions, Counting, ReedSolomon, Slacp, SlacpConfig, describe, wire
from linklayer.slacp.frames import MAX_OVERHEAD_BYTES


@dataclass(frozen=True, kw_only=True)
class SlacpOptions:
    """SLACP's options; a value left out is SLACP's default or, for the ACK timer, follows from the link."""

    retransmissions: Annotated[int, Ge(0)] = 1
    block_frames: Annotated[int, Ge(1), Le(255)] = 8
    redundancy: NotNegative = 1.0
    block_timer_ms: Positive = 100
    ack_every: Count = 4
    ack_timer_ms: Positive | None = None
    window: Annotated[int, Ge(1), Le(8192)] = 1024
    in_order: bool = True

    def __post_init__(self) -> None:
        self.config(1.0)

    def config(self, frame_ms: float) -> SlacpConfig:
        """Return the core's configuration for a link on which a full frame takes `frame_ms`. Raises ValueError.

        The ACK timer must not fire between the frames of a busy link: by default it is five of them, 50 ms at
        least.
        """
        ack_timer_ms = self.ack_timer_ms or max(50.0, 5 * frame_ms)
        return SlacpConfig(
            retransmissions=self.retransmissions,
            block_frames=self.block_frames,
            redundancy=self.redundancy,
            block_timer_ns=ns(self.block_timer_ms),
            ack_every=self.ack_every,
            ack_timer_ns=ns(ack_timer_ms),
            ack_timer_max_ns=ns(max(500.0, 4 * ack_timer_ms)),
            dead_after_ns=ns(max(15_000.0, 16 * ack_timer_ms)),
            window=self.window,
            channels=(ChannelOptions(in_order=self.in_order), ChannelOptions(arq=False, in_order=False)),
        )


def _make(options: SlacpOptions, context: LinkContext) -> Slacp:
    # the peer's frames set our ACK timer
    config = options.config(context.frame_ms)
    return Slacp(config, Counting() if context.sized else ReedSolomon(), context.rng, context.now)


SLACP: Final = Scheme(
    name="slacp",
    summary="selective-repeat ARQ, FEC on retransmissions, no retransmission timers",
    overhead_bytes=MAX_OVERHEAD_BYTES,
    repairs=True,
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
