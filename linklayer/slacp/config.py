"""SLACP's options.

The paper (SLACP, section 2) fixes the rules; it does not publish the block size, the timers or the window.
The defaults below are fadelab's choices and `docs/slacp.md` gives the reasons.
"""

from dataclasses import dataclass
from typing import Final

MS: Final = 1_000_000

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


@dataclass(frozen=True, slots=True)
class SlacpConfig:
    """Options of one SLACP endpoint; both ends of a link use the same ones. Raises ValueError when out of range.

    Times are in nanoseconds. `redundancy` is redundancy frames per actual frame of a block; 0 switches FEC off.
    """

    #: times one frame may be retransmitted (paper: once)
    retransmissions: int = 1
    #: retransmitted frames that fill a FEC block
    block_frames: int = 8
    #: (paper: as many redundancy frames as actual frames)
    redundancy: float = 1.0
    #: after this long an open block is closed although it is not full
    block_timer_ns: int = 100 * MS
    #: an acknowledgement is due after this many new frames; a gap or a retransmission makes it due at once
    ack_every: int = 4
    #: the receiver repeats its latest acknowledgement after this long without a new frame, doubling each time ...
    ack_timer_ns: int = 50 * MS
    #: ... up to this
    ack_timer_max_ns: int = 500 * MS
    #: frames from the oldest unacknowledged to the newest sent
    window: int = 1024
    #: first repetition of an unanswered HELLO, doubling each time ...
    hello_timer_ns: int = 200 * MS
    #: ... up to this
    hello_timer_max_ns: int = 2_000 * MS
    #: a peer not heard for this long is gone: the session ends and a new one is sought
    dead_after_ns: int = 15_000 * MS
    channels: tuple[ChannelOptions, ...] = (ChannelOptions(), ChannelOptions(arq=False, in_order=False))

    def __post_init__(self) -> None:
        _require(self.retransmissions >= 0, "retransmissions", self.retransmissions, "0 or more")
        _require(1 <= self.block_frames <= MAX_BLOCK_SYMBOLS, "block_frames", self.block_frames, "1 to 255")
        _require(self.redundancy >= 0, "redundancy", self.redundancy, "0 or more")
        symbols = self.block_frames + self.redundancy * self.block_frames
        _require(symbols <= MAX_BLOCK_SYMBOLS, "redundancy", self.redundancy, "255 frames a block at most")
        for name in (
            "block_timer_ns",
            "ack_timer_ns",
            "ack_timer_max_ns",
            "hello_timer_ns",
            "hello_timer_max_ns",
            "dead_after_ns",
            "ack_every",
        ):
            value = getattr(self, name)
            _require(value > 0, name, value, "more than 0")
        # an idle peer is heard once per ack_timer_max_ns; one of its acknowledgements may be lost
        enough = self.dead_after_ns > 2 * self.ack_timer_max_ns
        _require(enough, "dead_after_ns", self.dead_after_ns, "more than twice ack_timer_max_ns")
        _require(1 <= self.window <= MAX_WINDOW, "window", self.window, f"1 to {MAX_WINDOW}")
        _require(1 <= len(self.channels) <= MAX_CHANNELS, "channels", len(self.channels), f"1 to {MAX_CHANNELS}")


def _require(holds: bool, name: str, value: object, wanted: str) -> None:
    if not holds:
        raise ValueError(f"{name} is {value}: must be {wanted}")
