"""The experimental TCP options of this testbed: explicit loss notification, SMART and LT-TCP's.

Read first: RFC 6994 (kind 253, ExIDs); COMPARISON sections 2.3 and 3.1; RFC 9293 section 3.1: a TCP ignores the options
it does not know, so a marked packet does no harm.

| option | octets | on | meaning |
|---|---|---|---|
| ELN | 253, 4, ExID 0xFADE | an ACK | the segment at the ACK's acknowledgement number was lost by corruption |
| SMART permitted | 253, 4, ExID 0xFADF | a SYN | send SMART options: they are understood |
| SMART | 253, 10, ExID 0xFADF, number (4), length (2) | an ACK | the segment that caused this ACK |
| LT permitted | 253, 4, ExID 0xFAE0 | a SYN | FEC segments are understood, and ACKs have reports |
| FEC | 253, 14, ExID 0xFAE0, start (4), k, index, last (2), serial (2) | data | redundancy (docs/lt-tcp.md) |
| report | 253, 9, ExID 0xFAE0, count (2), serial (2), need (1) | an ACK | what has arrived (docs/lt-tcp.md) |

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
LT_EXID: Final = b"\xfa\xe0"
LT_PERMITTED: Final = Option(EXPERIMENTAL, LT_EXID)
_FEC_BYTES: Final = 12
_REPORT_BYTES: Final = 7


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


def permits_lt(segment: Segment) -> bool:
    """Whether a SYN permits FEC segments and reports."""
    return bool(segment.flags & SYN) and LT_PERMITTED in segment.extra


def fec_option(start: int, members: int, index: int, last: int, serial: int) -> Option:
    """Return the option of a FEC segment: symbol `index` behind the `members` of the block at `start` (32-bit).

    `last` is the length of the last member, octets; `serial` counts segments (16-bit). Raises OverflowError for numbers
    that do not fit their fields.
    """
    head = LT_EXID + start.to_bytes(4, "big") + members.to_bytes(1, "big") + index.to_bytes(1, "big")
    return Option(EXPERIMENTAL, head + last.to_bytes(2, "big") + serial.to_bytes(2, "big"))


def fec_of(segment: Segment) -> tuple[int, int, int, int, int] | None:
    """Return start, members, index, last and serial of a FEC segment; None of any other segment."""
    for option in segment.extra:
        data = option.data
        if option.kind == EXPERIMENTAL and len(data) == _FEC_BYTES and data.startswith(LT_EXID):
            start, last = int.from_bytes(data[2:6], "big"), int.from_bytes(data[8:10], "big")
            return start, data[6], data[7], last, int.from_bytes(data[10:], "big")
    return None


def report_option(count: int, serial: int, need: int) -> Option:
    """Return the option of an ACK that reports `count` segments in all and the latest FEC segment's `serial` (both
    16-bit), and how many symbols the first incomplete block still needs; 0: not known.

    Raises OverflowError for numbers that do not fit their fields.
    """
    numbers = count.to_bytes(2, "big") + serial.to_bytes(2, "big") + need.to_bytes(1, "big")
    return Option(EXPERIMENTAL, LT_EXID + numbers)


def report_of(segment: Segment) -> tuple[int, int, int] | None:
    """Return count, serial and need of an ACK with a report; None of any other segment."""
    for option in segment.extra:
        data = option.data
        if option.kind == EXPERIMENTAL and len(data) == _REPORT_BYTES and data.startswith(LT_EXID):
            return int.from_bytes(data[2:4], "big"), int.from_bytes(data[4:6], "big"), data[6]
    return None
