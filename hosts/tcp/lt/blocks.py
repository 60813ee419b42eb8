"""A block: a range of a connection's octets, cut into equal symbols, and the code over them.

Read first: docs/lt-tcp.md; `linklayer/slacp/fec.py` for the same idea over frames.

Rules: symbol i of a block is the octets from `start` + i * `width` on, however the segments were cut that carried them.
The last symbol may be shorter; in the code it is padded with zeros. The code is Reed-Solomon over octets (zfec): any
`members` of all symbols give the block, and symbol `members` + j does not depend on how many redundant ones there are.
"""

from functools import lru_cache
from typing import Final

import zfec

#: symbols of a code of 8 bits, redundancy included
SYMBOLS: Final = 256
_encoder = lru_cache(SYMBOLS)(zfec.Encoder)
_decoder = lru_cache(SYMBOLS)(zfec.Decoder)


class Block:
    """[start, end) of the sequence numbers, unwrapped, in symbols of `width` octets."""

    def __init__(self, start: int, end: int, width: int) -> None:
        self.start = start
        self.end = end
        self.width = width
        self.members = (end - start + width - 1) // width

    @property
    def last(self) -> int:
        """Octets of the last symbol."""
        return self.end - self.start - (self.members - 1) * self.width

    def symbol(self, index: int) -> tuple[int, int]:
        """Return the octets of a member, [start, end)."""
        start = self.start + index * self.width
        end = start + self.width
        return start, end if end < self.end else self.end


def encode(octets: bytes, block: Block, index: int) -> bytes:
    """Return a redundant symbol, `index` from 0 on, of a block with these octets."""
    width, members = block.width, block.members
    padded = octets.ljust(members * width, b"\0")
    symbols = [padded[at : at + width] for at in range(0, members * width, width)]
    encoded: list[bytes] = _encoder(members, SYMBOLS).encode(symbols, [members + index])
    return encoded[0]


def decode(symbols: dict[int, bytes], block: Block) -> bytes | None:
    """Return all octets of a block from `members` of its symbols, redundant ones at `members` and above.

    None where the padding of the last symbol shows that they do not belong together.
    """
    members = block.members
    decoded: list[bytes] = _decoder(members, SYMBOLS).decode(list(symbols.values()), list(symbols))
    octets = b"".join(decoded)
    length = block.end - block.start
    return None if any(octets[length:]) else octets[:length]
