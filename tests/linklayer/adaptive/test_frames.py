"""The octets of slacp-adaptive: what is sent is what is read, and nothing else is read."""

import re
import zlib
from pathlib import Path
from typing import cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from linklayer.adaptive import frames
from linklayer.adaptive.code import Field
from linklayer.adaptive.frames import (
    ACK_BYTES,
    CODED_OVERHEAD_BYTES,
    DATA_OVERHEAD_BYTES,
    MARK_BYTES,
    MAX_BITS,
    MAX_WINDOW,
    Ack,
    Coded,
    Data,
    Frame,
    Mark,
    describe,
    emit,
    members_of,
    parse,
)
from linklayer.link import FrameError

DOCUMENT = Path(__file__).parents[3] / "docs" / "adaptive.md"
NUMBERS = st.integers(0, 2**32 - 1)
SESSIONS, OCTETS = st.integers(0, 2**16 - 1), st.integers(0, 255)
HEADS = (SESSIONS, st.integers(0, 1), NUMBERS, NUMBERS, SESSIONS, OCTETS)
BITMAPS = st.one_of(st.integers(0, 2**64), st.integers(0, 2**MAX_BITS - 1))


def data(
    session: int, channel: int, tx: int, base: int, patience_ms: int, heard: int, ahead: int, payload: bytes
) -> Data:
    return Data(session, channel, tx, base, patience_ms, heard, (base + ahead) % 2**32, payload)


FRAMES: st.SearchStrategy[Frame] = st.one_of(
    st.builds(data, *HEADS, st.integers(0, MAX_WINDOW - 1), st.binary(min_size=1, max_size=60)),
    st.builds(
        Coded,
        *HEADS,
        NUMBERS,
        st.integers(0, 2**63 - 1).map(lambda bits: bits << 1 | 1),
        st.integers(0, 127),
        st.binary(min_size=2, max_size=60),
    ),
    st.builds(Mark, SESSIONS, st.just(0), NUMBERS, NUMBERS, SESSIONS, OCTETS),
    st.builds(Ack, SESSIONS, OCTETS, NUMBERS, BITMAPS, NUMBERS, BITMAPS),
)


def documented_frames() -> list[tuple[Frame, bytes]]:
    """The ```frame blocks of docs/adaptive.md: an object, then its octets in hex."""
    blocks = re.findall(r"^```frame\n(.+?)\n(.+?)^```$", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    return [(eval(call, {**vars(frames)}), bytes.fromhex(octets)) for call, octets in blocks]


def sealed(body: bytes) -> bytes:
    """Octets with the CRC-32 that makes a frame of them."""
    return body + zlib.crc32(body).to_bytes(4, "big")


@given(FRAMES)
def test_parse_gives_the_frame_that_was_emitted(frame: Frame) -> None:
    octets = emit(frame)
    assert len(octets) == frame.nbytes
    assert parse(octets) == frame
    assert describe(octets).intact


@given(FRAMES, st.data())
def test_a_damaged_frame_is_no_frame(frame: Frame, draw: st.DataObject) -> None:
    octets = bytearray(emit(frame))
    for bit in draw.draw(st.sets(st.integers(0, 8 * len(octets) - 1), min_size=1, max_size=3)):
        octets[bit // 8] ^= 1 << bit % 8
    with pytest.raises(FrameError, match="CRC failed"):
        parse(bytes(octets))


@given(FRAMES)
def test_a_part_of_a_frame_is_no_frame(frame: Frame) -> None:
    octets = emit(frame)
    for length in range(len(octets)):
        assert not describe(octets[:length]).intact


@given(st.integers(0xBE, 0xC8), st.binary(min_size=13, max_size=300))
@example(0xC5, bytes(11) + b"\x81\x00" + bytes(128) + b"\x01")
def test_octets_with_a_right_crc_are_a_frame_or_refused(kind: int, octets: bytes) -> None:
    whole = sealed(bytes((kind,)) + octets)
    try:
        frame = parse(whole)
    except FrameError:
        assert describe(whole).words.startswith("damaged: ")
        return
    # one frame has one form
    assert emit(frame) == whole
    assert len(frame.payload) > (1 if isinstance(frame, Coded) else 0) or isinstance(frame, Ack | Mark)


HEAD = bytes.fromhex("2a17 00000028 0000000f 00b4 05")
WRONG = {
    "too short for a frame": bytes(13),
    "unknown kind 0xbf": b"\xbf" + HEAD + b"\0\0x",
    "unknown kind 0xc6": b"\xc6" + HEAD + b"\0\0x",
    "a packet without octets": b"\xc0" + HEAD + b"\0\0",
    "packet 16384 after the base: must be below 16384": b"\xc0" + HEAD + b"\x40\0x",
    "a combination without octets": b"\xc2" + HEAD + bytes(3) + b"\1" + bytes(7) + b"\1\0" + b"x",
    "a combination without its first member": b"\xc2" + HEAD + bytes(11) + b"\2\0" + b"xx",
    "combination 128: must be below 128": b"\xc3" + HEAD + bytes(11) + b"\1\x80" + b"xx",
    "a mark of 19 octets: must be 18": b"\xc4" + HEAD + b"x",
    "bitmaps of 1 octets: must be 1 and 1, 128 at most": b"\xc5" + bytes(11) + b"\1\1" + b"\1",
    "bitmaps of 129 octets: must be 129 and 0, 128 at most": b"\xc5" + bytes(11) + b"\x81\0" + b"\1" * 129,
    "a bitmap has octets that tell nothing": b"\xc5" + bytes(11) + b"\2\0" + b"\1\0",
}


@pytest.mark.parametrize(("words", "body"), WRONG.items(), ids=WRONG)
def test_what_cannot_be_is_refused(words: str, body: bytes) -> None:
    with pytest.raises(FrameError, match=words):
        parse(sealed(body))


def test_the_limits_of_contents_are_frames() -> None:
    for frame in (
        data(1, 0, 2, 2**32 - 1, 4, 5, MAX_WINDOW - 1, b"x"),
        Coded(1, 1, 2, 3, 4, 5, 6, 2**64 - 1, 127, b"xx"),
        Ack(1, 2, 3, 2**MAX_BITS - 1, 4, 2 ** (MAX_BITS - 1)),
    ):
        assert parse(emit(frame)) == frame


def test_members_are_the_set_bits() -> None:
    assert members_of(Coded(1, 0, 2, 3, 4, 5, 6, 2**63 + 0b1101, 7, b"xx")) == [0, 2, 3, 63]


def test_descriptions() -> None:
    last = 2**32 - 1
    told: list[tuple[Frame, str]] = [
        (Data(1, 1, 40, 15, 180, 0, 17, b"pong!"), "transmission 40: packet 17 of channel 1, 5 bytes"),
        (Coded(1, 0, 41, 15, 180, 0, last, 0b111, 3, b"xx"), f"transmission 41: combination of packets {last}, 0, 1"),
        (Mark(1, 0, 42, 18, 180, 0), "transmission 42: nothing below packet 18 comes"),
        (Ack(1, 7, 41, 0b1011, 17, 1), "ACK of transmission 41 and 3 before"),
        (Ack(1, 7, 41, 0, 17, 1), "ACK of transmission 41"),
    ]
    for frame, words in told:
        assert describe(emit(frame)).words == words


# -- the document ----------------------------------------------------------------------------------------------------


def test_every_kind_of_frame_has_an_example_in_the_document() -> None:
    assert {type(frame) for frame, _ in documented_frames()} == {Data, Coded, Mark, Ack}


@pytest.mark.parametrize(("frame", "octets"), documented_frames(), ids=lambda part: type(part).__name__)
def test_the_documented_examples_are_what_is_sent(frame: Frame, octets: bytes) -> None:
    assert emit(frame) == octets
    assert parse(octets) == frame


def test_the_documented_combination_is_that_of_the_documented_packets() -> None:
    coded = next(frame for frame, _ in documented_frames() if isinstance(frame, Coded))
    packets = [(15, b"ping"), (17, b"pong!")]
    assert cast(bytes, Field().combine(packets, coded.index)) == coded.payload
    assert [coded.first + offset for offset in members_of(coded)] == [number for number, _ in packets]


def test_the_documented_sizes_are_the_ones_in_use() -> None:
    text = " ".join(DOCUMENT.read_text().split())
    assert (
        f"a packet costs {DATA_OVERHEAD_BYTES} octets, a combination {CODED_OVERHEAD_BYTES} beside its longest member, "
        f"a mark {MARK_BYTES}, and an acknowledgement {ACK_BYTES} to {ACK_BYTES + 2 * MAX_BITS // 8}." in text
    )
