"""Which runs a campaign has, and in which order."""

import random
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from testbed.campaigns.plan import CampaignPlan, Run
from testbed.campaigns.rows import Row
from testbed.campaigns.schedule import Schedule
from tests.harness.campaigns import done, plan

STOP = {"metric": "duration_s", "of": "median", "half_width": 0.7, "least": 8, "most": 40, "batch": 3}


def drive(
    made: CampaignPlan, result: Callable[[Run], Row], *, order: int = 0, known: dict[str, Row] | None = None
) -> Schedule:
    """Make all runs, which end in an order of chance."""
    schedule, rng = Schedule(made, known or {}), random.Random(order)
    under_way: list[Run] = []
    while True:
        while len(under_way) < 5 and (run := schedule.poll(real_time=False)) is not None:
            under_way.append(run)
        if not under_way:
            return schedule
        run = under_way.pop(rng.randrange(len(under_way)))
        schedule.handle_row(run, result(run))


def noisy(run: Run) -> Row:
    """A result that scatters more at the second point."""
    scatter = random.Random(run.seed).gauss(0, 0.05 + 0.95 * run.point.index)
    return done(run.name, duration_s=10 + scatter)


def test_fixed_replications_come_point_by_point() -> None:
    schedule = Schedule(plan(), {})
    polled = [schedule.poll(real_time=False) for _ in range(7)]
    assert [(run.point.index, run.seed) if run else None for run in polled] == [
        *[(0, 1), (1, 1), (0, 2), (1, 2), (0, 3), (1, 3)],
        None,
    ]
    assert (schedule.planned, schedule.ended) == (6, 0)
    for run in polled[:2]:
        assert run is not None
        schedule.handle_row(run, done(run.name))
    assert (schedule.ended, schedule.left) == (2, {False: 4, True: 0})


def test_real_time_runs_wait_apart() -> None:
    schedule = Schedule(plan(set={"tcp": "user:sack"}, sweep={"grid": {"tier": ["model", "emulated"]}}), {})
    assert schedule.left == {False: 3, True: 3}
    assert [run.point.index for run in iter(lambda: schedule.poll(real_time=False), None)] == [0, 0, 0]
    assert [run.point.index for run in iter(lambda: schedule.poll(real_time=True), None)] == [1, 1, 1]


def test_point_stops_when_its_interval_is_narrow_enough() -> None:
    schedule = drive(plan(seeds=None, stop=STOP), noisy)
    counts = [sum(run.point.index == index for run, _ in schedule.rows()) for index in (0, 1)]
    assert counts[0] == 8
    assert 10 <= counts[1] < 40
    assert (counts[1] - 8) % 3 == 0
    assert schedule.ended == schedule.planned == sum(counts)


def test_point_that_never_gets_narrow_stops_at_the_most() -> None:
    assert drive(plan(seeds=None, stop={**STOP, "half_width": 1e-9}), noisy).planned == 80


@given(order=st.integers(0, 1000), cut=st.integers(0, 60))
def test_runs_depend_neither_on_order_nor_on_interruptions(order: int, cut: int) -> None:
    made = plan(seeds=None, stop=STOP)
    whole = drive(made, noisy)
    rows = {run.name: row for run, row in whole.rows()}
    kept = dict(random.Random(order).sample(sorted(rows.items()), min(cut, len(rows))))
    again = drive(made, noisy, order=order, known=kept)
    assert list(again.rows()) == list(whole.rows())


def test_failed_runs_count_but_have_no_value() -> None:
    def half(run: Run) -> Row:
        return noisy(run) if run.seed % 2 else Row(run.name, "failed", error="no")

    schedule = drive(plan(seeds=None, stop={**STOP, "half_width": "50%", "least": 6, "batch": 1}), half)
    # three values have no interval: six are needed
    assert [run.seed for run, _ in schedule.rows() if run.point.index == 0] == list(range(1, 12))


def test_equal_values_end_a_point_only_where_they_carry_an_interval() -> None:
    def equal(run: Run) -> Row:
        return done(run.name, duration_s=3.0)

    # folders of older plans may have a lower least
    assert drive(plan(seeds=None, stop={**STOP, "least": 2, "batch": 1}), equal).planned == 2 * 6
    assert drive(plan(seeds=None, stop={**STOP, "of": "mean", "least": 20}), equal).planned == 2 * 40
