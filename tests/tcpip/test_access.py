"""Reading and changing packets: octets and objects give the same, and nothing changes but what is asked for."""

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hosts.engine.packets import Datagram
from tcpip.access import Access, Objects, Octets, flow_key, with_ce
from tcpip.options import ELN, smart_option
from tcpip.segment import ACK, CE, MAX_OPTION_BYTES, NOT_ECT, Flow, Option, Segment, option_bytes
from tcpip.wire import emit, parse
from tests.harness.checked import fields
from tests.harness.octets import changed, with_checksums
from tests.tcpip.test_wire import segments

FLOW = Flow(0x0A4D0102, 40000, 0x0A4D0202, 5001)
ACCESSES: tuple[Access, ...] = (Objects(), Octets())
by_access = pytest.mark.parametrize("access", ACCESSES, ids=lambda access: type(access).__name__)
#: one that fits no more
FULL = Option(200, bytes(MAX_OPTION_BYTES - 2))


def ack(**changes: Any) -> Segment:
    return Segment(FLOW, 5, 6, ACK, 7, **changes)


def packet(access: Access, segment: Segment) -> Any:
    return segment if isinstance(access, Objects) else emit(segment)


def seen(access: Access, made: Any) -> Segment:
    view = access.view(made)
    assert view is not None
    return view


@given(segments(), st.sampled_from((ELN, smart_option(1, 2))))
def test_octets_and_objects_change_alike(segment: Segment, option: Option) -> None:
    objects, octets = ACCESSES
    one, other = objects.with_option(segment, option), octets.with_option(emit(segment), option)
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert fields(parse(other)) == fields(one)
        assert len(other) == len(one)
    kept = segment.sack[1:]
    assert fields(parse(octets.with_sack(emit(segment), kept))) == fields(objects.with_sack(segment, kept))
    without = [access.without_option(packet(access, segment), lambda option: option.kind > 100) for access in ACCESSES]
    assert fields(parse(without[1])) == fields(without[0])


@given(segments(), st.integers(0, 65_535))
def test_window_changes_alone_and_octets_keep_a_right_checksum(segment: Segment, window: int) -> None:
    objects, octets = ACCESSES
    one, other = objects.with_window(segment, window), octets.with_window(emit(segment) + b"padding", window)
    # parse refuses a wrong checksum
    assert fields(parse(other)) == fields(one)
    assert other.endswith(b"padding")
    assert one is segment or one.window == window
    assert fields(objects.with_window(one, segment.window)) == fields(segment)


@given(segments(), st.sampled_from((ELN, smart_option(1, 2))))
def test_adding_and_removing_an_option_restores_the_segment(segment: Segment, option: Option) -> None:
    for access in ACCESSES:
        before = packet(access, segment)
        made = access.with_option(before, option)
        if made is None or option in segment.extra or seen(access, made).sack != segment.sack:
            continue
        after = access.without_option(made, lambda each: each == option)
        assert fields(seen(access, after)) == fields(segment)


@by_access
def test_the_packet_that_was_given_is_not_changed(access: Access) -> None:
    segment = ack(sack=((1, 2), (3, 4)))
    given_packet, before = packet(access, segment), fields(segment)
    made = access.with_option(given_packet, ELN)
    access.with_sack(given_packet, ())
    assert made is not given_packet
    assert fields(seen(access, given_packet)) == before


@by_access
def test_nothing_to_change_gives_the_packet_itself(access: Access) -> None:
    marked = packet(access, ack(extra=(ELN,), sack=((1, 2),)))
    assert access.with_option(marked, ELN) is marked
    assert access.without_option(marked, lambda option: False) is marked
    assert access.with_sack(marked, ((1, 2),)) is marked


@by_access
def test_a_full_header_gives_its_last_blocks_but_one_at_most(access: Access) -> None:
    blocks = ((1, 2), (3, 4), (5, 6), (7, 8))
    marked = access.with_option(packet(access, ack(sack=blocks)), smart_option(1, 2))
    assert seen(access, marked).sack == blocks[:3]
    only = Option(200, bytes(24))
    # 26 octets, and 10 of the one block that has to stay
    assert access.with_option(packet(access, ack(sack=blocks[:1], extra=(only,))), ELN) is not None
    assert access.with_option(packet(access, ack(sack=blocks[:1], extra=(only,))), smart_option(1, 2)) is None
    assert access.with_option(packet(access, ack(extra=(FULL,))), ELN) is None
    assert option_bytes((), None, None, (FULL,)) == MAX_OPTION_BYTES


def kept(octets: bytes | bytearray) -> tuple[bytes, int]:
    """All but lengths, checksums and options."""
    whole = octets[1:2] + octets[4:10] + octets[12:32] + octets[33:36] + octets[38:40] + octets[-3:]
    return bytes(whole), octets[32] & 0x0F


def test_octets_keep_what_a_segment_has_no_field_for() -> None:
    octets = bytearray(emit(ack(sack=((1, 2),), length=3, payload=b"abc")))
    # DSCP, hops, reserved bits and urgent pointer
    octets[1] |= 46 << 2
    octets[8] = 9
    octets[32] |= 0b0100
    octets[38:40] = struct.pack(">H", 77)
    octets = bytearray(with_checksums(bytes(octets)))
    access = Octets()
    for made in (access.with_option(bytes(octets), ELN), access.with_sack(bytes(octets), ())):
        assert made is not None
        parse(made)
        assert kept(made) == kept(octets)


def test_second_sack_option_does_not_replace_the_first() -> None:
    lying = Segment(FLOW, 1, 1000, ACK, 9000, sack=((2000, 3000),), extra=(Option(5, bytes(8)), ELN))
    made = parse(Octets().with_sack(emit(lying), ()))
    assert (made.sack, made.extra) == ((), (ELN,))
    assert (Objects().with_sack(lying, ()).sack, Objects().with_sack(lying, ()).extra) == ((), (ELN,))


@by_access
@pytest.mark.parametrize("signature", [Option(19, bytes(16)), Option(29, bytes(14))], ids=["MD5", "AO"])
def test_a_signed_segment_is_not_changed(access: Access, signature: Option) -> None:
    signed = packet(access, ack(sack=((2000, 3000),), extra=(signature, ELN)))
    assert access.with_option(signed, smart_option(1, 2)) is None
    assert access.without_option(signed, lambda option: option == ELN) is signed
    assert access.with_sack(signed, ()) is signed


@pytest.mark.parametrize("octets", [b"", b"\x60" + bytes(59), emit(ack())[:-1], emit(ack())[:-1] + b"x"])
def test_octets_without_a_segment_have_no_view(octets: bytes) -> None:
    access = Octets()
    assert access.view(octets) is None
    assert access.with_option(octets, ELN) is None
    assert access.without_option(octets, lambda option: True) is octets
    assert access.with_sack(octets, ()) is octets


def test_objects_that_are_no_segment_have_no_view() -> None:
    assert Objects().view(object()) is None


# -- ECN -----------------------------------------------------------------------------------------------------


@given(segments(), st.integers(0, 3))
def test_ce_is_set_for_ect_senders_in_octets_and_objects(segment: Segment, ecn: int) -> None:
    segment.ecn = ecn
    octets = emit(segment)
    marked = with_ce(octets)
    assert (marked is None) == (with_ce(segment) is None) == (ecn == NOT_ECT)
    if marked is not None:
        assert segment.ecn == CE
        # the parser checks both checksums
        assert fields(parse(marked)) == fields(segment)
        assert marked[12:] == octets[12:]


def test_a_header_with_a_wrong_checksum_keeps_one() -> None:
    segment = ack()
    segment.ecn = 2
    marked = with_ce(changed(emit(segment), 10))
    assert marked is not None
    assert parse(changed(marked, 10)).ecn == CE


def test_ipv6_has_ecn_in_its_traffic_class() -> None:
    rest = bytes(38)
    assert with_ce(b"\x6a\xe7" + rest) == b"\x6a\xf7" + rest
    assert with_ce(b"\x6a\xc7" + rest) is None


@pytest.mark.parametrize(
    "octets", [b"", b"\x45\x02", b"\x45\x02" + bytes(17), b"\x60\x20" + bytes(37), b"\x70\x02" + bytes(60)]
)
def test_what_has_no_ip_header_is_not_marked(octets: bytes) -> None:
    assert with_ce(octets) is None


# -- flows --------------------------------------------------------------------------------------------------------


def ipv4(protocol: int, behind: bytes, *, options: bytes = b"", fragment: int = 0, source: int = 1) -> bytes:
    """A packet of IPv4 without checksums (RFC 791 section 3.1)."""
    head = struct.pack(
        ">BBHHHBBHII", 0x45 + len(options) // 4, 0, 20 + len(options) + len(behind), 9, fragment, 64, protocol, 0,
        source, 2,
    )  # fmt: skip
    return head + options + behind


def ipv6(following: int, behind: bytes, *, source: int = 1) -> bytes:
    """A packet of IPv6 (RFC 8200 section 3)."""
    head = struct.pack(">IHBB", 6 << 28 | 0x12345, len(behind), following, 64)
    return head + source.to_bytes(16, "big") + (2).to_bytes(16, "big") + behind


UDP, ICMP = 17, 1


@given(segments())
def test_an_object_and_its_octets_are_of_one_flow(segment: Segment) -> None:
    assert flow_key(segment) == flow_key(emit(segment)) != 0
    ports = struct.pack(">HH", segment.flow.source_port, segment.flow.destination_port)
    addresses = emit(segment)[12:20]
    datagram = addresses.join((ipv4(UDP, b"")[:12], ports))
    assert flow_key(Datagram(segment.flow, 100, 1, 0)) == flow_key(datagram) != flow_key(segment)


@pytest.mark.parametrize("ip", [ipv4, ipv6])
@pytest.mark.parametrize("protocol", [6, UDP, 33, 132, 136])
def test_protocol_addresses_and_ports_make_a_flow_and_nothing_else_does(ip: Any, protocol: int) -> None:
    key = flow_key(ip(protocol, b"\1\2\3\4 data"))
    assert key == flow_key(ip(protocol, b"\1\2\3\4 other data"))
    others = [
        ip(protocol, b"\1\2\3\5 data"),
        ip(protocol, b"\1\3\3\4 data"),
        ip(protocol, b"\1\2\3\4 data", source=3),
        ip(135, b"\1\2\3\4 data"),
        (ipv6 if ip is ipv4 else ipv4)(protocol, b"\1\2\3\4 data"),
    ]
    assert len({key, *map(flow_key, others)}) == 6


def test_options_move_the_ports() -> None:
    assert flow_key(ipv4(UDP, b"\1\2\3\4", options=bytes(40))) == flow_key(ipv4(UDP, b"\1\2\3\4"))


@pytest.mark.parametrize("ip", [ipv4, ipv6])
def test_a_ping_is_of_the_flow_of_all_pings_between_its_hosts(ip: Any) -> None:
    assert flow_key(ip(ICMP, b"\10\0\1\2")) == flow_key(ip(ICMP, b"\0\0\3\4")) != flow_key(ip(ICMP, b"", source=3))


def test_all_fragments_of_a_packet_are_of_one_flow() -> None:
    first, last = ipv4(UDP, b"\1\2\3\4", fragment=0x2000), ipv4(UDP, b"data", fragment=0x00B9)
    assert flow_key(first) == flow_key(last) != flow_key(ipv4(UDP, b"\1\2\3\4"))
    # DF makes no fragment
    assert flow_key(ipv4(UDP, b"\1\2\3\4", fragment=0x4000)) == flow_key(ipv4(UDP, b"\1\2\3\4"))


@given(st.binary(max_size=60))
def test_any_octets_have_a_flow_and_unreadable_ones_share_one(octets: bytes) -> None:
    version = octets[0] >> 4 if octets else 0
    readable = len(octets) >= {4: 20, 6: 40}.get(version, 1 << 30)
    key = flow_key(octets)
    # a packet whose addresses and protocol are 0 has no number either
    assert key == 0 or readable
    assert flow_key(b"") == flow_key(b"\x45" + bytes(18)) == flow_key(object()) == 0
    assert flow_key(ipv4(UDP, b"\1\2\3")) != 0
