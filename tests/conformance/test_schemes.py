"""What every link scheme keeps to; a new one is covered as soon as its file is there."""

from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from channel.errors import ERASED, INTACT, ErrorModel, Verdict
from common.sides import Side
from common.units import MS, SECOND
from hosts.engine.packets import Datagram, Deliver
from linklayer.link import FrameError, Link, LinkContext
from linklayer.schemes import SCHEMES
from tcpip.access import Octets
from tcpip.segment import ACK, Flow, Segment
from testbed.model.radio_link import RadioLinkConfig, make_radio_link
from testbed.model.virtual_clock import VirtualClock
from testbed.results.summary import residual_losses, summarize_link
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
def test_a_scheme_has_its_queue_until_a_scenario_says_another(name: str) -> None:
    own, link = SCHEMES[name].queue, model(link={"scheme": name}).link
    assert {"kind": "drop-tail", **link.queue.model_dump(mode="json"), **own} == link.queue.model_dump(mode="json")
    assert link.ip_queue_bytes == SCHEMES[name].ip_queue_bytes or SCHEMES[name].ip_queue_bytes is None
    assert model(link={"scheme": name, "queue": "drop-tail"}).link.queue.kind == "drop-tail"


@pytest.mark.parametrize("name", SCHEMES)
def test_a_scheme_is_called_like_no_other(name: str) -> None:
    called = [other.name for other in SCHEMES.values() if (other.label or other.name) == SCHEMES[name].label]
    assert called == ([name] if SCHEMES[name].label else [])


class BadWeather(ErrorModel):
    """Erases four frames of ten, until it clears up."""

    def __init__(self, until_ns: int) -> None:
        self._until_ns, self._rng = until_ns, Random(2)

    def judge(self, start: int, end: int, nbytes: int) -> Verdict:
        return ERASED if start < self._until_ns and self._rng.random() < 0.4 else INTACT


@pytest.mark.parametrize("sides", [("up",), ("up", "down")], ids=["up", "both"])
@pytest.mark.parametrize("name", SCHEMES)
def test_packets_that_count_as_lost_are_those_that_never_came(name: str, sides: tuple[Side, ...]) -> None:
    """What is left for TCP, as records have it while a run goes on and the summary at its end."""
    clock, came = VirtualClock(), list[Any]()
    errors = {side: BadWeather(20 * SECOND) for side in sides}
    deliver: dict[Side, Deliver] = {"up": came.append, "down": lambda packet: None}
    link = make_radio_link(clock, RadioLinkConfig(scheme=name), seed=1, deliver=deliver, errors=errors)
    station = link.stations["up"]
    flow, sent = Flow(1, 1, 2, 2), 1200
    # of both kinds, on all logical channels, the last ones in fine weather
    for number in range(sent):
        clock.run(number * 20 * MS)
        one = Segment(flow, 100 * number, 0, ACK, 100, 100) if number % 2 else Datagram(flow, 100, number, 0)
        station.take(one)
    clock.run((sent + 500) * 20 * MS)
    near, far = link.counts("up"), link.counts("down")
    assert near.packets == sent
    assert 0 < len(came) < sent
    assert residual_losses(near, far) == sent - len(came)
    assert summarize_link(near, far, 30.0, blind=SCHEMES[name].repairs == "blind").residual_losses == sent - len(came)


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
