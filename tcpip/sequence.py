"""Serial numbers of 32 bits (RFC 9293 section 3.4): unwrapped once at the border, plain integers inside."""

MASK = 0xFFFF_FFFF
_HALF = 0x8000_0000


def unwrap(number: int, near: int) -> int:
    """Return the unbounded integer congruent to the 32-bit `number` that is nearest to `near`."""
    return near + ((number - near + _HALF) & MASK) - _HALF
