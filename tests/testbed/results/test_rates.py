"""The rate people see while a run goes on."""

import pytest

from testbed.results.rates import RecentRate

MBIT = 125_000
#: 2 Mbit/s for two seconds
STEADY = [(n / 10, MBIT * n // 5) for n in range(1, 21)]


@pytest.mark.parametrize(
    ("points", "bps"),
    [
        pytest.param([], 0, id="no count"),
        pytest.param([(0.0, 1000)], 0, id="no time"),
        pytest.param([(0.1, 0), (0.2, 0), (0.5, MBIT)], 2e6, id="mean since the start"),
        pytest.param([(n / 10, MBIT * min(n, 10)) for n in range(1, 16)], 5e6, id="half of the window was idle"),
        pytest.param([(n / 10, MBIT * min(n, 10)) for n in range(1, 21)], 0, id="the window was idle"),
        # the application gets nothing for half a second, then everything within a tenth
        pytest.param([*STEADY, *((n / 10, STEADY[-1][1]) for n in range(21, 25)), (2.5, MBIT * 5)], 2e6, id="held"),
        pytest.param([(0.07 * n, round(0.07 * n * 2 * MBIT)) for n in range(1, 40)], 2e6, id="between readings"),
        pytest.param([(5 + n / 10, n * MBIT // 5) for n in range(1, 21)], 2e6, id="a flow that starts late"),
        pytest.param([(1.0, MBIT), (2.0, 3 * MBIT), (1.99, 3 * MBIT)], 2e6, id="readings of two hosts cross"),
    ],
)
def test_rate_covers_the_last_second(points: list[tuple[float, int]], bps: float) -> None:
    recent = RecentRate()
    for time_s, nbytes in points:
        recent.add(time_s, nbytes)
    assert recent.bps == pytest.approx(bps, rel=1e-3)
