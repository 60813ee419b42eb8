"""What happens when in virtual time."""

import pytest

from hosts.engine.clock import OBSERVER
from testbed.model.virtual_clock import VirtualClock


def test_events_happen_by_time_then_priority_then_insertion() -> None:
    clock = VirtualClock()
    seen: list[tuple[int, str]] = []

    def note(word: str) -> None:
        seen.append((clock.now, word))

    clock.at(7, note, "last")
    clock.at(5, note, "observer", OBSERVER)
    clock.at(5, note, "first")
    clock.at(5, note, "second")
    clock.at(3, note, "early")
    clock.run()
    assert seen == [(3, "early"), (5, "first"), (5, "second"), (5, "observer"), (7, "last")]
    assert clock.now == 7


def test_events_of_one_instant_precede_its_observers() -> None:
    clock = VirtualClock()
    seen: list[str] = []

    def cause(word: str) -> None:
        seen.append(word)
        clock.at(clock.now, seen.append, "effect")

    clock.at(1, seen.append, "observer", OBSERVER)
    clock.at(1, cause, "cause")
    clock.run()
    assert seen == ["cause", "effect", "observer"]


def test_until_includes_its_instant_and_ends_there() -> None:
    clock = VirtualClock()
    seen: list[int] = []
    for time in (1, 4, 5):
        clock.at(time, seen.append, time)
    clock.run(until=4)
    assert (seen, clock.now) == ([1, 4], 4)
    clock.run(until=9)
    assert (seen, clock.now) == ([1, 4, 5], 9)


def test_a_stop_ends_the_run_at_the_present_event() -> None:
    clock = VirtualClock()
    seen: list[str] = []
    clock.at(2, lambda _: clock.stop())
    clock.at(2, seen.append, "the same instant")
    clock.at(3, seen.append, "later")
    clock.run(until=10)
    assert (seen, clock.now) == ([], 2)
    clock.run()
    assert (seen, clock.now) == (["the same instant", "later"], 3)


def test_an_event_of_the_past_is_refused() -> None:
    clock = VirtualClock()
    clock.run(until=5)
    with pytest.raises(ValueError, match="time is 4, now is 5"):
        clock.at(4, lambda _: None)
