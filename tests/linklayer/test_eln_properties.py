"""The ELN marker on a link that loses at random: it marks what the link has lost, and nothing else."""

from collections import Counter, deque
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.sequence import MASK
from linklayer.filters.eln import Marker
from linklayer.filters.filter import Cause
from tcpip.access import Objects
from tcpip.options import has_eln
from tcpip.segment import Segment
from tests.harness.base_station import SIZE, BaseStation

#: the numbers wrap while the flow lasts
FIRST = MASK - 40 * SIZE


class World:
    """A sender that sends what it likes, a queue that drops and puts out of order, the marker, and a link that loses.

    Segments are named by their place in the flow. `lost` is what the link took, `dropped` what the queue did and
    `delayed` what it let others pass.
    """

    def __init__(self, seed: int, *, sack: bool, reports: bool) -> None:
        self.rng = Random(seed)
        self.sack, self.reports = sack, reports
        self.base = BaseStation(Objects(), lambda access: Marker(access, reports=reports), first=FIRST)
        self.next = 0
        self.held: list[int] = []
        self.link: deque[tuple[int, Any, bool]] = deque()
        #: how many copies of each were lost
        self.lost = Counter[float]()
        self.dropped: set[float] = set()
        self.delayed: set[float] = set()
        self.got: set[int] = set()
        self.recent: deque[int] = deque(maxlen=3)
        self.back: deque[tuple[int, Segment]] = deque()
        self.acked = 0
        self.marks = 0
        self.guesses: list[tuple[float, Cause]] = []

    def send(self, place: int, loss: float, drop: float) -> None:
        if self.rng.random() < drop:
            self.dropped.add(place)
        elif self.rng.random() < drop / 2:
            self.held.append(place)
            self.delayed.add(place)
        else:
            self.forward(place, loss)
            while self.held and self.rng.random() < 0.5:
                self.forward(self.held.pop(), loss)

    def forward(self, place: int, loss: float) -> None:
        [packet] = self.base.send(place)
        self.link.append((place, packet, self.rng.random() < loss))

    def arrive(self, ack_loss: float) -> None:
        """Let the oldest copy reach the far end, or be lost."""
        place, packet, lost = self.link.popleft()
        if lost:
            self.lost[place] += 1
            if self.reports:
                self.base.filter.handle_given_up(packet, 0)
            return
        if place not in self.got:
            self.got.add(place)
            self.recent.appendleft(place)
        expected = next(n for n in range(len(self.got) + 1) if n not in self.got)
        blocks = [(n, n + 1) for n in self.recent if n > expected] if self.sack else []
        if self.rng.random() >= ack_loss:
            self.back.append((expected, self.base.acknowledgement(expected, *blocks)))

    def answer(self) -> None:
        """Let the oldest ACK pass the marker."""
        place, ack = self.back.popleft()
        self.acked = max(self.acked, place)
        if has_eln(self.base.view(self.base.from_link(ack))):
            self.marks += 1
            assert self.lost[place], f"{place} was never lost: {self.dropped}"
        for where, cause in self.base.guesses():
            self.guesses.append((where, cause))
            if cause == "corruption":
                assert self.guesses.count((where, cause)) <= self.lost[where], "guessed oftener than lost"
            elif cause == "congestion":
                # a queue that puts it behind others looks like one that drops it
                assert where in self.dropped | self.delayed

    def run(self, steps: int, loss: float, drop: float, ack_loss: float) -> None:
        rng = self.rng
        for _ in range(steps):
            draw = rng.random()
            if draw < 0.25 and self.next - self.acked < 30:
                self.send(self.next, loss, drop)
                self.next += 1
            elif 0.25 <= draw < 0.3 and self.next > self.acked:
                # the first hole, as a rule; a sender may also repeat what it likes
                place = self.acked if rng.random() < 0.7 else rng.randrange(self.acked, self.next)
                self.send(place, loss, drop)
            elif 0.3 <= draw < 0.65 and self.link:
                self.arrive(ack_loss)
            elif draw >= 0.65 and self.back:
                self.answer()


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 1 << 30),
    sack=st.booleans(),
    reports=st.booleans(),
    loss=st.sampled_from([0.0, 0.05, 0.2, 0.5]),
    drop=st.sampled_from([0.0, 0.1, 0.4]),
    ack_loss=st.sampled_from([0.0, 0.2]),
)
def test_only_what_the_link_lost_is_marked(
    seed: int, sack: bool, reports: bool, loss: float, drop: float, ack_loss: float
) -> None:
    World(seed, sack=sack, reports=reports).run(1500, loss, drop, ack_loss)


@pytest.mark.parametrize("reports", [False, True])
@pytest.mark.parametrize("sack", [False, True])
def test_losses_are_found(sack: bool, reports: bool) -> None:
    world = World(1, sack=sack, reports=reports)
    world.run(20_000, 0.1, 0.0, 0.0)
    found = {place for place, cause in world.guesses if cause == "corruption"}
    lost = {place for place in world.lost if place < world.acked}
    # this sender repeats some before anything behind them has come, which hides the loss
    assert len(found & lost) > 2 / 3 * len(lost) > 50
    assert world.marks > len(found)
