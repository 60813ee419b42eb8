"""Frames across GNU Radio's messages, and the gaps in their sequence."""

from collections.abc import Sequence
from dataclasses import fields

import pmt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowgraphs.phy import PhyError, Received, SequenceGaps, frame_from_pdu, received_from_pdu, received_pdu
from flowgraphs.phys import make_phy
from tests.harness.bursts import frame_pdu

LAST = (1 << 32) - 1

figures = st.none() | st.floats(allow_nan=False, allow_infinity=False)
received = st.builds(
    Received,
    payload=st.binary(max_size=300),
    crc_ok=st.booleans(),
    sequence=st.integers(0, LAST),
    sample=st.integers(0, (1 << 63) - 1),
    nsamples=st.integers(1, 1 << 40),
    snr_db=figures,
    evm_db=figures,
    cfo_hz=figures,
    rssi_db=figures,
    mode=st.none() | st.sampled_from(["qpsk", "qpsk golay2412", "qam16-3/4"]),
)


@given(st.binary(max_size=300))
def test_a_frame_crosses_a_message(frame: bytes) -> None:
    assert frame_from_pdu(frame_pdu(frame)) == frame


@given(received)
def test_a_received_frame_crosses_a_message(frame: Received) -> None:
    assert received_from_pdu(received_pdu(frame)) == frame


def test_a_received_pdu_names_what_it_says() -> None:
    about = pmt.to_python(pmt.car(received_pdu(Received(b"x", True, 1, 2, 3, snr_db=4.0))))
    assert about == {"crc_ok": True, "sequence": 1, "sample": 2, "nsamples": 3, "snr_db": 4.0}
    assert set(about) < {field.name for field in fields(Received)}


@pytest.mark.parametrize("message", [pmt.PMT_NIL, pmt.intern("x"), pmt.cons(pmt.PMT_NIL, pmt.intern("x"))])
def test_other_messages_are_refused(message: object) -> None:
    with pytest.raises(PhyError, match="no PDU of octets"):
        frame_from_pdu(message)
    with pytest.raises(PhyError, match="no received frame"):
        received_from_pdu(frame_pdu(b"x"))


@pytest.mark.parametrize(
    ("sequence", "counted"),
    [
        # missed, duplicates, restarts
        ((5, 5, 6), (0, 1, 0)),
        ((5, 0, 1), (0, 0, 1)),
        ((5, 0, 2), (1, 0, 1)),
        ((LAST, 0), (0, 0, 0)),
        ((7, 7, 8, 8, 0, 1), (0, 2, 1)),
    ],
)
def test_duplicates_and_restarts_are_counted_apart(sequence: Sequence[int], counted: tuple[int, int, int]) -> None:
    gaps = SequenceGaps()
    assert sum(map(gaps.handle, sequence)) == counted[0]
    assert (gaps.missed, gaps.duplicates, gaps.restarts) == counted


@given(st.integers(0, LAST), st.lists(st.booleans(), max_size=50))
def test_what_lies_between_two_heard_frames_is_what_was_missed(first: int, heard: list[bool]) -> None:
    heard = [True, *heard, True]
    gaps = SequenceGaps()
    numbers = [(first + number) % (LAST + 1) for number, was_heard in enumerate(heard) if was_heard]
    assert sum(map(gaps.handle, numbers)) == gaps.missed == heard.count(False)


def test_an_unknown_phy_is_refused() -> None:
    with pytest.raises(PhyError, match=r"choose from .*ofdm, wifi"):
        make_phy("zigbee", rate_sps=1e6)
