"""The rate people see while a run goes on."""

import pytest

from testbed.results.rates import RecentRate

MBIT = 125_000


def rate_after(*points: tuple[float, int]) -> float:
    recent = RecentRate()
    for time_s, nbytes in points:
        recent.add(time_s, nbytes)
    return recent.bps


def test_no_count_is_no_rate() -> None:
    assert RecentRate().bps == 0.0
    assert rate_after((0.0, 1000)) == 0.0


def test_rate_of_the_first_second_is_the_mean_since_the_start() -> None:
    assert rate_after((0.1, 0), (0.2, 0), (0.5, MBIT)) == pytest.approx(2e6)


def test_it_is_the_mean_of_the_last_second() -> None:
    # what came in the first second is gone after the second one
    points = [(n / 10, MBIT * min(n, 10)) for n in range(1, 21)]
    assert rate_after(*points[:10]) == pytest.approx(10e6)
    assert rate_after(*points[:15]) == pytest.approx(5e6)
    assert rate_after(*points) == pytest.approx(0.0)


def test_rate_of_a_burst_is_averaged_over_a_second() -> None:
    # 2 Mbit/s; the receiver's application gets nothing for half a second, then all of it within a tenth
    steady = [(n / 10, MBIT * n // 5) for n in range(1, 21)]
    held = [(n / 10, steady[-1][1]) for n in range(21, 25)]
    assert rate_after(*steady, *held, (2.5, MBIT * 5)) == pytest.approx(2e6)


def test_readings_need_not_fall_on_the_windows_begin() -> None:
    assert rate_after(*((0.07 * n, round(0.07 * n * 2 * MBIT)) for n in range(1, 40))) == pytest.approx(2e6, rel=1e-3)


def test_rate_of_a_late_flow_begins_with_its_start() -> None:
    recent = RecentRate()
    for n in range(1, 21):
        recent.add(5 + n / 10, n * MBIT // 5)
    assert recent.bps == pytest.approx(2e6)


def test_two_hosts_readings_may_cross() -> None:
    assert rate_after((1.0, MBIT), (2.0, 3 * MBIT), (1.99, 3 * MBIT)) == pytest.approx(2e6)
