"""The bound of docs/adaptive.md: against the plan, simulation, and points computed by hand; and its properties."""

import math
import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean, pstdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.adaptive.__main__ import TABLES
from experiments.adaptive.bound import Link, Programme, bound, one_coded_round, rounds_within
from linklayer.adaptive.plan import Plan

LOSSES = st.floats(0.01, 0.6)
ROUNDS = st.integers(1, 5)
GROUPS = st.integers(1, 8)
RESIDUALS = st.floats(1e-5, 1e-2)
FEEDBACK_LOSSES = st.floats(0, 1)
#: of a price that bisection finds to 10^-9
SMALL = 1e-6

#: uncoded rounds before a coded one, lost packets in that: issue 31 has these, with two decimals
POINTS = {
    0.1: {(1, 1): 0.86, (1, 20): 0.97, (2, 1): 0.99, (2, 20): 1.0},
    0.2: {(1, 1): 0.63, (1, 20): 0.92, (2, 1): 0.92, (2, 20): 0.99},
    0.3: {(1, 1): 0.46, (1, 20): 0.86, (2, 1): 0.78, (2, 20): 0.96, (3, 1): 0.94, (3, 20): 0.99},
    0.5: {(1, 1): 0.27, (1, 20): 0.74, (2, 1): 0.44, (2, 20): 0.86, (3, 1): 0.64, (3, 20): 0.93}
    | {(5, 1): 0.90, (5, 20): 0.99},
}
CASES = [(loss, *case, share) for loss, cases in POINTS.items() for case, share in cases.items()]


def group_of(loss: float, uncoded: int, packets: int) -> int:
    """A group of which so many packets are lost in the uncoded rounds; a packet alone stays alone."""
    return round(packets / loss**uncoded) if packets > 1 else 1


@pytest.mark.parametrize(("loss", "uncoded", "packets", "share"), CASES)
def test_uncoded_rounds_and_a_coded_one_reach_the_known_points(
    loss: float, uncoded: int, packets: int, share: float
) -> None:
    # two decimals, and 0.8546 is called 0.86
    assert one_coded_round(loss, uncoded, packets, 1e-4) == pytest.approx(share, abs=0.0055)


@pytest.mark.parametrize(("loss", "uncoded", "packets"), [case[:3] for case in CASES if group_of(*case[:3]) <= 80])
def test_known_points_are_below_the_bound(loss: float, uncoded: int, packets: int) -> None:
    best = bound(Link(loss, uncoded + 1, group_of(loss, uncoded, packets)), 1e-4).share
    assert one_coded_round(loss, uncoded, packets, 1e-4) <= best + SMALL


@pytest.mark.parametrize("loss", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("rounds", [1, 2, 4])
@pytest.mark.parametrize("group", [1, 3, 16])
@pytest.mark.parametrize("price", [5.0, 300.0])
def test_systematic_policy_is_the_plan(loss: float, rounds: int, group: int, price: float) -> None:
    programme, plan = Programme(Link(loss, rounds, group, systematic=True), price), Plan(loss, 0, price)
    assert programme.sent == pytest.approx(plan.sent(rounds, group), rel=1e-9)
    assert [int(n) for n in programme.until[-1][:, 0]] == [plan.frames(rounds, m) for m in range(group + 1)]
    # the plan takes coded frames of earlier rounds for packets, so a code misses more
    assert programme.missed >= plan.missed(rounds, group) * (1 - 1e-9)
    if rounds == 1:
        assert programme.missed == pytest.approx(plan.missed(rounds, group), rel=1e-9)


@pytest.mark.parametrize(("loss", "feedback_loss"), [(0.2, 0.0), (0.2, 0.3), (0.5, 0.5)])
@pytest.mark.parametrize("proactive", [True, False])
def test_simulated_groups_take_the_frames_and_misses_of_the_programme(
    loss: float, feedback_loss: float, proactive: bool
) -> None:
    generator, groups = random.Random(1), 10_000
    link = Link(loss, 3, 4, feedback_loss, proactive=proactive)
    programme = Programme(link, 10)
    sent, missed = [], []
    for _ in range(groups):
        known, since, arrived, frames = link.group, 0, 0, 0
        for until in reversed(programme.until):
            new = int(until[known, since]) - since
            frames, since = frames + new, since + new
            arrived += sum(generator.random() >= loss for _ in range(new))
            if generator.random() >= feedback_loss:
                known, since, arrived = max(0, known - arrived), 0, 0
        sent.append(frames)
        missed.append(max(0, known - arrived))
    for values, expected in ((sent, programme.sent), (missed, programme.missed)):
        # five standard errors
        assert fmean(values) == pytest.approx(expected, abs=5 * pstdev(values) / math.sqrt(groups))
        assert expected > 0


@pytest.mark.parametrize(("loss", "rounds", "group", "price"), [(0.3, 2, 8, 20), (0.6, 4, 12, 4)])
def test_simulated_systematic_code_misses_as_many_packets_as_computed(
    loss: float, rounds: int, group: int, price: float
) -> None:
    generator, groups = random.Random(1), 20_000
    programme = Programme(Link(loss, rounds, group, systematic=True), price)
    missed = []
    for _ in range(groups):
        unknown, lacking = group, group
        for until in reversed(programme.until):
            arrived = [index for index in range(int(until[lacking, 0])) if generator.random() >= loss]
            if len(arrived) >= lacking:
                unknown = lacking = 0
                break
            # of the unknown packets, as many go uncoded as there are frames
            unknown -= sum(index < unknown for index in arrived)
            lacking -= len(arrived)
        missed.append(unknown)
    # five standard errors
    assert fmean(missed) == pytest.approx(programme.missed, abs=5 * pstdev(missed) / math.sqrt(groups))
    assert sum(missed) > 100


@pytest.mark.parametrize("rounds", [4, 6])
@pytest.mark.parametrize("group", [4, 20])
def test_systematic_code_is_near_the_bound_beyond_three_rounds(rounds: int, group: int) -> None:
    link = Link(0.5, rounds, group)
    assert bound(replace(link, systematic=True), 1e-4).share >= 0.994 * bound(link, 1e-4).share


def test_systematic_code_is_not_computed_for_lost_feedback() -> None:
    with pytest.raises(ValueError, match="without losses only"):
        Programme(Link(0.3, 3, 4, feedback_loss=0.1, systematic=True), 100)


@settings(max_examples=30)
@given(LOSSES, ROUNDS, GROUPS, RESIDUALS, FEEDBACK_LOSSES)
def test_bound_is_a_share_at_the_residual_loss(
    loss: float, rounds: int, group: int, residual: float, feedback_loss: float
) -> None:
    found = bound(Link(loss, rounds, group, feedback_loss), residual)
    assert 0 < found.share <= 1 + SMALL
    assert found.missed <= residual * (1 + SMALL)
    assert found.share == pytest.approx((1 - found.missed) / found.frames / (1 - loss))
    # what ARQ alone leaves is the only reason to miss less
    if rounds == 1 or not feedback_loss:
        assert found.missed == pytest.approx(min(residual, loss**rounds), rel=SMALL)


@settings(max_examples=12)
@given(LOSSES, ROUNDS, GROUPS, RESIDUALS, FEEDBACK_LOSSES, st.floats(1, 10), st.floats(0, 1))
def test_bound_grows_with_rounds_groups_residual_loss_and_feedback(
    loss: float, rounds: int, group: int, residual: float, feedback_loss: float, times: float, part: float
) -> None:
    link = Link(loss, rounds, group, feedback_loss)
    share = bound(link, residual).share + SMALL
    assert bound(replace(link, rounds=rounds + 1), residual).share + SMALL >= share - SMALL
    assert bound(replace(link, group=2 * group), residual).share + SMALL >= share - SMALL
    assert bound(link, residual * times).share + SMALL >= share - SMALL
    assert bound(replace(link, feedback_loss=part * feedback_loss), residual).share + SMALL >= share - SMALL
    assert bound(replace(link, proactive=False), residual).share - SMALL <= share
    assert bound(replace(link, feedback_loss=0, systematic=True), residual).share <= bound(
        replace(link, feedback_loss=0), residual
    ).share * (1 + SMALL)


@pytest.mark.parametrize("loss", [0.1, 0.3, 0.5])
def test_bound_grows_with_each_packet_of_a_group(loss: float) -> None:
    shares = [bound(Link(loss, 3, group), 1e-4).share for group in range(1, 21)]
    assert all(more >= less - SMALL for less, more in pairwise(shares))
    assert shares[-1] > shares[0]


@pytest.mark.parametrize("loss", [0.01, 0.5, 0.9])
@pytest.mark.parametrize("group", [1, 20])
def test_tables_have_room_for_all_frames_of_the_dearest_policy(loss: float, group: int) -> None:
    until = Programme(Link(loss, 3, group, feedback_loss=0.3), 1e12).until
    assert max(int(row[:, 0].max()) for row in until) < until[0].shape[1] - 1


def test_without_feedback_rounds_bring_nothing() -> None:
    blind = bound(Link(0.3, 4, 4, feedback_loss=1), 1e-3)
    assert blind.share == pytest.approx(bound(Link(0.3, 1, 4), 1e-3).share, rel=SMALL)


def test_single_packet_in_one_round_is_repeated() -> None:
    # three frames at loss 0.1 miss 10^-3
    found = bound(Link(0.1, 1, 1), 1e-3)
    assert found.frames == pytest.approx(3, rel=SMALL)
    # between two numbers of frames, a mixture: 10 of 11 parts of the way from 10^-2 to 10^-1
    assert bound(Link(0.1, 1, 1), 2e-2).frames == pytest.approx(2 - 1 / 9, rel=SMALL)


def test_rounds_that_suffice_uncoded_carry_the_capacity() -> None:
    found = bound(Link(0.1, 5, 4), 1e-4)
    assert found.share == pytest.approx(1, rel=SMALL)
    assert found.missed == pytest.approx(1e-5, rel=SMALL)


def test_headers_take_their_part_of_the_bound() -> None:
    bare, carried = (bound(Link(0.3, 3, 4), 1e-3, header_octets=octets).share for octets in (0, 24))
    assert carried == pytest.approx(bare * 1500 / 1524)


def test_deadline_that_permits_no_such_residual_loss_is_refused() -> None:
    with pytest.raises(ValueError, match="no policy misses as few packets"):
        bound(Link(0.5, 1, 4), 1e-30)


def test_rounds_of_budgets() -> None:
    assert [rounds_within(budget) for budget in (0.5, 1, 1.4, 1.5, 2, 2.5, 3, 6)] == [1, 1, 1, 2, 2, 3, 3, 6]


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_page_has_the_tables_as_computed(name: str) -> None:
    page = Path(__file__).resolve().parents[2] / "docs/adaptive.md"
    assert "\n".join(TABLES[name](1e-4)) in page.read_text()
