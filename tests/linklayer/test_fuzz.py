"""The packet filters under attack, and the attack's own harness: does it see what a filter may not do?

`benchmarks/fuzz_filters.py` is the long run.
"""

import time
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from linklayer.filters.filtered import Filtered
from linklayer.link import Link
from linklayer.plain import Plain
from tcpip.access import Access, Objects, Octets
from tcpip.options import ELN
from tcpip.segment import RST, Option, Segment
from tcpip.wire import emit, parse
from tests.linklayer.assault import TARGETS, Network, Report, Target, Through, assault
from tests.linklayer.fuzz import Attacker, RuleBrokenError, Shot, as_object, fields, footprint

pytestmark = pytest.mark.slow

ACCESSES = (Objects(), Octets())
#: how often one packet may be put on the link again, whoever asks for it, and how long after the last one
MOST_OFTEN = 16
LONGEST_S = 3600
by_access = pytest.mark.parametrize("access", ACCESSES, ids=lambda access: type(access).__name__)
by_target = pytest.mark.parametrize("target", TARGETS, ids=str)


# -- the filters ---------------------------------------------------------------------------------------------


@by_target
def test_a_filter_stands_an_attack_and_valid_flows_do_not_feel_it(target: Target) -> None:
    """And decides the same of objects and of octets."""
    reports = []
    for access in ACCESSES:
        report = attacked(target, access, 2000, gap_ns=2_000_000, compare=True)
        assert report.broken == ()
        assert report.transfers > 5
        assert report.octets > 0.8 * report.calm_octets
        reports.append(report)
    one, other = reports
    # sizes differ: the octets behind a packet's own length are in no segment
    counts = [{name: n for name, n in report.volume.items() if "bytes" not in name} for report in reports]
    assert counts[0] == counts[1]
    assert (one.octets, one.idle_after_s) == (other.octets, other.idle_after_s)


@by_target
def test_forged_acks_cost_time_and_no_data(target: Target) -> None:
    report = attacked(target, Octets(), 1500, gap_ns=2_000_000, forge=True)
    assert report.broken == ()
    assert report.transfers > 5


@by_target
def test_forged_data_harms_no_filter(target: Target) -> None:
    attacked(target, Octets(), 1500, gap_ns=1_000_000, forge=True, forge_data=True)


@by_target
def test_a_filter_that_forgets_everything_costs_no_data(target: Target) -> None:
    report = attacked(target, Objects(), 500, gap_ns=6_000_000, restart_every_ns=10**8)
    assert report.broken == ()
    assert report.transfers > 5


def attacked(target: Target, access: Access, shots: int, **options: Any) -> Report:
    options = {"seed": 1, "retries": MOST_OFTEN, "parts": 1, "compare": False, **options}
    report = assault(target, access, shots, time.process_time, **options)
    assert report.idle_after_s is not None
    assert report.idle_after_s < LONGEST_S
    return report


# -- the harness ---------------------------------------------------------------------------------------------


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
    network = Network(made(Through), access)
    network.run(5000)
    calm = Network(made(Through), access)
    calm.run_calm(network.clock.now)
    assert network.octets == calm.octets > 100_000
    assert {name: story.finished_at for name, story in network.stories.items()} == {
        name: story.finished_at for name, story in calm.stories.items()
    }


def made(make: Callable[[], Through]) -> Callable[[str, int], Link]:
    return lambda end, now: Filtered(Plain(), [make()])


class Swallowing(Through):
    """Swallows what a test says."""

    def __init__(self, swallows: Callable[[Any], bool]) -> None:
        super().__init__()
        self._swallows = swallows

    def handle_to_link(self, packet: Any, channel: int, now: int) -> None:
        if not self._swallows(packet):
            super().handle_to_link(packet, channel, now)

    def handle_from_link(self, packet: Any, channel: int, now: int) -> None:
        if not self._swallows(packet):
            super().handle_from_link(packet, channel, now)


class Doubling(Through):
    def handle_from_link(self, packet: Any, channel: int, now: int) -> None:
        super().handle_from_link(packet, channel, now)
        super().handle_from_link(packet, channel, now)


class Copying(Through):
    """Sends copies in place of what came."""

    def handle_to_link(self, packet: Any, channel: int, now: int) -> None:
        super().handle_to_link(parse(emit(packet)) if isinstance(packet, Segment) else bytes(packet), channel, now)


class InPlace(Through):
    """Changes a packet after it has been sent, and before it is sent again."""

    def handle_to_link(self, packet: Any, channel: int, now: int) -> None:
        super().handle_to_link(packet, channel, now)
        if isinstance(packet, Segment) and packet.length:
            packet.seq ^= 1


class Adding(Through):
    """Adds an option to whatever has room for one."""

    def __init__(self, access: Access, option: Option) -> None:
        super().__init__()
        self._access, self._option = access, option

    def handle_from_link(self, packet: Any, channel: int, now: int) -> None:
        view = self._access.view(packet)
        changed = None if view is None else self._access.with_option(packet, self._option)
        super().handle_from_link(packet if changed is None else changed, channel, now)


class Repeating(Through):
    """Sends what came last again, at every packet that passes the other way."""

    def __init__(self, *, data_only: bool = True) -> None:
        super().__init__()
        self._data_only = data_only
        self._latest: Any = None

    def handle_to_link(self, packet: Any, channel: int, now: int) -> None:
        super().handle_to_link(packet, channel, now)
        view = Octets().view(packet) if isinstance(packet, bytes) else packet
        if (view is not None and not view.flags & RST and view.length) or not self._data_only:
            self._latest = packet

    def handle_from_link(self, packet: Any, channel: int, now: int) -> None:
        super().handle_from_link(packet, channel, now)
        if self._latest is not None:
            self.to_link.append((self._latest, channel))


class Reflecting(Through):
    def handle_from_link(self, packet: Any, channel: int, now: int) -> None:
        super().handle_from_link(packet, channel, now)
        self.to_link.append((packet, channel))


class Spinning(Through):
    """Its deadline does not go away."""

    def next_deadline(self) -> int | None:
        return 10**8


class Impatient(Through):
    """Does early what is not due."""

    def __init__(self) -> None:
        super().__init__()
        self._latest: Any = None

    def handle_to_link(self, packet: Any, channel: int, now: int) -> None:
        super().handle_to_link(packet, channel, now)
        view = Octets().view(packet) if isinstance(packet, bytes) else packet
        if view is not None and not view.flags & RST and view.length:
            self._latest = packet, channel

    def next_deadline(self) -> int | None:
        return 10**15

    def handle_deadline(self, now: int) -> None:
        if self._latest is not None:
            self.to_link.append(self._latest)


class Hoarding(Through):
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


def is_data(packet: Any) -> bool:
    segment = segment_of(packet)
    return segment is not None and segment.length > 1400


def is_unknown(packet: Any) -> bool:
    return segment_of(packet) is None


def is_bare_ack(packet: Any) -> bool:
    segment = segment_of(packet)
    return segment is not None and not segment.length and segment.flags == 16


def is_bare_rst(packet: Any) -> bool:
    segment = segment_of(packet)
    return segment is not None and not segment.length and bool(segment.flags & RST)


@by_access
@pytest.mark.parametrize("swallows", [is_data, is_unknown, is_bare_ack, is_bare_rst])
def test_a_filter_that_swallows_is_seen(access: Access, swallows: Callable[[Any], bool]) -> None:
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
def test_a_filter_that_does_what_none_may_is_seen(access: Access, make: Callable[[], Through], what: str) -> None:
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
