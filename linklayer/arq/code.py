"""Cuts a packet into fragments of equal length; any `data` of them restore the packet.

`ReedSolomon` is zfec: the first `data` fragments are the packet's octets, the others redundancy. `Counting` obeys the
same contract for packets of virtual time, which have a size and no octets: a fragment remembers its packet.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sized
from functools import lru_cache
from typing import Final, cast

import zfec
from mypy_extensions import mypyc_attr
from typing_extensions import override

#: zfec's field has so many elements
MAX_FRAGMENTS: Final = 255
_encoder = lru_cache(64)(zfec.Encoder)
_decoder = lru_cache(64)(zfec.Decoder)


@mypyc_attr(allow_interpreted_subclasses=True)
class FragmentCode(ABC):
    """Makes `total` fragments of a packet; any `data` of them give it again."""

    @abstractmethod
    def cut(self, packet: Sized, data: int, total: int) -> list[Sized]:
        """Return the fragments of a packet, each ceil(len(packet) / data) octets long."""

    @abstractmethod
    def join(self, length: int, data: int, fragments: Mapping[int, Sized]) -> Sized:
        """Return the packet of `length` octets; needs `data` fragments, by index.

        Raises ValueError for fragments that cannot be of one packet.
        """


class ReedSolomon(FragmentCode):
    """zfec over octets."""

    @override
    def cut(self, packet: Sized, data: int, total: int) -> list[Sized]:
        width = fragment_bytes(len(packet), data)
        padded = cast(bytes, packet).ljust(data * width, b"\0")
        pieces = [padded[start : start + width] for start in range(0, data * width, width)]
        return cast("list[Sized]", _encoder(data, total).encode(pieces, list(range(total))))

    @override
    def join(self, length: int, data: int, fragments: Mapping[int, Sized]) -> Sized:
        width = fragment_bytes(length, data)
        if any(len(fragment) != width for fragment in fragments.values()):
            raise ValueError(f"fragments of a packet of {length} octets in {data} have {width} octets")
        chosen = dict(list(fragments.items())[:data])
        # a code's fragments do not depend on how many there are
        pieces = _decoder(data, max(data, *chosen) + 1).decode(list(chosen.values()), list(chosen))
        return b"".join(pieces)[:length]


class CountedFragment:
    """A fragment that has a size and remembers its packet."""

    __slots__ = ("nbytes", "packet")

    def __init__(self, nbytes: int, packet: Sized) -> None:
        self.nbytes = nbytes
        self.packet = packet

    def __len__(self) -> int:
        return self.nbytes


class Counting(FragmentCode):
    """The stand-in for packets without octets."""

    @override
    def cut(self, packet: Sized, data: int, total: int) -> list[Sized]:
        return [CountedFragment(fragment_bytes(len(packet), data), packet)] * total

    @override
    def join(self, length: int, data: int, fragments: Mapping[int, Sized]) -> Sized:
        return cast(CountedFragment, next(iter(fragments.values()))).packet


def fragment_bytes(length: int, data: int) -> int:
    """Return the octets of each fragment of a packet of `length` octets."""
    return -(-length // data)
