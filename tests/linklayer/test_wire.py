"""SLACP's octets: round trips, padding, truncation, bit errors, and the examples of docs/slacp.md."""

import re
import struct
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.sequence import MASK, unwrap
from common.units import MS
from linklayer.link import FrameError
from linklayer.slacp import SlacpConfig, frames, wire
from linklayer.slacp.config import SlacpOptions
from linklayer.slacp.frames import Ack, Damaged, Data, Fec, Frame, Hello, Sync
from linklayer.slacp.wire import emit, parse
from tests.harness.octets import changed
from tests.harness.slacp_pair import DOCUMENT, documented_frames, sealed

NUMBERS = st.integers(0, 0xFFFF_FFFF)
SHORTS = st.integers(0, 0xFFFF)
CHANNELS = st.integers(0, 15)
OCTETS = st.binary(max_size=40)

NUMBERED_HEADER = (NUMBERS, CHANNELS, NUMBERS, NUMBERS)
FIRST_DATA = st.builds(Data, *NUMBERED_HEADER, SHORTS, OCTETS)
UNPROTECTED = st.builds(Data, *NUMBERED_HEADER, SHORTS, OCTETS, st.just(True))
PROTECTED = st.builds(Data, *NUMBERED_HEADER, SHORTS, OCTETS, st.just(True), SHORTS, st.integers(0, 254))
FECS = st.integers(1, 254).flatmap(
    lambda actual: st.builds(Fec, *NUMBERED_HEADER, SHORTS, st.just(actual), st.integers(actual, 255), OCTETS)
)
SYNCS = st.builds(Sync, *NUMBERED_HEADER)
ACKS = st.builds(Ack, *NUMBERED_HEADER, st.integers(0, (1 << 300) - 1), st.booleans())
HELLOS = st.builds(Hello, NUMBERS, NUMBERS, NUMBERS, st.booleans(), NUMBERS)
NUMBERED = st.one_of(FIRST_DATA, UNPROTECTED, PROTECTED, FECS, SYNCS)
FRAMES = st.one_of(NUMBERED, ACKS, HELLOS)


def remains(frame: Frame) -> Damaged:
    """What is left of a numbered frame when only its header is right."""
    assert isinstance(frame, Data | Fec | Sync)
    seq = frame.seq if isinstance(frame, Data) else frame.base
    return Damaged(frame.tag, frame.channel, frame.tx, seq)


def outcome(octets: bytes) -> Frame | Damaged | None:
    try:
        return parse(octets)
    except FrameError:
        return None


@given(FRAMES, OCTETS)
def test_emit_then_parse_gives_an_equal_frame_whatever_is_behind_it(frame: Frame, padding: bytes) -> None:
    octets = emit(frame)
    assert frame.nbytes == len(octets)
    assert parse(octets) == frame
    assert parse(octets + padding) == frame


@given(FRAMES)
def test_every_truncation_is_noticed(frame: Frame) -> None:
    octets = emit(frame)
    for length in range(len(octets)):
        left = outcome(octets[:length])
        if length < frames.OVERHEAD_BYTES or isinstance(frame, Ack | Hello):
            assert left is None
        else:
            assert left == remains(frame)


@given(FRAMES)
def test_every_single_bit_error_is_noticed_and_the_header_is_known_or_refused(frame: Frame) -> None:
    octets = emit(frame)
    for bit in range(8 * len(octets)):
        left = outcome(changed(octets, bit // 8, 1 << bit % 8))
        if bit < 8 * frames.HEADER_BYTES or isinstance(frame, Ack | Hello):
            assert left is None
        else:
            assert left == remains(frame)


@given(FRAMES, st.data())
def test_damage_to_a_frame_is_what_parsing_its_damaged_octets_gives(frame: Frame, data: st.DataObject) -> None:
    octets = emit(frame)
    # three wrong bits: more may pass the header's 16 bits of check
    bits = data.draw(st.sets(st.integers(0, 8 * len(octets) - 1), min_size=1, max_size=3))
    wrong = bytearray(octets)
    for bit in bits:
        wrong[bit >> 3] ^= 0x80 >> (bit & 7)
    assert wire.damage(frame, tuple(sorted(bits))) == outcome(bytes(wrong))


@given(FRAMES, st.data())
def test_bursts_over_the_header_never_give_a_frame(frame: Frame, data: st.DataObject) -> None:
    """Any burst of up to 16 bits is seen by the header check, whatever its place."""
    octets = emit(frame)
    start = data.draw(st.integers(0, 8 * frames.HEADER_BYTES - 16))
    pattern = data.draw(st.integers(1, 0xFFFF))
    burst = (pattern << (8 * len(octets) - start - 16)).to_bytes(len(octets), "big")
    assert outcome(bytes(a ^ b for a, b in zip(octets, burst, strict=True))) is None


@given(st.integers(0, 255), st.integers(0, 255), st.integers(0, 99), NUMBERS, NUMBERS, NUMBERS, SHORTS, OCTETS)
def test_arbitrary_fields_with_right_checks_are_a_frame_or_refused(
    kind: int, flags: int, length: int, tag: int, tx: int, seq: int, arg: int, body: bytes
) -> None:
    """What a program that is not ours might send."""
    for claimed in (length, len(body)):
        left = outcome(sealed(struct.pack(">BBHIIIH", kind, flags, claimed, tag, tx, seq, arg), body))
        if isinstance(left, Frame):
            assert parse(emit(left)) == left


@pytest.mark.parametrize(
    ("frame", "body"),
    [
        (Data(1, 0, 2, 3, 0, b"", True, 4, 0), b"\0\0\0"),
        (Fec(1, 0, 2, 3, 4, 2, 2, b""), b"\0\0"),
        (Fec(1, 0, 2, 3, 4, 2, 2, b""), b"\3\2\0\0"),
        (Fec(1, 0, 2, 3, 4, 2, 2, b""), b"\0\2\0\0"),
        (Hello(1, 2, 3, True, 4), b"\0\0\0"),
        (Hello(1, 2, 3, True, 4), b"\0\0\0\0\0"),
    ],
)
def test_a_body_that_cannot_be_is_refused(frame: Frame, body: bytes) -> None:
    checked = bytearray(emit(frame)[: frames.HEADER_BYTES - 2])
    checked[2:4] = len(body).to_bytes(2, "big")
    with pytest.raises(FrameError):
        parse(sealed(bytes(checked), body))


def test_another_version_or_type_is_refused_by_name() -> None:
    for first in (0x00, 0x10, 0x16, 0x1F, 0x21, 0xF1):
        with pytest.raises(FrameError, match=f"{first:#04x}"):
            parse(sealed(bytes((first, *bytes(17)))))


@pytest.mark.parametrize("flags", range(16))
def test_each_frame_has_its_own_flags(flags: int) -> None:
    def parsed(kind: int, body: bytes = b"") -> Any:
        return parse(sealed(struct.pack(">BBHIIIH", 0x10 | kind, 0x30 | flags, len(body), 1, 2, 3, 0), body))

    ack, hello, data = parsed(wire.TYPE_ACK), parsed(wire.TYPE_HELLO, bytes(4)), parsed(wire.TYPE_DATA, bytes(4))
    assert (ack.channel, ack.repeat, hello.established) == (3, bool(flags & 4), bool(flags & 8))
    assert (data.retransmission, data.block) == (bool(flags & 1), 0 if flags & 3 == 3 else None)


def test_overhead_is_what_the_constants_say() -> None:
    packet = bytes(1400)
    assert len(emit(Data(1, 0, 2, 3, 0, packet))) - 1400 == frames.OVERHEAD_BYTES == 24
    assert len(emit(Data(1, 0, 2, 3, 0, packet, True, 4, 0))) - 1400 == frames.OVERHEAD_BYTES + frames.BLOCK_BYTES == 28
    shard = bytes(1400 + frames.SYMBOL_BYTES)
    assert len(emit(Fec(1, 0, 2, 3, 4, 1, 1, shard))) - 1400 == frames.MAX_OVERHEAD_BYTES == 34


@given(st.integers(0, 1 << 40), st.integers(-(1 << 31), (1 << 31) - 1))
def test_a_number_is_unwrapped_to_the_nearest(near: int, distance: int) -> None:
    number = near + distance
    assert unwrap(number & MASK, near) == number


# -- the document --------------------------------------------------------------------------------------------


def test_every_type_of_frame_has_an_example_in_the_document() -> None:
    assert {type(frame) for frame, _ in documented_frames()} == {Data, Fec, Sync, Ack, Hello}


@pytest.mark.parametrize(("frame", "octets"), documented_frames(), ids=lambda part: type(part).__name__)
def test_the_documented_examples_are_what_is_sent(frame: Frame, octets: bytes) -> None:
    assert emit(frame) == octets
    assert parse(octets) == frame


def test_the_documented_types_and_flags_are_the_ones_in_use() -> None:
    text = DOCUMENT.read_text()
    for name in ("DATA", "FEC", "SYNC", "ACK", "HELLO"):
        assert re.search(rf"^\| {getattr(wire, 'TYPE_' + name)} \| {name} \|", text, re.MULTILINE), name
    for name in ("RETRANSMISSION", "BLOCK", "REPEAT", "ESTABLISHED"):
        assert re.search(rf"^\| {getattr(wire, 'FLAG_' + name)} \| {name} \|", text, re.MULTILINE), name


def test_the_documented_defaults_are_the_ones_in_use() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| ([\d.]+)(?: ms)? \|", DOCUMENT.read_text(), re.MULTILINE))
    config = SlacpConfig()

    def used(name: str) -> float:
        value: float | None = getattr(config, name)
        # what follows from the link is a property
        return float(getattr(config, name.replace("_ms", "_ns"))) / MS if value is None else value

    off = set(re.findall(r"^\| `(\w+)` \| none \|", DOCUMENT.read_text(), re.MULTILINE))
    assert {name: float(text) for name, text in rows.items()} == {name: used(name) for name in rows}
    assert [getattr(config, name) for name in off] == [None] * len(off)
    assert {field.name for field in fields(SlacpOptions)} - {"in_order"} <= rows.keys() | off
