"""Segments as octets: what goes in comes out, and what is no segment says so."""

import random
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcpip.segment import (
    ACK,
    CE,
    ECT0,
    MAX_OPTION_BYTES,
    PSH,
    SYN,
    Flow,
    Option,
    Segment,
    SynOptions,
    option_bytes,
)
from tcpip.wire import Check, SegmentError, emit, parse
from tests.harness.checked import fields
from tests.harness.octets import changed, with_checksums
from tests.harness.tshark import capture, needs_tshark, rows

FLOW = Flow(0x0A4D0102, 40000, 0x0A4D0202, 5001)
#: IP packets, by the registry of link-layer header types
LINKTYPE_RAW = 101

word = st.integers(0, 0xFFFF_FFFF)
port = st.integers(0, 0xFFFF)
flows = st.builds(Flow, word, port, word, port)
syns = st.builds(SynOptions, st.none() | st.integers(1, 0xFFFF), st.none() | st.integers(0, 255), st.booleans())
#: those no field exists for, and those in the wrong place: a SYN's on another segment
extras = st.builds(Option, st.sampled_from((2, 3, 4, 6, 34, 253, 254, 255)), st.binary(max_size=12))


@st.composite
def segments(draw: st.DrawFn) -> Segment:
    """Any segment that can be sent, its options such that they fit."""
    flags = draw(st.integers(0, 255))
    payload = draw(st.binary(max_size=64))
    syn = draw(st.none() | syns.filter(lambda syn: syn != SynOptions())) if flags & SYN else None
    sack = tuple(draw(st.lists(st.tuples(word, word), max_size=4)))
    timestamps = draw(st.none() | st.tuples(word, word))
    extra = tuple(draw(st.lists(extras, max_size=3)))
    if flags & SYN:
        extra = tuple(option for option in extra if option.kind > 4)
    while option_bytes(sack, timestamps, syn, extra) > MAX_OPTION_BYTES:
        sack, extra = (sack, extra[1:]) if extra else (sack[1:], extra)
    return Segment(
        draw(flows), draw(word), draw(word), flags, draw(port), len(payload), payload or None,
        sack, timestamps, syn, extra, draw(st.integers(0, 3)), draw(port),
    )  # fmt: skip


def with_options(options: bytes, flags: int = ACK, payload: bytes = b"") -> Segment:
    """What a segment with these octets of options is. Raises SegmentError."""
    octets = bytearray(emit(Segment(FLOW, 1, 2, flags, 3)))
    octets[2:4] = (40 + len(options) + len(payload)).to_bytes(2, "big")
    octets[32] = 5 + len(options) // 4 << 4
    return parse(with_checksums(bytes(octets) + options + payload))


@given(segments(), st.binary(max_size=30))
def test_what_is_emitted_is_parsed_back_whatever_is_behind_it(segment: Segment, padding: bytes) -> None:
    octets = emit(segment)
    assert len(octets) == len(segment)
    assert with_checksums(octets) == octets
    assert fields(parse(octets)) == fields(parse(octets + padding)) == fields(segment)


@given(segments(), st.data())
def test_a_truncated_packet_is_no_segment(segment: Segment, data: st.DataObject) -> None:
    octets = emit(segment)
    with pytest.raises(SegmentError) as caught:
        parse(octets[: data.draw(st.integers(0, len(octets) - 1))])
    assert caught.value.check == "length"


@given(segments(), st.data())
def test_a_damaged_octet_is_noticed(segment: Segment, data: st.DataObject) -> None:
    octets = emit(segment)
    with pytest.raises(SegmentError):
        parse(changed(octets, data.draw(st.integers(0, len(octets) - 1)), data.draw(st.integers(1, 255))))


@given(st.binary(max_size=120))
def test_any_octets_are_a_segment_or_our_own_error(octets: bytes) -> None:
    with pytest.raises(SegmentError):
        parse(octets)


@given(st.binary(max_size=MAX_OPTION_BYTES), st.sampled_from((SYN, ACK)), st.binary(max_size=5))
def test_any_options_are_parsed_or_our_own_error(options: bytes, flags: int, payload: bytes) -> None:
    """Behind right checksums any octets may come; what was made of them survives being sent on."""
    refused: Check | None = None
    try:
        segment = with_options(options + bytes(-len(options) % 4), flags, payload)
    except SegmentError as error:
        refused = error.check
    if refused is not None:
        assert refused == "options"
        return
    assert (segment.payload or b"") == payload
    assert fields(parse(emit(segment))) == fields(segment)


@pytest.mark.parametrize(
    ("at", "octets", "check"),
    [
        (0, b"\x65", "version"),
        (0, b"\x46", "IHL"),
        (0, b"\x44", "IHL"),
        (2, b"\x00\x27", "length"),
        (2, b"\x01\x00", "length"),
        (6, b"\x20\x00", "fragment"),
        (6, b"\x00\x01", "fragment"),
        (9, b"\x11", "protocol"),
        (32, b"\x40", "data offset"),
        (32, b"\xf0", "data offset"),
    ],
)
def test_each_check_is_named(at: int, octets: bytes, check: Check) -> None:
    packet = bytearray(emit(Segment(FLOW, 1, 2, ACK, 3, 5, b"hello")))
    packet[at : at + len(octets)] = octets
    with pytest.raises(SegmentError, match=f"^{check}: ") as caught:
        parse(with_checksums(bytes(packet)))
    assert caught.value.check == check


@pytest.mark.parametrize("at", [8, 20])
def test_each_checksum_is_checked(at: int) -> None:
    with pytest.raises(SegmentError, match=r"^checksum: that of the (IP header|TCP segment) is wrong"):
        parse(changed(emit(Segment(FLOW, 1, 2, ACK, 3)), at))


def test_both_zeros_are_a_right_checksum() -> None:
    """Ones' complement has two: RFC 1071 gives 0x0000, Linux writes 0xffff where a device was to fill it in."""
    checksum = emit(Segment(FLOW, 1, 2, ACK, 3, 2, b"\0\0"))[36:38]
    octets = emit(Segment(FLOW, 1, 2, ACK, 3, 2, checksum))
    assert octets[36:38] == b"\0\0"
    assert fields(parse(octets[:36] + b"\xff\xff" + octets[38:])) == fields(parse(octets))


@pytest.mark.parametrize(
    "options",
    [b"\x08\x01\x01\x01", b"\x08\x00\x01\x01", b"\x01\x01\x01\x08", b"\x08\x0a\x00\x00", b"\x05\x29" + bytes(38)],
)
def test_lengths_that_do_not_add_up_are_an_error(options: bytes) -> None:
    with pytest.raises(SegmentError, match=r"^options: kind "):
        with_options(options)


def test_invalid_options_go_to_extra() -> None:
    segment = with_options(b"\x02\x04\x05\xb4\x05\x0b" + bytes(9) + b"\x08\x03\x01\x01\x00", ACK)
    assert (segment.syn, segment.sack, segment.timestamps) == (None, (), None)
    assert segment.extra == (Option(2, b"\x05\xb4"), Option(5, bytes(9)), Option(8, b"\x01"))
    segment = with_options(b"\x02\x04\x00\x00\x02\x04\x05\xb4\x02\x04\x05\xb5\x00\x02\x00\x00", SYN)
    assert segment.syn == SynOptions(mss=1460)
    assert segment.extra == (Option(2, b"\x00\x00"), Option(2, b"\x05\xb5"))


def test_options_lie_as_linux_lays_them() -> None:
    def options(**what: Any) -> bytes:
        return emit(Segment(FLOW, 1, 2, SYN, 3, **what))[40:]

    times = (1, 2)
    stamp = b"\x08\x0a\x00\x00\x00\x01\x00\x00\x00\x02"
    mss = b"\x02\x04\x05\xb4"
    assert options(syn=SynOptions(1460, 7, True), timestamps=times) == mss + b"\x04\x02" + stamp + b"\x01\x03\x03\x07"
    assert options(syn=SynOptions(1460, 7, True)) == mss + b"\x01\x01\x04\x02\x01\x03\x03\x07"
    assert options(syn=SynOptions(1460, 7)) == mss + b"\x01\x03\x03\x07"
    assert options(timestamps=times) == b"\x01\x01" + stamp
    assert options(sack=((5, 6),)) == b"\x01\x01\x05\x0a" + struct.pack(">II", 5, 6)
    assert options(syn=SynOptions(sack_permitted=True), timestamps=times) == b"\x04\x02" + stamp


def test_a_size_without_octets_cannot_be_sent() -> None:
    with pytest.raises(ValueError, match="only octets can be sent"):
        emit(Segment(FLOW, 1, 2, ACK, 3, 100))
    with pytest.raises(ValueError, match="at most 40 fit"):
        emit(Segment(FLOW, 1, 2, ACK, 3, extra=(Option(253, bytes(39)),)))


@needs_tshark
def test_wireshark_accepts_every_option(tmp_path: Path) -> None:
    rng = random.Random(5)
    back = FLOW.reversed()
    syn = SynOptions(mss=1460, window_scale=7, sack_permitted=True)
    data = [
        Segment(FLOW, 1001 + at, 501, ACK | PSH, 200, size, rng.randbytes(size), timestamps=(8, 7), ecn=ECT0, number=at)
        for at, size in ((0, 1), (1, 2), (3, 1447), (1450, 1448))
    ]
    segments = [
        Segment(FLOW, 1000, 0, SYN, 65535, syn=syn, timestamps=(5, 0)),
        Segment(back, 500, 1001, SYN | ACK, 65535, syn=syn, timestamps=(7, 5)),
        *data,
        Segment(
            back, 501, 1001, ACK, 200, timestamps=(9, 8), sack=((1004, 2451), (1002, 1003)), ecn=CE,
            extra=(Option(253, b"\x0e\x1f"),),
        ),
        Segment(back, 501, 1001, ACK, 200, sack=tuple((1100 + 20 * i, 1110 + 20 * i) for i in range(4))),
    ]  # fmt: skip
    path = capture(tmp_path / "segments.pcapng", [emit(segment) for segment in segments], LINKTYPE_RAW)
    names = (
        "ip.checksum.status", "tcp.checksum.status", "tcp.len", "tcp.options.mss_val", "tcp.options.wscale.shift",
        "tcp.options.timestamp.tsval", "tcp.options.sack_perm", "tcp.options.sack_le", "ip.dsfield.ecn",
    )  # fmt: skip
    options = ("ip.check_checksum:TRUE", "tcp.check_checksum:TRUE", "tcp.relative_sequence_numbers:FALSE")
    found = rows(path, *names, more=[part for option in options for part in ("-o", option)])
    assert [int(row["tcp.len"][0]) for row in found] == [segment.length for segment in segments]
    for row, segment in zip(found, segments, strict=True):
        assert row.get("tcp.options.sack_le", []) == [str(left) for left, _ in segment.sack]
        assert ("tcp.options.timestamp.tsval" in row) == (segment.timestamps is not None)
        assert int(row["ip.dsfield.ecn"][0]) == segment.ecn
        assert (row["ip.checksum.status"], row["tcp.checksum.status"]) == (["1"], ["1"])
    for row in found[:2]:
        assert row["tcp.options.mss_val"] == ["1460"]
        assert row["tcp.options.wscale.shift"] == ["7"]
        assert "tcp.options.sack_perm" in row
    wrong = "_ws.malformed || tcp.option.len.invalid || tcp.options.wscale.shift.invalid || tcp.checksum_bad.expert"
    assert rows(path, "frame.number", where=wrong) == []
