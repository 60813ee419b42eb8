"""Delays, counted: percentiles stay exact enough while there are too many different ones to keep."""

from collections import Counter
from collections.abc import Sequence

from hypothesis import example, given, settings
from hypothesis import strategies as st

from hosts.engine.delays import Delays

#: ns, up to two minutes
TIMES = st.integers(-1000, 120_000_000_000)


def counted(delays_ns: Sequence[int]) -> Delays:
    delays = Delays()
    for each in delays_ns:
        delays.add(each)
    return delays


@given(st.lists(TIMES, max_size=200))
@example([-1, 0, 999, 1000, 1999, 2000])
def test_a_few_delays_count_as_their_whole_microseconds(delays_ns: list[int]) -> None:
    spread = [us for us, count in counted(delays_ns).counts() for _ in range(count)]
    assert spread == sorted(max(each, 0) // 1000 for each in delays_ns)


@settings(max_examples=20)
@given(st.integers(8193, 9000), st.integers(1, 60_000), st.integers(0, 999_999_999))
@example(8193, 60_000, 0)
def test_many_delays_count_in_the_smallest_unit_of_so_few_values(count: int, step_us: int, first_ns: int) -> None:
    delays_ns = [first_ns + 1000 * step_us * place for place in range(count)]
    whole_us = [each // 1000 for each in delays_ns]
    unit_us = 1
    while len({us // unit_us for us in whole_us}) > 8192:
        unit_us *= 2
    assert counted(delays_ns).counts() == tuple(sorted(Counter(us - us % unit_us for us in whole_us).items()))
    assert unit_us <= whole_us[-1] / 4096
