"""What happens when in virtual time."""

from random import Random

import pytest

from hosts.engine.clock import OBSERVER
from hosts.engine.packets import taker
from testbed.model.virtual_clock import VirtualClock, _Heap


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


@pytest.mark.parametrize("seed", range(5))
def test_heap_of_the_compiled_clock_gives_events_by_time_and_order(seed: int) -> None:
    rng, heap, to = Random(seed), _Heap(), taker(lambda packet: None)
    ahead: list[tuple[int, int, str]] = []
    for order in range(2000):
        if rng.random() < 0.55:
            time = rng.randrange(300)
            heap.push(time, order, to, f"packet {order}")
            ahead.append((time, order, f"packet {order}"))
        else:
            until = rng.randrange(300)
            event = heap.pop(until)
            expected = min((each for each in ahead if each[0] <= until), default=None)
            assert (None if event is None else (event.time, event.order, event.packet)) == expected
            if event is not None and expected is not None:
                ahead.remove(expected)
                # used again by a later push
                heap.release(event)
    assert len(ahead) > 50
