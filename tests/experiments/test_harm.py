"""Harm of one flow to another, as its paper defines it, and CUBIC's to itself."""

import pytest

from experiments.harm import INCUMBENT, NEWCOMERS, PATHS, added, lost, measure
from hosts.tcp.profiles import USER_PROFILES


@pytest.mark.parametrize(("alone", "beside", "harm"), [(10, 10, 0), (10, 4, 0.6), (10, 0, 1), (10, 12, -0.2)])
def test_harm_to_what_should_be_large_is_the_share_lost(alone: float, beside: float, harm: float) -> None:
    assert lost(alone, beside) == pytest.approx(harm)


@pytest.mark.parametrize(
    ("alone", "beside", "harm"), [(10, 10, 0), (10, 40, 0.75), (0, 5, 1), (0, 0, 0), (10, 8, -0.25)]
)
def test_harm_to_what_should_be_small_is_the_share_added(alone: float, beside: float, harm: float) -> None:
    assert added(alone, beside) == pytest.approx(harm)


def test_newcomers_are_profiles_and_one_is_the_incumbent() -> None:
    assert INCUMBENT in NEWCOMERS
    assert set(NEWCOMERS) <= set(USER_PROFILES)


@pytest.mark.slow
def test_a_second_flow_of_cubic_takes_about_half() -> None:
    # equal flows over a BDP of buffer: each has about half, after 10 s
    goodput, waits = measure(PATHS["one-bdp"][1], INCUMBENT, seed=1)
    assert 0.3 < goodput < 0.7
    assert waits < 0.5
