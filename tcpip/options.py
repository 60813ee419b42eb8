"""The experimental TCP options of this testbed: explicit loss notification and SMART.

Read first: RFC 6994 (kind 253, ExIDs); COMPARISON sections 2.3 and 3.1; RFC 9293 section 3.1: a TCP ignores the options
it does not know, so a marked packet does no harm.

| option | octets | on | meaning |
|---|---|---|---|
| ELN | 253, 4, ExID 0xFADE | an ACK | the segment at the ACK's acknowledgement number was lost by corruption |
| SMART permitted | 253, 4, ExID 0xFADF | a SYN | send SMART options: they are understood |
| SMART | 253, 10, ExID 0xFADF, number (4), length (2) | an ACK | the segment that caused this ACK |

The ExIDs are 16-bit ones of our own choice; they are not registered.
"""

from typing import Final

from common.sequence import MASK
from tcpip.segment import SYN, Option, Segment

#: RFC 6994 section 3: the experimental option kind
EXPERIMENTAL: Final = 253
ELN_EXID: Final = b"\xfa\xde"
SMART_EXID: Final = b"\xfa\xdf"

ELN: Final = Option(EXPERIMENTAL, ELN_EXID)
SMART_PERMITTED: Final = Option(EXPERIMENTAL, SMART_EXID)
_SMART_BYTES: Final = 8


def has_eln(segment: Segment) -> bool:
    """Whether an ACK reports that the segment at its acknowledgement number was lost by corruption."""
    return ELN in segment.extra


def permits_smart(segment: Segment) -> bool:
    """Whether a SYN permits SMART options."""
    return bool(segment.flags & SYN) and SMART_PERMITTED in segment.extra


def smart_option(seq: int, length: int) -> Option:
    """Return the option for an ACK whose cause is the segment of `length` octets from `seq` (32-bit).

    Raises OverflowError for numbers that do not fit their fields.
    """
    return Option(EXPERIMENTAL, SMART_EXID + seq.to_bytes(4, "big") + length.to_bytes(2, "big"))


def smart_of(segment: Segment) -> tuple[int, int] | None:
    """Return the cause of an ACK, as 32-bit [left, right) like a SACK block; None without a SMART option."""
    for option in segment.extra:
        if is_smart(option):
            seq = int.from_bytes(option.data[2:6], "big")
            return seq, (seq + int.from_bytes(option.data[6:], "big")) & MASK
    return None


def is_smart(option: Option) -> bool:
    """Whether an option names the cause of an ACK."""
    return option.kind == EXPERIMENTAL and len(option.data) == _SMART_BYTES and option.data.startswith(SMART_EXID)
