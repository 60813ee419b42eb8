"""The receiving half of LT-TCP: FEC segments wait until their block can be decoded.

Read first: LT-TCP section III.A.2; docs/lt-tcp.md; `blocks.py`.

Rules
- A FEC segment whose block has an octet outside the window offered, or before the octets that are kept, is ignored, and
  so is one that contradicts itself or another. No segment raises.
- FEC segments take as many octets as the receive buffer at most, and the octets that were received in order and may
  belong to a block, twice as many.
- Octets that were received are never replaced. Where they differ from decoded ones, the block is given up.
"""

from typing import Final

from common.sequence import unwrap
from hosts.tcp.buffers import Reassembly
from hosts.tcp.lt.blocks import SYMBOLS, Block, decode

#: blocks that wait at most
_MOST_BLOCKS: Final = 32


class _Waiting(Block):
    """A block that lacks symbols, and its redundant symbols that have come; None where only sizes count."""

    def __init__(self, start: int, end: int, width: int) -> None:
        super().__init__(start, end, width)
        self.redundant: dict[int, bytes | None] = {}


class Decoder:
    """Reconstructs the data of one receiver; `reassembly` is the receiver's, `most` its buffer in octets."""

    def __init__(self, reassembly: Reassembly, most: int) -> None:
        self._reassembly = reassembly
        self._most = most
        self._blocks: list[_Waiting] = []
        #: octets of redundancy that wait
        self._stored = 0
        #: the latest octets that were received in order
        self._kept = bytearray()
        #: segments with payload that have come, and the serial of the latest FEC segment
        self.count = 0
        self.serial = 0
        #: octets reconstructed
        self.recovered = 0

    def is_near(self, distance: int) -> bool:
        """Whether a segment that begins `distance` octets behind the next one expected, or before it, can be one of
        this connection: no farther away than the buffer and a block.
        """
        return -self._most <= distance <= self._most

    def keep(self, octets: bytes | bytearray) -> None:
        """Take octets that were received in order."""
        kept = self._kept
        kept += octets
        if len(kept) > 2 * self._most:
            del kept[: -self._most]

    def handle_fec(
        self, fec: tuple[int, int, int, int, int], payload: bytes | None, width: int, nxt: int, limit: int
    ) -> bool:
        """Take a FEC segment with its option's numbers and a payload of `width` octets; return whether its block was
        reconstructed. `nxt` is the next octet expected, `limit` the octet behind the window.
        """
        number, members, index, last, self.serial = fec
        if not members or members + index >= SYMBOLS or not 0 < last <= width:
            return False
        start = unwrap(number, nxt)
        end = start + (members - 1) * width + last
        if payload is not None and len(payload) != width:
            return False
        oldest = nxt - (self._most if payload is None else len(self._kept))
        if not nxt < end <= limit or start < oldest:
            return False
        block = self._block(start, end, width)
        if block is None or index in block.redundant or self._stored + width > self._most:
            return False
        if block.redundant and (next(iter(block.redundant.values())) is None) != (payload is None):
            return False
        if not block.redundant:
            self._blocks.append(block)
        block.redundant[index] = payload
        self._stored += width
        return self._reconstruct(block, nxt)

    def _block(self, start: int, end: int, width: int) -> _Waiting | None:
        for block in self._blocks:
            if block.start == start and block.end == end and block.width == width:
                return block
        return _Waiting(start, end, width) if len(self._blocks) < _MOST_BLOCKS else None

    def handle_data(self, nxt: int) -> bool:
        """Data has come, the next octet expected is `nxt`; return whether a block was reconstructed."""
        done = False
        for block in list(self._blocks):
            if block.end <= nxt:
                self._forget(block)
            elif self._reconstruct(block, nxt):
                done = True
        return done

    def need(self, nxt: int) -> int:
        """Return how many symbols the block of the next octet expected still needs; 0: not known."""
        for block in self._blocks:
            if block.start <= nxt < block.end:
                return max(0, len(self._missing(block, nxt)) - len(block.redundant))
        return 0

    def _missing(self, block: Block, nxt: int) -> list[int]:
        """Return the members that are not here, or not whole."""
        first = (nxt - block.start) // block.width if nxt > block.start else 0
        found = []
        for index in range(first, block.members):
            start, end = block.symbol(index)
            if self._reassembly.missing(max(start, nxt), end):
                found.append(index)
        return found

    def _reconstruct(self, block: _Waiting, nxt: int) -> bool:
        missing = self._missing(block, nxt)
        if len(missing) > len(block.redundant):
            return False
        self._forget(block)
        octets: bytes | None = None
        if next(iter(block.redundant.values())) is not None:
            octets = self._decode(block, missing, nxt)
            if octets is None:
                return False
        reassembly = self._reassembly
        for index in missing:
            first, stop = block.symbol(index)
            for start, end in reassembly.missing(max(first, nxt), stop):
                piece = None if octets is None else octets[start - block.start : end - block.start]
                reassembly.add(start, end, piece)
                self.recovered += end - start
        return bool(missing)

    def _decode(self, block: _Waiting, missing: list[int], nxt: int) -> bytes | None:
        """Return the octets of a block; None where they do not fit those that are here."""
        symbols: dict[int, bytes] = {}
        for index in range(block.members):
            if index not in missing:
                start, end = block.symbol(index)
                octets = self._octets(start, min(end, max(start, nxt)), nxt)
                if end > nxt:
                    octets += self._reassembly.copy(max(start, nxt), end)
                if len(octets) != end - start:
                    return None
                symbols[index] = octets.ljust(block.width, b"\0")
        for index, redundancy in block.redundant.items():
            if len(symbols) == block.members:
                break
            if redundancy is not None:
                symbols[block.members + index] = redundancy
        decoded = decode(symbols, block)
        if decoded is None:
            return None
        # symbols received in part
        for index in missing:
            start, end = block.symbol(index)
            here = self._octets(start, min(end, max(start, nxt)), nxt)
            if here != decoded[start - block.start : start - block.start + len(here)]:
                return None
            at = max(start, nxt)
            for hole, after in [*self._reassembly.missing(at, end), (end, end)]:
                if hole > at:
                    octets = self._reassembly.copy(at, hole)
                    if octets != decoded[at - block.start : hole - block.start]:
                        return None
                at = after
        return decoded

    def _octets(self, start: int, end: int, nxt: int) -> bytes:
        base = nxt - len(self._kept)
        return bytes(self._kept[start - base : end - base])

    def _forget(self, block: _Waiting) -> None:
        self._blocks.remove(block)
        self._stored -= len(block.redundant) * block.width
