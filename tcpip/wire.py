"""Encodes segments as IPv4 packets and decodes them.

Read first: RFC 791 section 3.1 and RFC 9293 section 3.1 (headers), RFC 1071 (the checksum), `segment.py`.

Rules kept
- `parse(emit(segment))` has the fields of `segment`, and `emit` writes `len(segment)` octets.
- Octets become a segment, or a SegmentError that names the failed check; both checksums are checked, so damaged octets
  are refused.
- Options with a field go there; all others go to `extra`, which connections ignore. So an option that Linux ignores (of
  a wrong length, a second one of its kind, a SYN's on another segment, an MSS of 0) is ignored here, too. Options with
  inconsistent lengths are an error; Linux accepts such a segment without them.
- Sent packets have DF, 64 hops and DSCP 0, and the options in the order of Linux: MSS, SACK permitted, timestamps,
  window scale, SACK, each ending on a word's boundary as far as the padding goes.

Left out: IP options and fragments (both refused), urgent pointers (0), reserved bits (ignored).
"""

import struct
from typing import Final, Literal

from tcpip.segment import (
    AE,
    HEADER_BYTES,
    IP_HEADER_BYTES,
    MAX_OPTION_BYTES,
    SYN,
    TCP_HEADER_BYTES,
    Flow,
    Option,
    SackBlock,
    Segment,
    SynOptions,
    Timestamps,
)

Check = Literal["length", "version", "IHL", "checksum", "fragment", "protocol", "data offset", "options"]

PROTOCOL_TCP: Final = 6
TTL: Final = 64

#: RFC 9293 section 3.2, RFC 7323, RFC 2018
_END: Final = 0
_NOP: Final = 1
_MSS: Final = 2
_WINDOW_SCALE: Final = 3
_SACK_PERMITTED: Final = 4
_SACK: Final = 5
_TIMESTAMPS: Final = 8

_VERSION_IHL: Final = 0x45
_DONT_FRAGMENT: Final = 0x4000
#: more fragments, and the offset
FRAGMENT: Final = 0x3FFF
_TTL_PROTOCOL: Final = TTL << 8 | PROTOCOL_TCP
#: RFC 1071: a sum of 16-bit words in ones' complement is a remainder modulo this
_MODULUS: Final = 0xFFFF

# version to destination address, ports to urgent pointer
_HEADERS: Final = struct.Struct(">BBHHHHHIIHHIIBBHHH")
_TIMESTAMPS_ALONE: Final = struct.Struct(">III")
_TWO_WORDS: Final = struct.Struct(">II")
_NOP_NOP_TIMESTAMPS: Final = _NOP << 24 | _NOP << 16 | _TIMESTAMPS << 8 | 10
_ADDRESSES_AT: Final = 12


class SegmentError(ValueError):
    """Octets that are no TCP segment; `check` names the failed check."""

    def __init__(self, check: Check, what: str) -> None:
        super().__init__(f"{check}: {what}")
        self.check: Check = check


def emit(segment: Segment) -> bytes:
    """Return the segment as one IPv4 packet.

    Raises ValueError when its payload has only a size, or its options do not fit the header.
    """
    payload = segment.payload or b""
    nbytes = segment.nbytes
    length = segment.length
    if len(payload) != length:
        raise ValueError(f"a segment of {length} octets has a payload of {len(payload)}: only octets can be sent")
    flow = segment.flow
    source, source_port, destination, destination_port = flow
    seq, ack, window, timestamps = segment.seq, segment.ack, segment.window, segment.timestamps
    option_bytes = nbytes - length - HEADER_BYTES
    if not option_bytes:
        options = b""
    elif option_bytes == 12 and timestamps is not None and segment.syn is None and not segment.extra:
        options = _TIMESTAMPS_ALONE.pack(_NOP_NOP_TIMESTAMPS, *timestamps)
    elif option_bytes <= MAX_OPTION_BYTES:
        options = emit_options(segment, option_bytes)
    else:
        raise ValueError(f"{option_bytes} octets of options: at most {MAX_OPTION_BYTES} fit")
    flags = segment.flags
    # the octet of the data offset, with AE
    offset = TCP_HEADER_BYTES + option_bytes << 2 | flags >> 8
    flags &= 0xFF
    # each field adds to the checksums as a number; only payload and options are read as words
    addresses = source + destination
    ip_sum = (_VERSION_IHL << 8) + segment.ecn + nbytes + segment.number + _DONT_FRAGMENT + _TTL_PROTOCOL + addresses
    tcp_sum = addresses + PROTOCOL_TCP + nbytes - IP_HEADER_BYTES + source_port + destination_port + seq + ack
    tcp_sum += (offset << 8) + flags + window + int.from_bytes(options, "big")
    tcp_sum += int.from_bytes(payload, "big") << ((length & 1) << 3)
    headers = _HEADERS.pack(
        _VERSION_IHL,
        segment.ecn,
        nbytes,
        segment.number,
        _DONT_FRAGMENT,
        _TTL_PROTOCOL,
        -ip_sum % _MODULUS,
        source,
        destination,
        source_port,
        destination_port,
        seq,
        ack,
        offset,
        flags,
        window,
        -tcp_sum % _MODULUS,
        0,
    )
    return b"".join((headers, options, payload))


def parse(octets: bytes) -> Segment:
    """Return the segment in an IPv4 packet; octets behind the packet's own length are padding of its link.

    Raises SegmentError.
    """
    if len(octets) < HEADER_BYTES:
        raise SegmentError("length", f"{len(octets)} octets do not hold the {HEADER_BYTES} of both headers")
    (
        version_ihl,
        traffic_class,
        nbytes,
        number,
        fragment,
        ttl_protocol,
        _,
        source,
        destination,
        source_port,
        destination_port,
        seq,
        ack,
        offset,
        flags,
        window,
        _,
        _,
    ) = _HEADERS.unpack_from(octets)
    if version_ihl != _VERSION_IHL:
        if version_ihl >> 4 != _VERSION_IHL >> 4:
            raise SegmentError("version", f"IP version {version_ihl >> 4}, not 4")
        raise SegmentError("IHL", f"{version_ihl & 15} words of IP header, not 5: IP options are not taken")
    if not HEADER_BYTES <= nbytes <= len(octets):
        raise SegmentError("length", f"a total length of {nbytes} in {len(octets)} octets")
    if int.from_bytes(octets[:IP_HEADER_BYTES], "big") % _MODULUS:
        raise SegmentError("checksum", "that of the IP header is wrong")
    if fragment & FRAGMENT:
        raise SegmentError("fragment", f"one at {(fragment & 0x1FFF) * 8}")
    if ttl_protocol & 0xFF != PROTOCOL_TCP:
        raise SegmentError("protocol", f"{ttl_protocol & 0xFF}, not {PROTOCOL_TCP}")
    # the addresses lie right before the TCP header: only protocol and length are missing in this sum
    words = int.from_bytes(octets[_ADDRESSES_AT:nbytes], "big") << ((nbytes & 1) << 3)
    if (words + PROTOCOL_TCP + nbytes - IP_HEADER_BYTES) % _MODULUS:
        raise SegmentError("checksum", "that of the TCP segment is wrong")
    payload_at = IP_HEADER_BYTES + (offset >> 4 << 2)
    if not HEADER_BYTES <= payload_at <= nbytes:
        raise SegmentError("data offset", f"{offset >> 4} words in a segment of {nbytes - IP_HEADER_BYTES} octets")
    sack: tuple[SackBlock, ...] = ()
    timestamps: Timestamps | None = None
    syn: SynOptions | None = None
    extra: tuple[Option, ...] = ()
    if payload_at > HEADER_BYTES:
        if payload_at == HEADER_BYTES + 12:
            head, *numbers = _TIMESTAMPS_ALONE.unpack_from(octets, HEADER_BYTES)
            if head == _NOP_NOP_TIMESTAMPS:
                timestamps = (numbers[0], numbers[1])
        if timestamps is None:
            sack, timestamps, syn, extra = _parse_options(octets[HEADER_BYTES:payload_at], bool(flags & SYN))
    length = nbytes - payload_at
    if offset & 1:
        flags |= AE
    return Segment(
        Flow(source, source_port, destination, destination_port),
        seq,
        ack,
        flags,
        window,
        length,
        octets[payload_at:nbytes] if length else None,
        sack,
        timestamps,
        syn,
        extra,
        traffic_class & 3,
        number,
    )


def emit_options(segment: Segment, nbytes: int) -> bytes:
    parts: list[bytes] = []
    syn = segment.syn
    if syn is not None:
        if syn.mss is not None:
            parts.append(struct.pack(">BBH", _MSS, 4, syn.mss))
        if syn.sack_permitted:
            parts.append(bytes((_SACK_PERMITTED, 2)))
    if segment.timestamps is not None:
        parts.append(struct.pack(">BBII", _TIMESTAMPS, 10, *segment.timestamps))
    if syn is not None and syn.window_scale is not None:
        parts.append(bytes((_WINDOW_SCALE, 3, syn.window_scale)))
    if segment.sack:
        parts.append(bytes((_SACK, 2 + 8 * len(segment.sack))))
        parts[-1] += b"".join(_TWO_WORDS.pack(left, right) for left, right in segment.sack)
    parts += [bytes((option.kind, 2 + len(option.data))) + option.data for option in segment.extra]
    padding = nbytes - sum(map(len, parts))
    options = b""
    for part in parts:
        before = -(len(options) + len(part)) & 3
        if before <= padding:
            padding -= before
            options += bytes((_NOP,)) * before
        options += part
    return options


def _parse_options(
    octets: bytes, is_syn: bool
) -> tuple[tuple[SackBlock, ...], Timestamps | None, SynOptions | None, tuple[Option, ...]]:
    sack: tuple[SackBlock, ...] = ()
    timestamps: Timestamps | None = None
    mss: int | None = None
    window_scale: int | None = None
    sack_permitted = False
    extra: list[Option] = []
    at, end = 0, len(octets)
    while at < end:
        kind = octets[at]
        if kind == _END:
            break
        if kind == _NOP:
            at += 1
            continue
        length = octets[at + 1] if at + 1 < end else 0
        if not 2 <= length <= end - at:
            raise SegmentError("options", f"kind {kind} says it has {length} octets where {end - at} are left")
        data = octets[at + 2 : at + length]
        at += length
        if kind == _TIMESTAMPS and length == 10 and timestamps is None:
            first, second = _TWO_WORDS.unpack(data)
            timestamps = (first, second)
        elif kind == _SACK and length > 2 and length % 8 == 2 and not sack:
            sack = tuple((left, right) for left, right in _TWO_WORDS.iter_unpack(data))
        elif is_syn and kind == _MSS and length == 4 and mss is None and any(data):
            mss = int.from_bytes(data, "big")
        elif is_syn and kind == _WINDOW_SCALE and length == 3 and window_scale is None:
            window_scale = data[0]
        elif is_syn and kind == _SACK_PERMITTED and length == 2 and not sack_permitted:
            sack_permitted = True
        else:
            extra.append(Option(kind, data))
    syn = None
    if mss is not None or window_scale is not None or sack_permitted:
        syn = SynOptions(mss, window_scale, sack_permitted)
    return sack, timestamps, syn, tuple(extra)
