"""What happens when in virtual time."""

import pytest

from hosts.engine.clock import OBSERVER
from testbed.model.virtual_clock import VirtualClock


def test_events_happen_by_time_then_priority_then_insertion() -> None:
    clock = VirtualClock()
    seen: list[tuple[int, str]] = []

    def note(word: str) -> None:
        seen.append((clock.now, word))
        if word == "cause":
            # events of one instant precede its observers
            clock.at(clock.now, note, "effect")

    clock.at(7, note, "last")
    clock.at(5, note, "observer", OBSERVER)
    clock.at(5, note, "cause")
    clock.at(5, note, "second")
    clock.at(3, note, "early")
    clock.run()
    assert seen == [(3, "early"), (5, "cause"), (5, "second"), (5, "effect"), (5, "observer"), (7, "last")]
    assert clock.now == 7


def test_until_includes_its_instant_and_no_event_is_earlier() -> None:
    clock = VirtualClock()
    seen: list[int] = []
    for time in (1, 4, 5):
        clock.at(time, seen.append, time)
    clock.run(until=4)
    assert (seen, clock.now) == ([1, 4], 4)
    clock.run(until=9)
    assert (seen, clock.now) == ([1, 4, 5], 9)
    with pytest.raises(ValueError, match="time is 8, now is 9"):
        clock.at(8, lambda _: None)


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
