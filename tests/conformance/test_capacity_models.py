"""What every capacity model keeps to; a new one is covered as soon as its file is there."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from channel.capacity import CAPACITY_MODELS, Capacity
from channel.errors.none import NoErrors
from channel.framing import raw
from channel.hop import Arrival, Hop
from testbed.scenario.resolver import resolve
from tests.conformance.options import CAPACITY_MODEL
from tests.harness.hop_driving import Traffic, drive_punctually

MS = 1_000_000
SECOND = 1_000_000_000
RATE_BPS = 128_000

#: (gap before the frame in ns, bytes of the frame)
TRAFFIC = st.lists(
    st.tuples(st.one_of(st.just(0), st.integers(0, 3 * SECOND)), st.integers(1, 1_450)), min_size=1, max_size=30
)


def made(name: str, traces: Path, seed: int = 1) -> Capacity:
    """The model's example, for a link of RATE_BPS; `traces` is the folder of its files."""
    example = CAPACITY_MODEL.example(name, base=traces)
    hop = replace(resolve(example).stations["up"].hop, rate_bps=RATE_BPS)
    return hop.capacity.plugin.make(hop.capacity.options, RATE_BPS, random.Random(seed))


class Watched(Capacity):
    """A capacity that holds another to its contract."""

    def __init__(self, inner: Capacity) -> None:
        self.inner = inner
        self.waiting = 0

    def rate_bps(self) -> int:
        rate = self.inner.rate_bps()
        assert 0 <= rate <= RATE_BPS
        return rate

    def handle_backlog(self, backlog_bits: int, now: int) -> None:
        before = self.rate_bps()
        self.inner.handle_backlog(backlog_bits, now)
        self.waiting = backlog_bits
        assert self.rate_bps() == before
        assert before or not backlog_bits or self.inner.next_deadline() is not None

    def next_deadline(self) -> int | None:
        return self.inner.next_deadline()

    def handle_deadline(self, now: int) -> None:
        at = self.inner.next_deadline()
        if at is not None and at > 0:
            before = self.rate_bps(), at
            self.inner.handle_deadline(min(at - 1, now))
            assert (self.rate_bps(), self.inner.next_deadline()) == before or at <= now
        for _ in range(2):
            self.inner.handle_deadline(now)
            after = self.inner.next_deadline()
            assert after is None or after > now
        assert self.rate_bps() or not self.waiting or after is not None


def carry(capacity: Capacity, frames: Traffic) -> tuple[list[Arrival[int]], int]:
    """Send frames through a hop of this capacity; return what arrived, and how many were accepted."""
    hop: Hop[int] = Hop(capacity=capacity, framing=raw, errors=NoErrors(), propagation_ns=0, buffer_bytes=14_400)
    arrivals, accepted = drive_punctually(hop, frames)
    return arrivals, sum(accepted)


@pytest.mark.parametrize("name", CAPACITY_MODELS)
@given(frames=TRAFFIC, seed=st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_all_that_is_accepted_is_served_in_bounds_and_then_it_rests(
    name: str, traces: Path, frames: Traffic, seed: int
) -> None:
    arrivals, accepted = carry(Watched(made(name, traces, seed)), frames)
    assert len(arrivals) == accepted
    bits = 0
    for arrival in arrivals:
        bits += 8 * frames[arrival.frame][1]
        assert bits * SECOND <= RATE_BPS * arrival.sent_at


@pytest.mark.parametrize("name", CAPACITY_MODELS)
@given(frames=TRAFFIC, seed=st.integers(0, 2**32))
@settings(max_examples=20, deadline=None)
def test_a_seed_fixes_every_arrival(name: str, traces: Path, frames: Traffic, seed: int) -> None:
    assert carry(made(name, traces, seed), frames) == carry(made(name, traces, seed), frames)


@pytest.mark.parametrize("name", CAPACITY_MODELS)
def test_a_constant_one_has_its_rate_at_once_and_the_others_a_deadline(name: str, traces: Path) -> None:
    capacity = made(name, traces)
    capacity.handle_backlog(10**6, 0)
    if capacity.constant:
        assert (capacity.rate_bps(), capacity.next_deadline()) == (RATE_BPS, None)
    else:
        assert capacity.next_deadline() is not None
