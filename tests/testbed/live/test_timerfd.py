"""The timer descriptor: it fires when it should and is silent otherwise."""

import select
import time

from testbed.live.timerfd import TimerFd

MS = 1_000_000


class Waiter:
    """A TimerFd in an edge-triggered epoll, as the station uses it."""

    def __init__(self) -> None:
        self.timer = TimerFd()
        self.epoll = select.epoll()
        self.epoll.register(self.timer.fileno(), select.EPOLLIN | select.EPOLLET)

    def __enter__(self) -> "Waiter":
        return self

    def __exit__(self, *exc: object) -> None:
        self.epoll.close()
        self.timer.close()

    def fires_within(self, ms: int) -> bool:
        return bool(self.epoll.poll(ms / 1000))


def test_it_fires_at_its_time_and_not_before() -> None:
    with Waiter() as waiter:
        at = time.monotonic_ns() + 20 * MS
        waiter.timer.set(at)
        assert waiter.fires_within(5000)
        assert time.monotonic_ns() >= at


def test_a_time_in_the_past_fires_at_once() -> None:
    for at in (-5, 0, 1, time.monotonic_ns() - 1):
        with Waiter() as waiter:
            waiter.timer.set(at)
            assert waiter.fires_within(5000)


def test_it_fires_once_and_the_same_time_again_does_nothing() -> None:
    with Waiter() as waiter:
        at = time.monotonic_ns() + MS
        waiter.timer.set(at)
        assert waiter.fires_within(5000)
        waiter.timer.set(at)
        assert not waiter.fires_within(20)


def test_it_can_be_moved_and_silenced() -> None:
    with Waiter() as waiter:
        waiter.timer.set(time.monotonic_ns() + 10 * MS)
        waiter.timer.set(time.monotonic_ns() + 3600_000 * MS)
        assert not waiter.fires_within(30)
        waiter.timer.set(time.monotonic_ns() + 10 * MS)
        waiter.timer.set(None)
        assert not waiter.fires_within(30)
        waiter.timer.set(time.monotonic_ns() + MS)
        assert waiter.fires_within(5000)
