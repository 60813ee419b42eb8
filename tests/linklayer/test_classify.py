"""Which channel a packet takes, on real header octets."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklayer.classify import DSCP_EF, DSCP_VOICE_ADMIT, FAST, RELIABLE, Classifier

ICMP, TCP, UDP, FRAGMENT = 1, 6, 17, 44


def ipv4(protocol: int, dscp: int = 0, ecn: int = 0) -> bytes:
    """RFC 791 section 3.1."""
    tos = dscp << 2 | ecn
    addresses = b"\x0a\0\0\1", b"\x0a\0\0\2"
    return struct.pack(">BBHHHBBH4s4s8x", 0x45, tos, 28, 1, 0x4000, 64, protocol, 0, *addresses)


def ipv6(next_header: int, dscp: int = 0, ecn: int = 0, payload: bytes = bytes(8)) -> bytes:
    """RFC 8200 section 3."""
    first = 6 << 28 | dscp << 22 | ecn << 20 | 0xABCDE
    return struct.pack(">IHBB16s16s", first, len(payload), next_header, 64, bytes(16), bytes(16)) + payload


@pytest.mark.parametrize("make", [ipv4, ipv6])
@pytest.mark.parametrize("ecn", [0, 1, 2, 3])
def test_by_protocol_and_dscp(make, ecn: int) -> None:  # type: ignore[no-untyped-def]
    channel = Classifier().channel
    assert channel(make(TCP, ecn=ecn)) == RELIABLE
    assert channel(make(ICMP, ecn=ecn)) == RELIABLE
    assert channel(make(UDP, ecn=ecn)) == FAST
    for dscp in range(64):
        expected = FAST if dscp in (DSCP_EF, DSCP_VOICE_ADMIT) else RELIABLE
        assert channel(make(TCP, dscp=dscp, ecn=ecn)) == expected


def test_octets_captured_on_a_wire() -> None:
    tcp_syn = "4500003c1c4640004006b1e6ac100a63ac100a0c" + "d431005000000000000000" + "00a0027210"
    dns = "450000390000400040117aacc0a80001c0a800c7" + "e14e003500250000"
    voice = "45b800c8000100003f110000c0a80001c0a80002"
    neighbour = "6000000000203afffe800000000000000000000000000001ff0200000000000000000001ff000002" + "8700"
    sip_call = "6b80000000102f40" + "00" * 32
    channel = Classifier().channel
    found = [channel(bytes.fromhex(octets)) for octets in (tcp_syn, dns, voice, neighbour, sip_call)]
    assert found == [RELIABLE, FAST, FAST, RELIABLE, FAST]


def test_without_protocols_only_the_dscp_counts() -> None:
    channel = Classifier(fast_protocols=frozenset()).channel
    assert channel(ipv4(UDP)) == RELIABLE
    assert channel(ipv4(UDP, dscp=DSCP_EF)) == FAST


@given(st.integers(0, 63), st.integers(0, 255))
def test_a_packet_without_octets_goes_by_the_same_two_numbers(dscp: int, protocol: int) -> None:
    classifier = Classifier()
    for packet in (ipv4(protocol, dscp=dscp), ipv6(protocol, dscp=dscp)):
        assert classifier.channel_of(dscp, protocol) == classifier.channel(packet)


def test_a_protocol_behind_an_extension_header_is_not_looked_for() -> None:
    assert Classifier().channel(ipv6(FRAGMENT, payload=bytes([UDP]) + bytes(15))) == RELIABLE


PREFIXES = st.builds(lambda make, length: make(UDP)[:length], st.sampled_from([ipv4, ipv6]), st.integers(0, 28))


@given(st.binary(max_size=60) | PREFIXES)
def test_anything_has_a_channel_and_what_is_no_packet_is_reliable(octets: bytes) -> None:
    channel = Classifier().channel(octets)
    assert channel in (RELIABLE, FAST)
    if len(octets) < 20 or octets[0] >> 4 not in (4, 6):
        assert channel == RELIABLE
