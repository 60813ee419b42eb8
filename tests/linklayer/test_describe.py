"""SLACP's frames in words, as Wireshark shows them (docs/slacp.md has the frames)."""

import pytest

from linklayer.slacp.describe import describe
from linklayer.slacp.frames import Ack, Data, Fec, Frame, Hello, Sync
from linklayer.slacp.wire import emit
from tests.harness.octets import changed

TAG = 0x5EED0001


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (Data(TAG, 0, 7, 5, 2, b"hello"), "packet 5"),
        (Data(TAG, 1, 8, 0, 0, b"now"), "packet 0 of channel 1"),
        (Data(TAG, 0, 20, 5, 0, b"hello", True), "retransmission of packet 5"),
        (Data(TAG, 0, 20, 5, 0, b"hello", True, 3, 0), "retransmission of packet 5, in block 3"),
        (Fec(TAG, 0, 22, 5, 3, 1, 1, b"shard"), "FEC 1 of block 3 (1 packet)"),
        (Fec(TAG, 2, 22, 5, 3, 2, 4, b"shard"), "FEC 3 of block 3 of channel 2 (2 packets)"),
        (Sync(TAG, 0, 30, 12), "SYNC from 12"),
        (Sync(TAG, 3, 30, 12), "SYNC from 12 of channel 3"),
        (Ack(TAG, 0, 9, 5, 0, False), "ACK below 5"),
        (Ack(TAG, 1, 9, 5, 0b1101_0110, True), "ACK below 5 and 5 beyond of channel 1, repeated"),
        (Hello(9, 8, 0, False, 0), "HELLO"),
        (Hello(9, 8, 7, True, 0), "HELLO, established"),
    ],
)
def test_a_whole_frame_has_its_words(frame: Frame, words: str) -> None:
    found = describe(emit(frame))
    assert (found.words, found.intact) == (words, True)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (Data(TAG, 0, 7, 5, 2, b"hello"), "damaged, packet 5"),
        (Data(TAG, 1, 20, 5, 0, b"hello", True, 3, 0), "damaged, retransmission of packet 5 of channel 1"),
        # its block is in the body
        (Fec(TAG, 2, 22, 5, 3, 2, 4, b"shard"), "damaged, FEC of channel 2"),
        (Sync(TAG, 0, 30, 12), "damaged, SYNC"),
    ],
)
def test_a_frame_with_a_damaged_body_has_the_words_of_its_header(frame: Frame, words: str) -> None:
    octets = emit(frame)
    found = describe(changed(octets, len(octets) - 1))
    assert (found.words, found.intact) == (words, False)


def test_octets_that_are_no_frame_say_why() -> None:
    found = describe(b"")
    assert found.words.startswith("not a frame: ")
    assert not found.intact
    # acknowledgements with a damaged body tell nothing
    octets = emit(Ack(TAG, 0, 9, 5, 1, False))
    assert describe(changed(octets, len(octets) - 1)).words.startswith("not a frame: ")
