"""Erasure codes over the frames of one block.

Read first: SLACP paper section 2 (figure 1). The code is *vertical*: octet i of every frame of a block forms one
Reed-Solomon codeword, so any `actual` of a block's frames rebuild the rest; positions of the missing ones are known.
A symbol is (length, sequence number, packet), padded with zeros to the block's longest.

`ReedSolomon` is zfec. `Counting` obeys the same contract for size-only packets in virtual time: it carries the
members along and hands them out exactly when zfec could have computed them (tests hold the two together).
"""

import struct
from abc import ABC, abstractmethod
from collections.abc import Sequence, Sized
from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import Final, cast

import zfec
from mypy_extensions import mypyc_attr
from typing_extensions import override

from linklayer.slacp.config import MAX_BLOCK_SYMBOLS
from linklayer.slacp.frames import SYMBOL_BYTES

_PREFIX: Final = struct.Struct(">HI")
assert _PREFIX.size == SYMBOL_BYTES
_encoder = lru_cache(512)(zfec.Encoder)
_decoder = lru_cache(512)(zfec.Decoder)

#: redundancy frames that losses may ask for, per frame of a block: the rest of an outage is not theirs to bridge
MAX_REDUNDANCY: Final = 8

#: a block's member: its sequence number (as on the wire) and its packet
Member = tuple[int, Sized]


def redundancy_for(actual: int, loss: float, residual_loss: float) -> int:
    """Return how many redundancy frames of a block of `actual` frames leave a share of all packets lost for good.

    X frames of the block and Y of its redundancy are lost, independently. The X packets are lost for good when X + Y
    exceeds the redundancy. A packet is in a block with the probability `loss`. At most `MAX_REDUNDANCY` for each frame.
    """
    most = min(MAX_REDUNDANCY * actual, MAX_BLOCK_SYMBOLS - actual)
    lost = [comb(actual, x) * loss**x * (1 - loss) ** (actual - x) for x in range(actual + 1)]
    # chance that so many redundancy frames are lost, by their number
    of_redundancy = [1.0]
    for redundant in range(most):
        missed = sum(x * chance * sum(of_redundancy[max(0, redundant + 1 - x) :]) for x, chance in enumerate(lost) if x)
        if loss * missed / actual <= residual_loss:
            return redundant
        before = [0.0, *of_redundancy]
        of_redundancy = [each * (1 - loss) for each in of_redundancy] + [0.0]
        of_redundancy = [each + loss * one for each, one in zip(of_redundancy, before, strict=True)]
    return most


@mypyc_attr(allow_interpreted_subclasses=True)
class ErasureCode(ABC):
    """Any `actual` of a block's symbols give all its members."""

    @abstractmethod
    def encode(self, members: Sequence[Member], redundant: int) -> list[Sized]:
        """Return `redundant` shards for `members` (symbols len(members), len(members) + 1, ...)."""

    @abstractmethod
    def decode(self, actual: int, known: dict[int, Member], shards: dict[int, Sized]) -> list[Member]:
        """Return the members missing from `known`; needs len(known) + len(shards) >= actual.

        `known` maps indexes below `actual` to members, `shards` maps higher ones to redundancy. Raises ValueError
        when the symbols contradict each other.
        """


class ReedSolomon(ErasureCode):
    """zfec over octet packets."""

    @override
    def encode(self, members: Sequence[Member], redundant: int) -> list[Sized]:
        actual = len(members)
        width = _PREFIX.size + max(len(packet) for _, packet in members)
        symbols = [_symbol(member, width) for member in members]
        indexes = list(range(actual, actual + redundant))
        return cast("list[Sized]", _encoder(actual, actual + redundant).encode(symbols, indexes))

    @override
    def decode(self, actual: int, known: dict[int, Member], shards: dict[int, Sized]) -> list[Member]:
        width = len(next(iter(shards.values())))
        if any(len(shard) != width for shard in shards.values()):
            raise ValueError("shards of one block differ in length")
        if any(_PREFIX.size + len(packet) > width for _, packet in known.values()):
            raise ValueError("a member is longer than its block")
        symbols: dict[int, Sized] = {index: _symbol(member, width) for index, member in known.items()}
        for index, shard in shards.items():
            if len(symbols) == actual:
                break
            symbols[index] = shard
        # the code's redundancy symbols do not depend on how many of them there are
        decoder = _decoder(actual, max(max(symbols), actual) + 1)
        decoded = decoder.decode(list(symbols.values()), list(symbols))
        return [_member(decoded[index]) for index in range(actual) if index not in known]


@dataclass(frozen=True, slots=True)
class CountedShard:
    """Redundancy that has a size and remembers the members it protects."""

    nbytes: int
    members: tuple[Member, ...]

    def __len__(self) -> int:
        return self.nbytes


class Counting(ErasureCode):
    """The stand-in for size-only packets."""

    @override
    def encode(self, members: Sequence[Member], redundant: int) -> list[Sized]:
        width = _PREFIX.size + max(len(packet) for _, packet in members)
        return [CountedShard(width, tuple(members))] * redundant

    @override
    def decode(self, actual: int, known: dict[int, Member], shards: dict[int, Sized]) -> list[Member]:
        members = cast(CountedShard, next(iter(shards.values()))).members
        return [members[index] for index in range(actual) if index not in known]


def _symbol(member: Member, width: int) -> bytes:
    seq, packet = member
    return (_PREFIX.pack(len(packet), seq) + cast(bytes, packet)).ljust(width, b"\0")


def _member(symbol: bytes) -> Member:
    length, seq = _PREFIX.unpack_from(symbol)
    if _PREFIX.size + length > len(symbol):
        raise ValueError("a rebuilt frame is longer than its symbol")
    return seq, symbol[_PREFIX.size : _PREFIX.size + length]
