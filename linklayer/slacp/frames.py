"""SLACP's frames as objects, which the protocol machines exchange.

`wire.py` turns them into octets and back; in virtual time they travel as they are. A payload is anything with a
length: octets on the live tiers, a size-only packet in virtual time. Numbers (`tx`, `seq`, `base`, `cum`) are 32-bit
and wrap; the machines unwrap them (`common/sequence.py`).
"""

from collections.abc import Sized
from dataclasses import dataclass
from typing import Final

#: octets of the fixed header, header check included
HEADER_BYTES: Final = 20
#: octets of the CRC-32 behind the body
TRAILER_BYTES: Final = 4
OVERHEAD_BYTES: Final = HEADER_BYTES + TRAILER_BYTES
#: block number and index in front of the payload of a frame that belongs to a FEC block
BLOCK_BYTES: Final = 4
#: actual frames, redundancy frames and index in front of a shard
FEC_BYTES: Final = 4
#: length and sequence number in front of each packet of a FEC symbol
SYMBOL_BYTES: Final = 6
#: octets that a frame adds to a packet at most, in a redundancy frame
MAX_OVERHEAD_BYTES: Final = OVERHEAD_BYTES + FEC_BYTES + SYMBOL_BYTES
#: the first number in a HELLO's body
HELLO_BYTES: Final = 4


@dataclass(slots=True, init=False)
class Data:
    """One packet. `back` is how far `seq` is ahead of the oldest frame the sender may still send."""

    tag: int
    channel: int
    tx: int
    seq: int
    back: int
    payload: Sized
    retransmission: bool
    #: FEC block this transmission belongs to, or None
    block: int | None
    index: int

    # a dataclass's own is interpreted, where the rest is compiled
    def __init__(
        self,
        tag: int,
        channel: int,
        tx: int,
        seq: int,
        back: int,
        payload: Sized,
        retransmission: bool = False,
        block: int | None = None,
        index: int = 0,
    ) -> None:
        self.tag = tag
        self.channel = channel
        self.tx = tx
        self.seq = seq
        self.back = back
        self.payload = payload
        self.retransmission = retransmission
        self.block = block
        self.index = index

    @property
    def nbytes(self) -> int:
        """Octets on the air."""
        block_bytes = 0 if self.block is None else BLOCK_BYTES
        return OVERHEAD_BYTES + block_bytes + len(self.payload)


@dataclass(slots=True)
class Fec:
    """One redundancy frame: symbol `index` of block `block`. The first `actual` symbols are the frames themselves."""

    tag: int
    channel: int
    tx: int
    base: int
    block: int
    actual: int
    index: int
    shard: Sized

    @property
    def nbytes(self) -> int:
        """Octets on the air."""
        return OVERHEAD_BYTES + FEC_BYTES + len(self.shard)


@dataclass(slots=True)
class Sync:
    """The sender's oldest number, when no other frame is there to carry it."""

    tag: int
    channel: int
    tx: int
    base: int

    @property
    def nbytes(self) -> int:
        """Octets on the air."""
        return OVERHEAD_BYTES


@dataclass(slots=True, init=False)
class Ack:
    """The packets that the receiver has: all below `cum`, and `cum + i` for every bit i of `received`.

    `tx_high` is the highest transmission number seen: transmissions up to there that are not listed are lost.
    `repeat` marks an acknowledgement sent by the ACK timer.
    """

    tag: int
    channel: int
    tx_high: int
    cum: int
    received: int
    repeat: bool

    def __init__(self, tag: int, channel: int, tx_high: int, cum: int, received: int, repeat: bool) -> None:
        self.tag = tag
        self.channel = channel
        self.tx_high = tx_high
        self.cum = cum
        self.received = received
        self.repeat = repeat

    @property
    def nbytes(self) -> int:
        """Octets on the air."""
        return OVERHEAD_BYTES + (self.received.bit_length() + 7) // 8


@dataclass(slots=True)
class Hello:
    """One step of the session handshake.

    `ident` names the sender's incarnation; `offer` is the tag it wants on frames sent to it by this peer (0: none
    yet); `echo` is the peer's offer (0: none seen). `first` is where the sender's `tx` and `seq` numbers start.
    """

    ident: int
    offer: int
    echo: int
    established: bool
    first: int

    @property
    def nbytes(self) -> int:
        """Octets on the air."""
        return OVERHEAD_BYTES + HELLO_BYTES


@dataclass(slots=True)
class Damaged:
    """A data, redundancy or sync frame with an intact header and a damaged body: it has no payload, only news."""

    tag: int
    channel: int
    tx: int
    seq: int


Frame = Data | Fec | Sync | Ack | Hello
