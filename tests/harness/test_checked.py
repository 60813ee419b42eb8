"""The harness of packet filters: does it see what a filter may not do?"""

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from linklayer.filters.filter import Filter
from linklayer.filters.filtered import Filtered
from linklayer.link import Link
from linklayer.plain import Plain
from tcpip.access import Access, Objects
from tcpip.options import ELN
from tcpip.segment import ACK, RST, Option, Segment
from tcpip.wire import emit, parse
from tests.harness.assault import Network
from tests.harness.attacker import Attacker, Shot, as_object
from tests.harness.base_station import by_access
from tests.harness.checked import RuleBrokenError, fields, footprint

pytestmark = pytest.mark.slow


def test_the_same_seed_gives_the_same_packets() -> None:
    one, other = (Attacker(Random(7)) for _ in range(2))
    for _ in range(3000):
        a, b = one.next(), other.next()
        assert a.side == b.side
        assert said(a) == said(b)


def said(shot: Shot) -> Any:
    return fields(shot.packet) if isinstance(shot.packet, Segment) else shot.packet


def test_segments_are_the_same_as_objects_and_as_octets() -> None:
    attacker = Attacker(Random(8))
    segments = 0
    for _ in range(5000):
        packet = attacker.next().packet
        if isinstance(packet, Segment):
            segments += 1
            assert fields(parse(emit(packet))) == fields(packet)
    assert segments > 3000


def test_some_octets_are_no_segment_and_some_hardly() -> None:
    attacker = Attacker(Random(9))
    octets = [packet for _ in range(9000) if isinstance(packet := attacker.next().packet, bytes)]
    known = sum(isinstance(as_object(packet), Segment) for packet in octets)
    assert 0.05 < known / len(octets) < 0.4


@by_access
def test_a_filter_that_does_nothing_passes_and_valid_flows_go_on_as_without_the_attack(access: Access) -> None:
    network = Network(made(Filter), access)
    network.run(5000)
    calm = Network(made(Filter), access)
    calm.run_calm(network.clock.now)
    assert network.octets == calm.octets > 100_000
    assert {name: story.finished_at for name, story in network.stories.items()} == {
        name: story.finished_at for name, story in calm.stories.items()
    }


def made(make: Callable[[], Filter]) -> Callable[[str, int], Link]:
    return lambda end, now: Filtered(Plain(), [make()])


class Swallowing(Filter):
    """Swallows what a test says."""

    def __init__(self, swallows: Callable[[Segment | None], bool]) -> None:
        super().__init__()
        self._swallows = swallows

    def handle_to_link(self, packet: Any, channel: int, now: int) -> None:
        if not self._swallows(segment_of(packet)):
            super().handle_to_link(packet, channel, now)

    def handle_from_link(self, packet: Any, channel: int, now: int) -> None:
        if not self._swallows(segment_of(packet)):
            super().handle_from_link(packet, channel, now)


class Doubling(Filter):
    def handle_from_link(self, packet: Any, channel: int, now: int) -> None:
        super().handle_from_link(packet, channel, now)
        super().handle_from_link(packet, channel, now)


class Copying(Filter):
    """Sends copies in place of what came."""

    def handle_to_link(self, packet: Any, channel: int, now: int) -> None:
        super().handle_to_link(parse(emit(packet)) if isinstance(packet, Segment) else bytes(packet), channel, now)


class InPlace(Filter):
    """Changes a packet after it has been sent, and before it is sent again."""

    def handle_to_link(self, packet: Any, channel: int, now: int) -> None:
        super().handle_to_link(packet, channel, now)
        if isinstance(packet, Segment) and packet.length:
            packet.seq ^= 1


class Adding(Filter):
    """Adds an option to whatever has room for one."""

    def __init__(self, access: Access, option: Option) -> None:
        super().__init__()
        self._access, self._option = access, option

    def handle_from_link(self, packet: Any, channel: int, now: int) -> None:
        view = self._access.view(packet)
        changed = None if view is None else self._access.with_option(packet, self._option)
        super().handle_from_link(packet if changed is None else changed, channel, now)


class Keeping(Filter):
    """Knows the latest packet for the link."""

    def __init__(self, *, data_only: bool = True) -> None:
        super().__init__()
        self._data_only = data_only
        self._latest: Any = None

    def handle_to_link(self, packet: Any, channel: int, now: int) -> None:
        super().handle_to_link(packet, channel, now)
        segment = segment_of(packet)
        if (segment is not None and not segment.flags & RST and segment.length) or not self._data_only:
            self._latest = packet, channel


class Repeating(Keeping):
    """Sends it again at every packet that passes the other way."""

    def handle_from_link(self, packet: Any, channel: int, now: int) -> None:
        super().handle_from_link(packet, channel, now)
        if self._latest is not None:
            self._to_link.append(self._latest)


class Impatient(Keeping):
    """Sends it again before it is due."""

    def next_deadline(self) -> int | None:
        return 10**15

    def handle_deadline(self, now: int) -> None:
        if self._latest is not None:
            self._to_link.append(self._latest)


class Reflecting(Filter):
    def handle_from_link(self, packet: Any, channel: int, now: int) -> None:
        super().handle_from_link(packet, channel, now)
        self._to_link.append((packet, channel))


class Spinning(Filter):
    """Its deadline does not go away."""

    def next_deadline(self) -> int | None:
        return 10**8


class Hoarding(Filter):
    """Keeps all it sees."""

    def __init__(self) -> None:
        super().__init__()
        self._all: list[Any] = []

    def handle_to_link(self, packet: Any, channel: int, now: int) -> None:
        super().handle_to_link(packet, channel, now)
        self._all.append(packet)


def segment_of(packet: Any) -> Segment | None:
    found = as_object(packet) if isinstance(packet, bytes) else packet
    return found if isinstance(found, Segment) else None


SWALLOWED: dict[str, Callable[[Segment | None], bool]] = {
    "data": lambda segment: segment is not None and segment.length > 1400,
    "no segment": lambda segment: segment is None,
    "bare ACK": lambda segment: segment is not None and not segment.length and segment.flags == ACK,
    "bare RST": lambda segment: segment is not None and not segment.length and bool(segment.flags & RST),
}


@by_access
@pytest.mark.parametrize("swallows", SWALLOWED.values(), ids=SWALLOWED)
def test_a_filter_that_swallows_is_seen(access: Access, swallows: Callable[[Segment | None], bool]) -> None:
    with pytest.raises(RuleBrokenError, match=r"swallowed|came out 0 times"):
        Network(made(lambda: Swallowing(swallows)), access).run(3000)


@by_access
@pytest.mark.parametrize(
    ("make", "what"),
    [
        (Doubling, "came out 2 times"),
        (Copying, "became|came out|is signed"),
        (Reflecting, "goes back there"),
        (lambda: Repeating(data_only=False), "was put on the link again"),
        (Spinning, "would spin"),
        (Impatient, "early for"),
    ],
)
def test_a_filter_that_does_what_none_may_is_seen(access: Access, make: Callable[[], Filter], what: str) -> None:
    with pytest.raises(RuleBrokenError, match=what):
        Network(made(make), access).run(3000)


def test_a_filter_that_changes_a_packet_in_place_is_seen() -> None:
    with pytest.raises(RuleBrokenError, match="changed in place"):
        Network(made(InPlace), Objects()).run(3000)


@by_access
@pytest.mark.parametrize(("option", "what"), [(ELN, "carries data and grew"), (Option(254, b"\1\2"), "became|grew")])
def test_an_option_in_the_wrong_place_is_seen(access: Access, option: Option, what: str) -> None:
    with pytest.raises(RuleBrokenError, match=what):
        Network(made(lambda: Adding(access, option)), access).run(3000)


@by_access
def test_endless_retransmission_is_seen(access: Access) -> None:
    with pytest.raises(RuleBrokenError, match="again 9 times"):
        Network(made(Repeating), access, retries=8).run(3000)


@by_access
def test_what_is_kept_is_counted(access: Access) -> None:
    network = Network(made(Hoarding), access)
    network.run(1000)
    first = footprint(network.attacked.checked.link)
    network.run(1000)
    assert footprint(network.attacked.checked.link) > first + 300_000
    assert footprint(deque([bytes(1000)])) > 1000
