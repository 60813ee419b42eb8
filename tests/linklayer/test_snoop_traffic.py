"""Snoop with real connections across a lossy hop: the dupacks that TCP's senders on the fixed side get to see.

Losses are on the air alone. So each dupack that reaches a sender and stands at a segment that the air has taken is one
that Snoop should have held back, unless the sender has retransmitted that segment itself.
"""

from collections import Counter
from typing import Any

import pytest
from typing_extensions import override

from common.sequence import MASK
from common.units import MS, SECOND
from hosts.engine.packets import taker
from linklayer.filters.snoop_cache import SnoopOptions
from tcpip.access import Objects
from tcpip.options import smart_of
from tcpip.segment import ACK, FIN, RST, SYN, Flow, Segment
from tests.harness.attack.packet_filters import Target, make_ends
from tests.harness.attacked_network import VICTIMS, Network, Victim
from tests.harness.attacker import FIXED, MOBILE

pytestmark = pytest.mark.slow

#: the IPv4 identification of answers to duplicates, which have another cause than a loss
ANSWER = 1
#: with an ACK for every segment
NEWRENO = VICTIMS[1]
DOWN_ONLY = tuple(victim for victim in VICTIMS if not victim.up)


class Watched(Network):
    """A network that knows the cause of each dupack at the fixed host."""

    def __init__(self, *filters: str, **options: Any) -> None:
        #: by flow and first number: how often its host sent a segment, and whether each copy got across
        self.sent: Counter[tuple[Flow, int]] = Counter()
        self.copies: dict[tuple[Flow, int], list[bool]] = {}
        #: pure ACKs with SMART's news of something beyond them, and what became of them on the air
        self.news = 0
        self.lost_news = 0
        #: dupacks that reached the fixed host, by cause
        self.dupacks: Counter[str] = Counter()
        self._latest: dict[Flow, tuple[int, int]] = {}
        super().__init__(make_ends(Target(filters), sized=True), Objects(), queue_bytes=1 << 30, **options)
        #: segments that the mobile host has, and whether it is being handed one of them again
        self._come: set[tuple[Flow, int]] = set()
        self._again = False
        self._up = self.hosts[MOBILE].out
        self.hosts[FIXED].out = taker(self._send)
        self.hosts[MOBILE].out = taker(self._answer)

    def _send(self, segment: Segment) -> None:
        if segment.length:
            self.sent[segment.flow, segment.seq] += 1
        self._to_base(segment)

    def _answer(self, segment: Segment) -> None:
        if self._again:
            segment.number = ANSWER
        self._up.take(segment)

    def _arrive(self, segment: Segment) -> None:
        if segment.flow.destination == MOBILE and segment.length:
            self._again = (segment.flow, segment.seq) in self._come
            self._come.add((segment.flow, segment.seq))
        super()._arrive(segment)
        self._again = False

    @override
    def is_lost(self, packet: Any) -> bool:
        lost = super().is_lost(packet)
        if packet.length and packet.flow.destination == MOBILE:
            self.copies.setdefault((packet.flow, packet.seq), []).append(not lost)
        elif packet.flow.destination == FIXED and (cause := smart_of(packet)) is not None:
            news = (cause[1] - packet.ack & MASK) < 1 << 31 and cause[1] != packet.ack
            self.news += news
            self.lost_news += news and lost
        return lost

    @override
    def to_host(self, segment: Segment) -> None:
        if segment.flow.destination == FIXED and segment.flags & (SYN | FIN | RST | ACK) == ACK and not segment.length:
            ack = segment.ack, segment.window
            if self._latest.get(segment.flow) == ack:
                self.dupacks[self._cause(segment)] += 1
            self._latest[segment.flow] = ack
        super().to_host(segment)

    def _cause(self, ack: Segment) -> str:
        key = ack.flow.reversed(), ack.ack
        copies = self.copies.get(key)
        if ack.number == ANSWER:
            return "answers a duplicate"
        if copies is None:
            return "nothing missing"
        if self.sent[key] > 1:
            return "sent again by its host"
        return "needless" if copies[0] else "wireless loss"


@pytest.mark.parametrize("filters", [("snoop",), ("snoop-smart", "tagger")], ids=" ".join)
@pytest.mark.parametrize("loss", [0.02, 0.1])
@pytest.mark.parametrize("victims", [DOWN_ONLY, VICTIMS], ids=["down", "both ways"])
def test_no_dupack_of_a_wireless_loss_reaches_the_sender(
    filters: tuple[str, ...], loss: float, victims: tuple[Victim, ...]
) -> None:
    network = Watched(*filters, seed=1, loss=loss, victims=victims)
    network.run_calm(20 * SECOND)
    assert network.attacked.checked.volume["held_back"] > 100
    assert network.attacked.checked.volume["retransmissions"] > 50
    assert network.dupacks["wireless loss"] == 0
    assert all(not story.broken for story in network.stories.values())


def test_without_snoop_they_do() -> None:
    network = Watched(seed=1)
    network.run_calm(20 * SECOND)
    assert network.dupacks["wireless loss"] > 100


def test_smart_repairs_hardly_more_than_is_lost() -> None:
    """An ACK that the air takes, and with it the only word of a segment, may cost one needless repair, and no more."""
    network = Watched("snoop-smart", "tagger", seed=1, victims=(NEWRENO,))
    network.run_calm(60 * SECOND)
    lost = sum(not got for copies in network.copies.values() for got in copies)
    twice = sum(sum(copies) > 1 for copies in network.copies.values())
    assert lost > 200
    assert network.lost_news < 0.2 * lost
    assert twice < 0.2 * lost


@pytest.mark.parametrize("scheme", ["ll", "ll-smart", "snoop", "snoop-smart"])
@pytest.mark.parametrize("options", [SnoopOptions(cache_bytes=4000, tries=2), SnoopOptions(dupacks=1, tick_ms=200)])
def test_small_limits_cost_time_and_no_data(scheme: str, options: SnoopOptions) -> None:
    ends = make_ends(Target((scheme, "tagger")), sized=True, options={"snoop": options})
    network = Network(ends, Objects(), loss=0.1, repeat=0.1, jitter_ns=5 * MS, restart_every_ns=SECOND)
    network.run_calm(60 * SECOND)
    assert all(story.finished_at and not story.broken for story in network.stories.values())
