"""What every link scheme keeps to; a new one is covered as soon as its file is there."""

from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from linklayer.link import FrameError, Link, LinkContext
from linklayer.schemes import SCHEMES
from tcpip.access import Octets
from testbed.simulation import simulate
from tests.harness.model_runs import model

#: an IPv4 packet of UDP
PACKET = bytes.fromhex("45000020000100004011000a0a4d01020a4d0202") + bytes(12)


def end(name: str) -> Link:
    context = LinkContext(end="mobile", access=Octets(), sized=False, rng=Random(1), now=0, frame_ms=5.0)
    return SCHEMES[name].make(SCHEMES[name].options(), context)


@pytest.mark.parametrize("name", SCHEMES)
def test_a_transfer_over_a_lossy_link_repeats_with_its_seed(name: str) -> None:
    run = model(link={"scheme": name}, channel={"per": 0.03}, workloads=[{"kind": "bulk", "bytes": 60_000}], seed=5)
    assert run.link.scheme_options() == SCHEMES[name].options()
    first = simulate(run)
    assert first == simulate(run)
    assert (first.finished, first.intact) == (True, True)


@pytest.mark.parametrize("name", SCHEMES)
def test_frames_are_what_their_octets_say(name: str) -> None:
    scheme, link = SCHEMES[name], end(name)
    if link.wants_packet(0) or not link.flow_control:
        link.handle_packet(PACKET, 0)
    frames = [frame for now in range(3) if (frame := link.poll_frame(now * 1_000_000)) is not None]
    assert frames
    for frame in frames:
        octets = scheme.emit(frame)
        assert scheme.emit(scheme.parse(octets)) == octets
        assert len(octets) <= len(PACKET) + scheme.overhead_bytes
        assert scheme.describe(octets).intact


@pytest.mark.parametrize("name", SCHEMES)
@given(octets=st.binary(max_size=200))
@example(b"")
@example(bytes(24))
@example(b"\xff" * 60)
@settings(max_examples=100)
def test_any_octets_are_a_frame_or_a_frame_error(name: str, octets: bytes) -> None:
    scheme = SCHEMES[name]
    assert scheme.describe(octets).words
    try:
        frame = scheme.parse(octets)
    except FrameError:
        return
    assert scheme.emit(frame) == octets
