"""A common interface to read and change packets: octets on the live tiers, objects in virtual time.

Rules kept
- Damaged, fragmented and encrypted packets, and packets of other protocols, have no view: filters do not touch them.
- A changed packet is a copy that differs in its options or its window, its lengths and its checksums and in nothing
  else (DSCP, ECN, hops, urgent pointer and reserved bits stay).
- An object is marked with CE itself (`Segment.ecn` may change on the way), octets in a copy.
- A signed segment (TCP MD5, RFC 2385; TCP-AO, RFC 5925) is not changed: its receiver would drop it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import filterfalse
from typing import Any, Final

from typing_extensions import override

from tcpip.segment import (
    CE,
    HEADER_BYTES,
    IP_HEADER_BYTES,
    MAX_OPTION_BYTES,
    NOT_ECT,
    IpPacket,
    Option,
    SackBlock,
    Segment,
    option_bytes,
)
from tcpip.wire import FRAGMENT, PROTOCOL_TCP, SegmentError, emit_options, parse

_MODULUS: Final = 0xFFFF
_IPV6_HEADER_BYTES: Final = 40
#: kinds of options: RFC 2018; RFC 2385 and RFC 5925
_SACK: Final = 5
_SIGNATURES: Final = frozenset({19, 29})
#: UDP, the protocol of objects that are no segments
_UDP: Final = 17
#: protocols that begin with two ports: TCP, UDP, DCCP, SCTP, UDP-Lite
_WITH_PORTS: Final = frozenset({PROTOCOL_TCP, _UDP, 33, 132, 136})


class Access(ABC):
    """Reads packets and changes their options, for filters."""

    @abstractmethod
    def view(self, packet: Any) -> Segment | None:
        """Return the TCP segment in a packet, or None without a readable one."""

    @abstractmethod
    def _changed(self, packet: Any, segment: Segment, after: Segment) -> Any:
        """Return a copy of a packet, whose view is `segment`, with the options of `after`."""

    @abstractmethod
    def _with_window(self, packet: Any, segment: Segment, window: int) -> Any:
        """Return a copy of a packet, whose view is `segment`, with another window."""

    def with_window(self, packet: Any, window: int) -> Any:
        """Return a copy with `window` (0 to 65535) in its 16-bit field, or the packet itself."""
        segment = self.view(packet)
        if segment is None or window == segment.window or _is_signed(segment):
            return packet
        return self._with_window(packet, segment, window)

    def with_option(self, packet: Any, option: Option) -> Any | None:
        """Return a copy with one more option, the packet itself if it has that option, or None if that is impossible.

        When the header is full, the last SACK block is removed: it is the oldest, and the next ACK repeats it.
        """
        segment = self.view(packet)
        if segment is None:
            return None
        if option in segment.extra:
            return packet
        found = _options_with(segment, option)
        return None if found is None else self._changed(packet, segment, _copy(segment, *found))

    def without_option(self, packet: Any, unwanted: Callable[[Option], bool]) -> Any:
        """Return a copy without the experimental or unknown options that are `unwanted`, or the packet itself."""
        segment = self.view(packet)
        if segment is None:
            return packet
        extra = tuple(filterfalse(unwanted, segment.extra))
        if len(extra) == len(segment.extra) or _is_signed(segment):
            return packet
        return self._changed(packet, segment, _copy(segment, segment.sack, extra))

    def with_sack(self, packet: Any, sack: tuple[SackBlock, ...]) -> Any:
        """Return a copy with `sack` alone of its SACK blocks, or the packet itself."""
        segment = self.view(packet)
        if segment is None or sack == segment.sack or _is_signed(segment):
            return packet
        # a second SACK option must not replace the first
        extra = segment.extra if sack else tuple(option for option in segment.extra if option.kind != _SACK)
        return self._changed(packet, segment, _copy(segment, sack, extra))


class Objects(Access):
    """Packets of virtual time: a `Segment` is its own view, other objects are not TCP."""

    @override
    def view(self, packet: Any) -> Segment | None:
        return packet if isinstance(packet, Segment) else None

    def _changed(self, packet: Segment, segment: Segment, after: Segment) -> Segment:
        return after

    def _with_window(self, packet: Segment, segment: Segment, window: int) -> Segment:
        copy = _copy(segment, segment.sack, segment.extra)
        copy.window = window
        return copy


class Octets(Access):
    """Packets of the live tiers: IPv4 octets."""

    @override
    def view(self, packet: bytes) -> Segment | None:
        try:
            return parse(packet)
        except SegmentError:
            return None

    def _changed(self, packet: bytes, segment: Segment, after: Segment) -> bytes:
        payload = packet[segment.nbytes - segment.length : segment.nbytes]
        options = emit_options(after, after.nbytes - after.length - HEADER_BYTES)
        head = bytearray(packet[:HEADER_BYTES])
        head[2:4] = after.nbytes.to_bytes(2, "big")
        head[10:12] = b"\0\0"
        head[10:12] = _checksum(bytes(head[:IP_HEADER_BYTES]), 0)
        head[32] = (HEADER_BYTES - IP_HEADER_BYTES + len(options)) << 2 | head[32] & 0x0F
        head[36:38] = b"\0\0"
        tcp = bytes(head[IP_HEADER_BYTES:]) + options + payload
        pseudo = int.from_bytes(head[12:20], "big") + PROTOCOL_TCP + len(tcp)
        head[36:38] = _checksum(tcp, pseudo)
        return bytes(head) + options + payload

    def _with_window(self, packet: bytes, segment: Segment, window: int) -> bytes:
        checksum = _updated(int.from_bytes(packet[36:38], "big"), segment.window, window)
        return packet[:34] + window.to_bytes(2, "big") + checksum.to_bytes(2, "big") + packet[38:]


def with_ce(packet: Any) -> Any | None:
    """Return a packet with CE (RFC 3168 section 5), or None when its sender does not support ECN.

    Octets are IPv4 or IPv6, of any protocol; other octets cannot be marked. Objects have an attribute `ecn`.
    """
    if isinstance(packet, bytes):
        return _octets_with_ce(packet)
    if getattr(packet, "ecn", NOT_ECT) == NOT_ECT:
        return None
    packet.ecn = CE
    return packet


def ecn_of(packet: Any) -> int:
    """Return the ECN field of a packet (RFC 3168 section 5), NOT_ECT where there is none to be read."""
    if isinstance(packet, bytes):
        version = packet[0] >> 4 if packet else 0
        if version == 4 and len(packet) >= IP_HEADER_BYTES:
            return packet[1] & CE
        if version == 6 and len(packet) >= _IPV6_HEADER_BYTES:
            return packet[1] >> 4 & CE
        return NOT_ECT
    found: int = getattr(packet, "ecn", NOT_ECT)
    return found


def flow_key(packet: Any) -> int:
    """Return a number that packets of the same protocol, addresses and ports share; 0: no header of IP can be read.

    Octets are IPv4 or IPv6. Fragments, other protocols and what is behind an extension header of IPv6 have no ports
    here. An object and its octets have the same number.
    """
    if isinstance(packet, bytes):
        return _flow_key_of_octets(packet)
    if not isinstance(packet, IpPacket):
        return 0
    source, source_port, destination, destination_port = packet.flow
    protocol = PROTOCOL_TCP if isinstance(packet, Segment) else _UDP
    # the last five octets first: they are a small number
    return (source << 32 | destination) << 40 | (source_port << 24 | destination_port << 8 | protocol)


def _flow_key_of_octets(packet: bytes) -> int:
    version = packet[0] >> 4 if packet else 0
    if version == 4 and len(packet) >= IP_HEADER_BYTES:
        begin, end, protocol = 12, IP_HEADER_BYTES, packet[9]
        transport = (packet[0] & 15) * 4
        whole = not (packet[6] << 8 | packet[7]) & FRAGMENT
    elif version == 6 and len(packet) >= _IPV6_HEADER_BYTES:
        begin, end, protocol = 8, _IPV6_HEADER_BYTES, packet[6]
        transport, whole = _IPV6_HEADER_BYTES, True
    else:
        return 0
    last = protocol
    if whole and protocol in _WITH_PORTS and end <= transport <= len(packet) - 4:
        ports = (
            packet[transport] << 24 | packet[transport + 1] << 16 | packet[transport + 2] << 8 | packet[transport + 3]
        )
        last |= ports << 8
    return int.from_bytes(packet[begin:end], "big") << 40 | last


def _octets_with_ce(packet: bytes) -> bytes | None:
    version = packet[0] >> 4 if packet else 0
    if version == 4 and len(packet) >= IP_HEADER_BYTES:
        added = CE - (packet[1] & CE)
        if added == CE:
            return None
        # so that a damaged header keeps a wrong one
        checksum = _updated(int.from_bytes(packet[10:12], "big"), 0, added)
        return packet[:1] + bytes((packet[1] | CE,)) + packet[2:10] + checksum.to_bytes(2, "big") + packet[12:]
    if version == 6 and len(packet) >= _IPV6_HEADER_BYTES and packet[1] >> 4 & CE != NOT_ECT:
        return packet[:1] + bytes((packet[1] | CE << 4,)) + packet[2:]
    return None


def _options_with(segment: Segment, option: Option) -> tuple[tuple[SackBlock, ...], tuple[Option, ...]] | None:
    """SACK blocks and further options of a segment with one more; None without room, or for a signed segment."""
    if _is_signed(segment):
        return None
    sack, extra = segment.sack, (*segment.extra, option)
    while option_bytes(sack, segment.timestamps, segment.syn, extra) > MAX_OPTION_BYTES:
        if len(sack) < 2:
            return None
        sack = sack[:-1]
    return sack, extra


def _is_signed(segment: Segment) -> bool:
    return bool(segment.extra) and any(option.kind in _SIGNATURES for option in segment.extra)


def _copy(segment: Segment, sack: tuple[SackBlock, ...], extra: tuple[Option, ...]) -> Segment:
    copy = Segment(
        segment.flow,
        segment.seq,
        segment.ack,
        segment.flags,
        segment.window,
        segment.length,
        segment.payload,
        sack,
        segment.timestamps,
        segment.syn,
        extra,
        segment.ecn,
        segment.number,
    )
    copy.timed_at = segment.timed_at
    return copy


def _updated(checksum: int, before: int, after: int) -> int:
    """A checksum once a 16-bit word that it covers has changed (RFC 1624, equation 3)."""
    total = _MODULUS - checksum + _MODULUS - before + after
    while total > _MODULUS:
        total = (total & _MODULUS) + (total >> 16)
    return _MODULUS - total


def _checksum(octets: bytes, start: int) -> bytes:
    """The Internet checksum (RFC 1071) of octets, with an initial sum."""
    total = start + (int.from_bytes(octets, "big") << ((len(octets) & 1) << 3))
    return (-total % _MODULUS).to_bytes(2, "big")
