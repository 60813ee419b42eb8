"""Collisions of two stations' bursts, by their times."""

from common.sides import Side
from testbed.results.collisions import CollisionCounter


def counted(*reports: tuple[Side, list[tuple[float, float]]]) -> dict[Side, int]:
    counter = CollisionCounter()
    for side, spans in reports:
        counter.handle(side, spans)
    return counter.collisions


def test_bursts_that_overlap_are_counted_at_both_stations() -> None:
    assert counted(("up", [(1.0, 1.5), (2.0, 2.5)]), ("down", [(1.4, 1.6), (3.0, 3.1)])) == {"up": 1, "down": 1}


def test_bursts_that_touch_do_not_collide() -> None:
    assert counted(("up", [(1.0, 1.5)]), ("down", [(1.5, 2.0)])) == {"up": 0, "down": 0}


def test_long_burst_that_meets_two_counts_once() -> None:
    assert counted(("down", [(1.0, 1.1), (1.2, 1.3)]), ("up", [(0.9, 2.0)])) == {"up": 1, "down": 2}


def test_order_of_reports_does_not_matter() -> None:
    up, down = [(1.0, 1.5), (3.0, 3.5), (6.0, 6.5)], [(1.4, 1.6), (3.2, 3.3), (7.0, 7.5)]
    assert counted(("up", up), ("down", down)) == {"up": 2, "down": 2}
    assert counted(("down", down), ("up", up)) == {"up": 2, "down": 2}
