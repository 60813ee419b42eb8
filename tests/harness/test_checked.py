"""The harness of packet filters: does it see what a filter may not do?"""

from collections import deque
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pytest

from linklayer.filters.filter import Filter
from linklayer.filters.filtered import Filtered
from linklayer.link import Link
from linklayer.plain import Plain
from tcpip.access import Access, Octets
from tcpip.options import ELN
from tcpip.segment import ACK, RST, Option, Segment
from tcpip.wire import emit, parse
from tests.harness.attacked_network import Network
from tests.harness.attacker import Attacker, as_object
from tests.harness.base_station import by_access
from tests.harness.checked import RuleBrokenError, footprint

pytestmark = pytest.mark.slow


def attack(network: Network, shots: int) -> None:
    attacker = Attacker(Random(1))
    for _ in range(shots):
        network.shoot(attacker.next(), 100_000)


def made(make: Callable[[], Filter]) -> Callable[[str, int], Link]:
    return lambda end, now: Filtered(Plain(), [make()])


#: what a broken filter makes of a packet: the packets that it passes on
Pass = Callable[["Broken", Any], list[Any]]


def alone(broken: "Broken", packet: Any) -> list[Any]:
    return [packet]


class Broken(Filter):
    """Does with packets for the link and from the link what a test says; a deadline at `due_at` resends one."""

    def __init__(self, to_link: Pass = alone, from_link: Pass = alone, due_at: int | None = None) -> None:
        super().__init__()
        self._pass_to_link, self._pass_from_link, self._due_at = to_link, from_link, due_at
        #: packets for the link so far, where a test keeps them
        self.kept: list[Any] = []

    def handle_to_link(self, packet: Any, channel: int, now: int) -> None:
        self._to_link.extend((passed, channel) for passed in self._pass_to_link(self, packet))

    def handle_from_link(self, packet: Any, channel: int, now: int) -> None:
        self._from_link.extend((passed, channel) for passed in self._pass_from_link(self, packet))

    def next_deadline(self) -> int | None:
        return self._due_at

    def handle_deadline(self, now: int) -> None:
        if self._due_at is not None:
            resend(self, *self.kept[-1:])


def resend(broken: Broken, *packets: Any) -> list[Any]:
    """Put packets on the link besides."""
    broken._to_link.extend((packet, 0) for packet in packets)
    return list(packets)


def segment_of(packet: Any) -> Segment | None:
    found = as_object(packet) if isinstance(packet, bytes) else packet
    return found if isinstance(found, Segment) else None


def swallowing(swallows: Callable[[Segment | None], bool]) -> Broken:
    thin: Pass = lambda broken, packet: [] if swallows(segment_of(packet)) else [packet]  # noqa: E731
    return Broken(to_link=thin, from_link=thin)


def swallowing_empty(flags: int) -> Broken:
    return swallowing(lambda s: s is not None and not s.length and s.flags & (ACK | RST) == flags)


def copy(broken: Broken, packet: Any) -> list[Any]:
    return [parse(emit(packet)) if isinstance(packet, Segment) else bytes(packet)]


def renumber(broken: Broken, packet: Any) -> list[Any]:
    if isinstance(packet, Segment) and packet.length:
        packet.seq ^= 1
    return [packet]


def keep(broken: Broken, packet: Any) -> list[Any]:
    broken.kept.append(packet)
    return [packet]


def keep_data(broken: Broken, packet: Any) -> list[Any]:
    segment = segment_of(packet)
    return keep(broken, packet) if segment and segment.length and not segment.flags & RST else [packet]


def add(access: Access, option: Option, broken: Broken, packet: Any) -> list[Any]:
    changed = None if access.view(packet) is None else access.with_option(packet, option)
    return [packet if changed is None else changed]


def repeat(broken: Broken, packet: Any) -> list[Any]:
    resend(broken, *broken.kept[-1:])
    return [packet]


#: what is said of a broken filter, and the filter
BROKEN: dict[str, Callable[[Access], Filter]] = {
    "was swallowed|came out 0 times": lambda access: swallowing(lambda s: s is not None and s.length > 1400),
    "^[0-9a-f]+ was swallowed|came out 0 times": lambda access: swallowing(lambda s: s is None),
    "swallowed|came out 0 times": lambda access: swallowing_empty(ACK),
    "was swallowed|out 0 times": lambda access: swallowing_empty(RST),
    "came out 2 times": lambda access: Broken(from_link=lambda broken, packet: [packet, packet]),
    "became|came out|is signed": lambda access: Broken(to_link=copy),
    "goes back there": lambda access: Broken(from_link=resend),
    "was put on the link again": lambda access: Broken(to_link=keep, from_link=repeat),
    "would spin": lambda access: Broken(due_at=10**8),
    "early for": lambda access: Broken(to_link=keep_data, due_at=10**15),
    "changed in place": lambda access: Broken(to_link=renumber),
    "carries data and grew": lambda access: Broken(from_link=partial(add, access, ELN)),
    "became|grew": lambda access: Broken(from_link=partial(add, access, Option(254, b"\1\2"))),
    "again 9 times": lambda access: Broken(to_link=keep_data, from_link=repeat),
}


@by_access
@pytest.mark.parametrize("what", BROKEN)
def test_a_filter_that_does_what_none_may_is_seen(access: Access, what: str) -> None:
    if what == "changed in place" and isinstance(access, Octets):
        pytest.skip("octets cannot be changed")
    with pytest.raises(RuleBrokenError, match=what):
        attack(Network(made(lambda: BROKEN[what](access)), access, retries=8), 3000)


@by_access
def test_what_is_kept_is_counted(access: Access) -> None:
    network = Network(made(lambda: Broken(to_link=keep)), access)
    attack(network, 1000)
    first = footprint(network.attacked.checked.link)
    attack(network, 1000)
    assert footprint(network.attacked.checked.link) > first + 300_000
    assert footprint(deque([bytes(1000)])) > 1000
