"""SLACP's options.

The paper (SLACP, section 2) fixes the rules; it does not publish the block size, the timers or the window.
The defaults below are fadelab's choices and `docs/slacp.md` gives the reasons.
"""

from dataclasses import dataclass
from typing import Annotated, Final

from annotated_types import Ge, Gt, Le

from common.options import Count, Milliseconds, NotNegative, Probability, check_ranges
from common.units import ns

#: wire format: the channel number has four bits
MAX_CHANNELS: Final = 16
#: wire format: a block member's index and the block's size are one octet each; zfec's field has 256 symbols
MAX_BLOCK_SYMBOLS: Final = 255
#: an acknowledgement's bitmap has one bit per frame of the window
MAX_WINDOW: Final = 8192


@dataclass(frozen=True, slots=True)
class ChannelOptions:
    """How one logical channel treats its packets.

    `arq`: retransmit packets that the receiver reports lost. `in_order`: hold packets back until those before them have
    arrived or were given up; with False each packet is delivered the moment it arrives.
    """

    arq: bool = True
    in_order: bool = True


@dataclass(frozen=True, kw_only=True)
class SlacpOptions:
    """SLACP's options; `redundancy` is redundancy frames per actual frame of a block, 0 switches FEC off."""

    #: times one frame may be retransmitted (paper: once)
    retransmissions: Annotated[int, Ge(0)] = 1
    #: retransmitted frames that fill a FEC block
    block_frames: Annotated[int, Ge(1), Le(MAX_BLOCK_SYMBOLS)] = 8
    #: redundancy frames per frame of a block (paper: 1); 0: no FEC; a block has 255 frames at most, redundancy included
    redundancy: NotNegative = 1.0
    #: the share of packets that may be lost for good: a block gets the redundancy that the losses measured so far ask
    #: for, where that is more than `redundancy`; none: `redundancy` alone
    residual_loss: Annotated[Probability, Gt(0)] | None = None
    #: after this long an open block is closed although it is not full
    block_timer_ms: Milliseconds = 100
    #: an acknowledgement is due after this many new frames; a gap or a retransmission makes it due at once
    ack_every: Count = 4
    #: the receiver repeats its latest acknowledgement after this long without a new frame, doubling each time; none:
    #: five full frames' time, 50 ms at least
    ack_timer_ms: Milliseconds | None = None
    #: the largest ACK timer; none: four times the smallest, 500 ms at least
    ack_timer_max_ms: Annotated[Milliseconds, Le(5000)] | None = None
    #: frames from the oldest unacknowledged to the newest sent
    window: Annotated[int, Ge(1), Le(MAX_WINDOW)] = 1024
    #: whether reliable packets leave the link in order, or each at once
    in_order: bool = True

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.block_frames * (1 + self.redundancy) > MAX_BLOCK_SYMBOLS:
            raise ValueError(f"redundancy is {self.redundancy}: must be {MAX_BLOCK_SYMBOLS} frames a block at most")


@dataclass(frozen=True, kw_only=True)
class SlacpConfig(SlacpOptions):
    """Options of one SLACP endpoint on its link; both ends use the same ones. Raises ValueError when out of range.

    The ACK timer must not fire between the frames of a busy link: by default it is five of them, 50 ms at least. The
    two times after it follow from it.
    """

    #: how long a full frame of the peer's takes on the link
    frame_ms: NotNegative = 0
    #: a peer not heard for this long is gone: the session ends and a new one is sought
    dead_after_ms: Milliseconds | None = None
    #: None: a reliable channel and a fast one
    channels: tuple[ChannelOptions, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        # an idle peer is heard once per largest ACK timer; one of its acknowledgements may be lost
        if self.dead_after_ns <= 2 * self.ack_timer_max_ns:
            raise ValueError(f"dead_after_ms is {self.dead_after_ms}: must be more than twice ack_timer_max_ms")
        if not 1 <= len(self.logical_channels) <= MAX_CHANNELS:
            raise ValueError(f"channels is {self.channels}: must be 1 to {MAX_CHANNELS}")

    @property
    def _ack_timer_ms(self) -> float:
        return self.ack_timer_ms or max(50.0, 5 * self.frame_ms)

    @property
    def ack_timer_ns(self) -> int:
        """The ACK timer."""
        return ns(self._ack_timer_ms)

    @property
    def ack_timer_max_ns(self) -> int:
        """The ACK timer, doubled as often as it can be."""
        return ns(self.ack_timer_max_ms or max(500.0, 4 * self._ack_timer_ms))

    @property
    def dead_after_ns(self) -> int:
        """How long a peer may be silent."""
        return ns(self.dead_after_ms or max(15_000.0, 16 * self._ack_timer_ms))

    @property
    def logical_channels(self) -> tuple[ChannelOptions, ...]:
        """The channels by their numbers."""
        return self.channels or (ChannelOptions(in_order=self.in_order), ChannelOptions(arq=False, in_order=False))
