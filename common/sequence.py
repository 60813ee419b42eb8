"""Sequence numbers of 32 bits that wrap: TCP's (RFC 9293 section 3.4), its timestamps (RFC 7323) and SLACP's.

Rule: a number from the network is unwrapped once, at the border of a machine, near a number that the machine knows.
Inside, numbers are plain integers that grow without bound, so `<` and `-` are plain comparison and difference. A
number that leaves the machine is masked. Numbers that are never unwrapped are compared by `precedes` (RFC 1982).
"""

from typing import Final

MASK: Final = 0xFFFF_FFFF
_HALF: Final = 0x8000_0000


def unwrap(number: int, near: int) -> int:
    """Return the unbounded integer congruent to the 32-bit `number` that is nearest to `near`."""
    return near + ((number - near + _HALF) & MASK) - _HALF


def precedes(first: int, second: int) -> bool:
    """Whether one 32-bit number is before another, by less than half the number space."""
    return (first - second) & MASK > _HALF
