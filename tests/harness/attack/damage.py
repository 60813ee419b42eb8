"""Octets as a medium damages them."""

from random import Random


def mutated(rng: Random, octets: bytes) -> bytes:
    """Return octets with a few bits flipped, cut, or other ones."""
    kind = rng.random()
    if kind < 0.1:
        return rng.randbytes(rng.randrange(80))
    if kind < 0.3:
        return octets[: rng.randrange(len(octets))]
    broken = bytearray(octets)
    for _ in range(rng.choice((1, 2, 4, 8))):
        broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
    return bytes(broken)
