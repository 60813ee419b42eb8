"""Scheme `none`: the packet and its CRC, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklayer.link import FrameError
from linklayer.plain import Plain, PlainFrame, emit, parse
from tests.harness.octets import changed

PACKETS = st.binary(min_size=1, max_size=60)


@given(PACKETS)
def test_every_truncation_every_single_bit_error_and_zeros_are_refused(packet: bytes) -> None:
    frame = PlainFrame(packet)
    octets = emit(frame)
    assert (parse(octets), frame.nbytes) == (frame, len(octets))
    wrong = [octets[:length] for length in range(len(octets))]
    wrong += [changed(octets, bit // 8, 1 << bit % 8) for bit in range(8 * len(octets))]
    for damaged in [*wrong, *map(bytes, range(40))]:
        with pytest.raises(FrameError):
            parse(damaged)


def test_packets_cross_in_order_and_are_counted() -> None:
    a, b = Plain(), Plain()
    for packet in (b"one", b"three"):
        assert a.wants_packet(0)
        a.handle_packet(packet, 0)
        assert not a.wants_packet(0)
        with pytest.raises(RuntimeError):
            a.handle_packet(b"two", 0)
        frame = a.poll_frame(0)
        assert frame is not None
        b.handle_frame(frame, 0)
        assert a.poll_frame(0) is None
    assert [b.poll_packet(), b.poll_packet(), b.poll_packet()] == [(b"one", 0), (b"three", 0), None]
    assert (a.counters().packets, a.counters().useful_bytes) == (2, 8)
    assert (b.counters().delivered, b.counters().delivered_bytes) == (2, 8)
