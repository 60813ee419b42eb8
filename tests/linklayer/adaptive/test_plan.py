"""The plan of slacp-adaptive: against the programme written plainly, against simulation, and its properties."""

import math
import random
from math import comb, lgamma

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklayer.adaptive.plan import MAX_FRAMES, MAX_GROUP, MAX_ROUNDS, Plan, plan_for

LOSSES = st.floats(0, 0.9)
CORRELATIONS = st.sampled_from((0.0, 0.02, 0.1, 0.3))
PRICES = st.floats(1, 1e4)
ROUNDS = st.integers(1, 4)
GROUPS = st.integers(1, 6)
#: of sums of products of floats, and of costs that the plan takes for the same, 10^-9 in each round
SMALL = 1e-8


def arrive(j: int, n: int, loss: float, correlation: float) -> float:
    """Probability that j of n frames arrive: the beta-binomial distribution by its definition."""
    if not correlation:
        return comb(n, j) * (1 - loss) ** j * loss ** (n - j)
    spread = 1 / correlation - 1
    arrives, is_lost = (1 - loss) * spread, loss * spread

    def beta(x: float, y: float) -> float:
        return lgamma(x) + lgamma(y) - lgamma(x + y)

    return comb(n, j) * math.exp(beta(j + arrives, n - j + is_lost) - beta(arrives, is_lost))


def cost_of(choose: Plan, loss: float, correlation: float, price: float, rounds: int, group: int) -> float:
    """Cost of the choices of a plan under another loss, correlation and price."""
    after = [price * m for m in range(group + 1)]
    for row in range(1, rounds + 1):
        now = [0.0]
        for m in range(1, group + 1):
            n = choose.frames(row, m)
            cost = float(n)
            for j in range(min(m, n + 1)):
                left = price * (m - j * min(1, m / n)) if row == 1 and n else after[m - j]
                cost += arrive(j, n, loss, correlation) * left
            now.append(cost)
        after = now
    return after[group]


@pytest.mark.parametrize(("loss", "correlation"), [(0.1, 0.0), (0.3, 0.05), (0.5, 0.2)])
def test_plan_is_the_best_of_all_numbers_of_frames(loss: float, correlation: float) -> None:
    price, most = 200.0, 70
    plan = Plan(loss, correlation, price)
    after = [price * m for m in range(5)]
    for row in (1, 2, 3):
        best = [0.0]
        for m in range(1, 5):
            costs = [
                n
                + sum(
                    arrive(j, n, loss, correlation)
                    * (price * (m - j * min(1, m / n)) if row == 1 and n else after[m - j])
                    for j in range(min(m, n + 1))
                )
                for n in range(most)
            ]
            best.append(min(costs))
            assert plan.cost(row, m) == pytest.approx(best[m], rel=SMALL)
            assert costs[plan.frames(row, m)] == pytest.approx(best[m], rel=SMALL)
        after = best


@pytest.mark.parametrize(("loss", "rounds", "group"), [(0.1, 2, 4), (0.3, 3, 8), (0.5, 2, 2), (0.5, 1, 16)])
def test_frames_and_misses_of_plan_are_those_of_simulated_groups(loss: float, rounds: int, group: int) -> None:
    generator, groups = random.Random(1), 20_000
    plan = Plan(loss, 0, 5)
    sent, missed = [], []
    for _ in range(groups):
        frames, lacking, lost = 0, group, 0
        for row in range(rounds, 0, -1):
            n = plan.frames(row, lacking)
            frames += n
            arrived = [index for index in range(n) if generator.random() >= loss]
            if len(arrived) >= lacking:
                lost = 0
                break
            # the first `lacking` frames are uncoded; too few coded ones restore nothing in the end
            lost = lacking - sum(index < lacking for index in arrived)
            lacking -= len(arrived)
        sent.append(frames)
        missed.append(lost)
    # five standard errors of the mean: wrong once in 10^6 draws, and the generator is seeded
    for values, expected in ((sent, plan.sent(rounds, group)), (missed, plan.missed(rounds, group))):
        mean = sum(values) / groups
        error = math.sqrt(sum((value - mean) ** 2 for value in values) / groups**2)
        assert mean == pytest.approx(expected, abs=5 * error + SMALL)
        assert expected > 0


def test_losses_of_a_round_have_the_correlation() -> None:
    plan = Plan(0.3, 0.2, 100)
    for n in (1, 5, 12):
        for j, probability in enumerate(plan._arrivals_of(n)):
            assert probability == pytest.approx(arrive(j, n, 0.3, 0.2), rel=SMALL)


@given(LOSSES, CORRELATIONS, PRICES, ROUNDS, GROUPS)
def test_cost_is_frames_and_price_of_misses(loss: float, correlation: float, price: float, r: int, m: int) -> None:
    plan = Plan(loss, correlation, price)
    assert plan.cost(r, m) == pytest.approx(plan.sent(r, m) + price * plan.missed(r, m), rel=SMALL)
    assert 0 <= plan.missed(r, m) <= m
    # each packet that is not missed arrives in a frame
    assert plan.sent(r, m) * (1 - loss) >= m - plan.missed(r, m) - SMALL * m


@given(LOSSES, CORRELATIONS, PRICES, ROUNDS, GROUPS)
def test_more_rounds_and_fewer_packets_cost_less(loss: float, correlation: float, price: float, r: int, m: int) -> None:
    plan = Plan(loss, correlation, price)
    assert plan.cost(r + 1, m) <= plan.cost(r, m) * (1 + SMALL)
    assert plan.cost(r, m - 1) <= plan.cost(r, m) * (1 + SMALL)


@given(st.floats(0, 0.6), st.floats(0, 0.3), CORRELATIONS, PRICES, ROUNDS, GROUPS)
def test_more_loss_costs_more(loss: float, more: float, correlation: float, price: float, r: int, m: int) -> None:
    assert Plan(loss, correlation, price).cost(r, m) <= Plan(loss + more, correlation, price).cost(r, m) * (1 + SMALL)


@given(LOSSES, CORRELATIONS, PRICES, st.floats(1, 10), ROUNDS, GROUPS)
def test_higher_price_buys_fewer_misses(
    loss: float, correlation: float, price: float, times: float, r: int, m: int
) -> None:
    cheap, dear = Plan(loss, correlation, price), Plan(loss, correlation, price * times)
    assert dear.missed(r, m) <= cheap.missed(r, m) + SMALL * m
    assert dear.sent(r, m) >= cheap.sent(r, m) * (1 - SMALL)


def test_lossless_link_sends_each_packet_once() -> None:
    plan = Plan(0, 0.3, 1000)
    for rounds in (1, 3):
        assert [plan.frames(rounds, m) for m in range(MAX_GROUP + 1)] == list(range(MAX_GROUP + 1))
    assert plan.cost(2, 5) == 5


def test_nothing_is_sent_where_a_miss_is_cheaper() -> None:
    assert Plan(0.5, 0, 1.9).frames(3, 4) == 0
    assert Plan(0.5, 0, 2.1).frames(3, 4) > 0
    assert Plan(1, 0, 100).frames(2, 3) == 0
    assert Plan(1, 0, 100).missed(2, 3) == 3


def test_uncoded_while_a_round_is_left_at_low_loss_and_coded_in_the_last() -> None:
    plan = Plan(0.05, 0, 300)
    assert [plan.frames(3, m) for m in (1, 4, 8)] == [1, 4, 8]
    assert all(plan.frames(1, m) > m for m in (1, 4, 8))


def test_redundancy_is_proactive_with_a_round_left_at_high_loss() -> None:
    assert Plan(0.3, 0, 300).frames(2, 4) > 4


def test_correlated_losses_take_more_frames_in_the_last_round() -> None:
    assert Plan(0.2, 0.1, 300).frames(1, 8) > Plan(0.2, 0, 300).frames(1, 8)


def test_rounds_and_frames_are_bounded() -> None:
    plan = Plan(0.3, 0, 300)
    assert plan.cost(MAX_ROUNDS + 5, 4) == plan.cost(MAX_ROUNDS, 4) < plan.cost(MAX_ROUNDS - 1, 4)
    assert Plan(0.97, 0.4, 1e9).frames(1, MAX_GROUP) == MAX_FRAMES
    assert plan.frames(1, 0) == 0


def test_rows_do_not_depend_on_the_order_in_which_they_are_asked_for() -> None:
    one, other = Plan(0.3, 0.05, 300), Plan(0.3, 0.05, 300)
    rows = [(r, m) for r in (1, 2, 3, 4) for m in range(9)]
    asked = {row: one.cost(*row) for row in rows}
    assert {row: other.cost(*row) for row in reversed(rows)} == asked


@pytest.mark.parametrize("wrong", [(-0.1, 0, 1), (1.1, 0, 1), (0.1, 1, 1), (0.1, -0.1, 1), (0.1, 0, -1)])
def test_wrong_values_are_refused(wrong: tuple[float, float, float]) -> None:
    for make in (Plan, plan_for):
        with pytest.raises(ValueError, match="no plan for"):
            make(*wrong)


@pytest.mark.parametrize("wrong", [(0, 1), (1, -1), (1, MAX_GROUP + 1)])
def test_wrong_rows_are_refused(wrong: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="no plan for"):
        Plan(0.1, 0, 100).frames(*wrong)


def test_cached_plan_costs_at_most_one_percent_more() -> None:
    generator, worst = random.Random(1), 0.0
    for _ in range(150):
        loss = 1 / (1 + math.exp(-generator.uniform(-9, 2.9)))
        price = math.exp(generator.uniform(0, math.log(1e5)))
        correlation = generator.choice((0.0, 0.04, 0.2))
        best, cached = Plan(loss, correlation, price), plan_for(loss, correlation, price)
        for rounds in (1, 2, 3, 4):
            for m in (1, 4, 8):
                cost = cost_of(cached, loss, correlation, price, rounds, m)
                worst = max(worst, cost / best.cost(rounds, m) - 1)
    assert 0 < worst <= 0.01


def test_cached_plan_has_the_nearest_correlation() -> None:
    assert plan_for(0.2, 0.012, 300) is plan_for(0.2, 0.01, 300)
    assert plan_for(0.2, 0.018, 300) is plan_for(0.2, 0.02, 300)
    assert plan_for(0.2, 0.9, 300) is plan_for(0.2, 0.5, 300)
    assert plan_for(0.2, 0.01, 300) is not plan_for(0.2, 0.02, 300)


def test_cached_plan_of_extreme_values() -> None:
    assert plan_for(0, 0, 300) is plan_for(1e-9, 0, 300)
    assert plan_for(1, 0, 300) is plan_for(0.99, 0, 300)
    assert plan_for(0.1, 0, 0).frames(2, 4) == 0
    assert plan_for(0.1, 0, math.inf).missed(1, 1) < 1e-8
