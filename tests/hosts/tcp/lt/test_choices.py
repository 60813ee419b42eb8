"""LT-TCP's estimator and its choices: section III.A, and the rules of docs/lt-tcp.md."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hosts.tcp.lt import sizing
from hosts.tcp.lt.estimator import ErasureEstimator
from hosts.tcp.profiles import USER_PROFILES


def estimate(*windows: tuple[int, int]) -> float:
    estimator = ErasureEstimator()
    for sent, arrived in windows:
        estimator.handle_window(sent, arrived)
    return estimator.rate


def test_first_loss_is_believed_and_losses_weigh_by_their_own_share() -> None:
    # equation 1: a = new / (new + E)
    assert estimate((20, 20)) == 0
    assert estimate((20, 16)) == pytest.approx(0.2)
    assert estimate((20, 16), (20, 10)) == pytest.approx((0.5 * 0.5 + 0.2 * 0.2) / 0.7)
    assert estimate((20, 10), (20, 16)) == pytest.approx(estimate((20, 16), (20, 10)))


def test_windows_without_losses_lower_the_estimate_to_half_a_segment() -> None:
    assert estimate((20, 10), *[(20, 20)] * 10) < 0.3
    assert estimate((20, 10), *[(20, 20)] * 500) == pytest.approx(0.5 / 20, rel=0.05)


def test_by_the_papers_equation_windows_without_losses_do_not_count() -> None:
    estimator = ErasureEstimator(forgets=False)
    for sent, arrived in [(20, 10), *[(20, 20)] * 10]:
        estimator.handle_window(sent, arrived)
    assert estimator.rate == 0.5


def test_more_arrivals_than_segments_are_no_loss() -> None:
    assert estimate((20, 25)) == 0
    assert estimate((0, 5)) == 0


@given(st.lists(st.tuples(st.integers(-5, 100), st.integers(-5, 200)), max_size=50))
def test_an_estimate_is_a_share(windows: list[tuple[int, int]]) -> None:
    assert 0 <= estimate(*((sent, max(arrived, 0)) for sent, arrived in windows)) <= 1


def lost_more_than(redundant: int, total: int, rate: float) -> float:
    """The probability, added up from the other side."""
    probability, within = (1 - rate) ** total, 0.0
    for lost in range(redundant + 1):
        within += probability
        probability *= (total - lost) / (lost + 1) * rate / (1 - rate)
    return 1 - within


@pytest.mark.parametrize("confidence", [0.3, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("members", [1, 5, 16, 40])
@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_proactive_segments_are_the_fewest_that_suffice(members: int, rate: float, confidence: float) -> None:
    # E is rounded up to a multiple of 0.02
    redundant = sizing.proactive(members, rate - 0.001, confidence)
    assert lost_more_than(redundant, members + redundant, rate) <= 1 - confidence + 1e-9
    if redundant > sizing.least(rate - 0.001):
        assert lost_more_than(redundant - 1, members + redundant - 1, rate) > 1 - confidence - 1e-9


@given(st.integers(1, 64), st.floats(0, 1), st.floats(0.1, 0.9))
def test_redundancy_is_bounded_by_a_share_of_the_block(members: int, rate: float, most: float) -> None:
    redundant = sizing.proactive(members, rate, 0.99, most)
    assert redundant <= max(sizing.least(rate), most * (members + redundant))
    assert redundant <= sizing.proactive(members, rate, 0.99)


#: profile, the profile it adds to, and its options
PARTS = (
    ("lt-ecn-2005", "sack-2005", {"ecn_only": True}),
    ("lt-mss-2005", "lt-ecn-2005", {"adaptive_mss": True}),
    ("lt-proactive-2005", "lt-mss-2005", {"proactive_fec": True}),
    ("lt-reactive-2005", "lt-mss-2005", {"reactive_fec": True}),
    ("lt-tcp-2005", "lt-proactive-2005", {"reactive_fec": True}),
    ("lt-mss", "lt-ecn", {"adaptive_mss": True}),
    ("lt-tcp", "lt-proactive", {"reactive_fec": True}),
)


@pytest.mark.parametrize(("name", "base", "part"), PARTS, ids=[part[0] for part in PARTS])
def test_each_part_differs_from_its_base_in_one_option(name: str, base: str, part: dict[str, bool]) -> None:
    (option,) = part
    assert getattr(USER_PROFILES[base].config.lt, option) is False
    assert USER_PROFILES[name].config == USER_PROFILES[base].config.but(**part)


def test_without_losses_there_is_no_redundancy() -> None:
    # half a segment of a window of 20
    assert sizing.proactive(20, 0.5 / 20, 0.99) == 0
    assert sizing.split(20, 0.0, 0.9) == 20


@given(st.integers(1, 200), st.floats(0, 1), st.floats(0.01, 0.99))
def test_data_and_redundancy_fill_the_window(segments: int, rate: float, confidence: float) -> None:
    members = sizing.split(segments, rate, confidence)
    assert 1 <= members <= min(segments, sizing.MOST_SEGMENTS)
    redundant = sizing.proactive(members, rate, confidence)
    assert members == 1 or members + redundant <= segments
    assert members + redundant < 256


def test_bins_grow_with_the_rate() -> None:
    rates = [step / 100 for step in range(100)]
    for choice in (sizing.least, sizing.per_dupack):
        values = [choice(rate) for rate in rates]
        assert values == sorted(values)
    assert sizing.per_dupack(0.0) >= 1
    assert sizing.repairs(10, 0.5) == 21
    assert sizing.repairs(10, 1.0) == sizing.repairs(10, 0.7)
