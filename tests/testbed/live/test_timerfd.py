"""The timer descriptor: it fires when it should and is silent otherwise."""

import select
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from testbed.live.timerfd import TimerFd

MS = 1_000_000


@pytest.fixture
def timer() -> Iterator[TimerFd]:
    with closing(TimerFd()) as opened:
        yield opened


@pytest.fixture
def fires_within(timer: TimerFd) -> Iterator[Callable[[int], bool]]:
    """Whether it fires within so many ms, in an edge-triggered epoll, as the station uses it."""
    with select.epoll() as epoll:
        epoll.register(timer.fileno(), select.EPOLLIN | select.EPOLLET)
        yield lambda ms: bool(epoll.poll(ms / 1000))


def test_it_fires_once_at_its_time_and_not_before(timer: TimerFd, fires_within: Callable[[int], bool]) -> None:
    at = time.monotonic_ns() + 20 * MS
    timer.set(at)
    assert fires_within(5000)
    assert time.monotonic_ns() >= at
    # the same time again does nothing
    timer.set(at)
    assert not fires_within(20)


@pytest.mark.parametrize("at", [-5, 0, 1, time.monotonic_ns() - 1], ids=["negative", "zero", "first", "just past"])
def test_a_time_in_the_past_fires_at_once(at: int, timer: TimerFd, fires_within: Callable[[int], bool]) -> None:
    timer.set(at)
    assert fires_within(5000)


def test_it_can_be_moved_and_silenced(timer: TimerFd, fires_within: Callable[[int], bool]) -> None:
    timer.set(time.monotonic_ns() + 10 * MS)
    timer.set(time.monotonic_ns() + 3600_000 * MS)
    assert not fires_within(30)
    timer.set(time.monotonic_ns() + 10 * MS)
    timer.set(None)
    assert not fires_within(30)
    timer.set(time.monotonic_ns() + MS)
    assert fires_within(5000)
