"""The pairs of connections of a base station: how many there may be, and what becomes of an end without another."""

from typing_extensions import override

from hosts.engine.split_pairs import End, Pairs, SplitCounters


class Idle(End):
    """An end on which nothing happens until it is told an error."""

    def __init__(self) -> None:
        self.was_reset = False
        self.why: str | None = None

    @property
    @override
    def error(self) -> str | None:
        return self.why

    @property
    @override
    def over(self) -> bool:
        return False

    @property
    @override
    def retransmits(self) -> int:
        return 2

    @property
    @override
    def timeouts(self) -> int:
        return 1

    @override
    def relay(self, sink: End) -> int:
        return 0

    @override
    def settle(self, other: End) -> None:
        """Nothing to send."""

    @override
    def reset(self) -> None:
        self.was_reset = True

    @override
    def release(self) -> None:
        """Nothing to give up."""


def test_a_connection_beyond_the_most_is_reset_and_none_is_made_onwards() -> None:
    pairs = Pairs(most=2)
    onwards: list[Idle] = []

    def connect() -> Idle:
        onwards.append(Idle())
        return onwards[-1]

    near = [Idle() for _ in range(3)]
    made = [pairs.join(each, connect, near_is_wireless=True) for each in near]
    assert [pair is not None for pair in made] == [True, True, False]
    assert [each.was_reset for each in near] == [False, False, True]
    assert len(onwards) == 2
    assert pairs.counters() == SplitCounters(connections=2, refusals=1, retransmissions=4, timeouts=2)
    # one that has ended leaves its place to another, and its counters
    near[0].why = "reset by the peer"
    near[0].handle(0)
    assert [each.was_reset for each in onwards] == [True, False]
    assert pairs.all() == made[1:2]
    assert pairs.join(Idle(), connect, near_is_wireless=True) is not None
    assert pairs.counters() == SplitCounters(connections=3, refusals=1, retransmissions=6, timeouts=3)


def test_a_connection_without_a_way_onwards_is_reset_and_does_not_count() -> None:
    pairs, near = Pairs(), Idle()
    assert pairs.join(near, lambda: None, near_is_wireless=False) is None
    assert near.was_reset
    assert not pairs
    assert pairs.counters() == SplitCounters()
