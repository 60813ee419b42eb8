"""The search for COHERENCE's parameters: its score on made-up results, its determinism, and the map's table."""

import csv
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.coherence import clues, parameters, ranking_map
from experiments.coherence.cells import SCHEME_WORDS
from experiments.coherence.parameters import SCHEMES
from experiments.coherence.radio_path_runs import PathCase, PathSettings
from experiments.coherence.search import (
    GRID,
    HEAD,
    SEEDS,
    Candidate,
    Lab,
    Plan,
    best,
    neighbours,
    row,
    search,
    settings_of,
    word,
)
from testbed.papers.results import Sample

FITTED = Path(ranking_map.__file__).parent / "fitted"
#: a counter of each scheme at the three error rates, as the paper's curves may be
PAPERS: Mapping[str, Mapping[str, tuple[float, float, float]]] = {
    "goodput": {
        "tcp": (60_000, 40_000, 15_000),
        "ecn": (65_000, 40_000, 15_000),
        "snoop": (60_000, 60_000, 50_000),
        "dda": (55_000, 54_000, 50_000),
        "cc": (75_000, 70_000, 52_000),
    },
    "wireless_losses": {
        "tcp": (61, 405, 1550),
        "ecn": (66, 405, 1550),
        "snoop": (61, 610, 5400),
        "dda": (56, 550, 5500),
        "cc": (76, 710, 5700),
    },
    "congestion_losses": {
        "tcp": (850, 300, 20),
        "ecn": (60, 30, 10),
        "snoop": (840, 820, 700),
        "dda": (830, 810, 690),
        "cc": (60, 55, 50),
    },
    "mean_cwnd": {
        "tcp": (12, 8, 3),
        "ecn": (12, 8, 3),
        "snoop": (12, 12, 11),
        "dda": (12, 12, 10),
        "cc": (13, 13, 11),
    },
    "timeouts": {
        "tcp": (80, 100, 290),
        "ecn": (10, 80, 285),
        "snoop": (80, 82, 85),
        "dda": (81, 80, 84),
        "cc": (5, 5, 6),
    },
    "retransmissions": dict.fromkeys(SCHEME_WORDS, (500, 500, 1500)),
    "mean_queue": dict.fromkeys(SCHEME_WORDS, (4, 2, 0.3)),
    "mistake_rate": {
        "tcp": (7, 57, 99),
        "ecn": (52, 93, 99),
        "snoop": (0, 0, 0),
        "dda": (93, 59, 11),
        "cc": (1.2, 0.4, 0.06),
    },
}


def observed(**changes: float) -> clues.Observed:
    """The curves above; `cc_goodput=…` changes a counter of a scheme at all error rates by a factor."""
    return {
        (scheme, per): {
            counter: by_scheme[scheme][at] * changes.get(f"{scheme}_{counter}", 1)
            for counter, by_scheme in PAPERS.items()
        }
        for scheme in SCHEME_WORDS
        for at, per in enumerate(clues.CLUE_PERS)
    }


def test_curves_as_the_text_has_them_fit_every_clue() -> None:
    assert [clue.name for clue in clues.CLUES if clue.credit(observed()) < 1] == []
    assert clues.fit(observed()) == 1


@pytest.mark.parametrize(
    ("value", "low", "high", "earned"),
    [
        (15, 10, 20, 1),
        (10, 10, 20, 1),
        (20 * math.sqrt(2), 10, 20, 0.5),
        (10 / math.sqrt(2), 10, 20, 0.5),
        (40, 10, 20, 0),
        (500, 10, 20, 0),
        (0, 10, 20, 0),
        (0, 0, 0.05, 1),
        (1, 0, 0, 0),
        (math.inf, 2, math.inf, 1),
        (math.inf, 1, 2, 0),
    ],
)
def test_credit_falls_from_the_nearer_bound_to_nothing_at_a_factor_of_two(
    value: float, low: float, high: float, earned: float
) -> None:
    assert clues.credit(value, low, high) == pytest.approx(earned)


@pytest.mark.parametrize(
    ("changes", "missed"),
    [
        ({"tcp_timeouts": 0.1, "ecn_timeouts": 0.1}, {"timeout_scale"}),
        ({"cc_mistake_rate": 0.0}, {"cc_mistakes_most", "cc_mistakes_least"}),
        ({"cc_wireless_losses": 8297 / 5700}, {"wireless_scale"}),
        ({"cc_mean_cwnd": 2.1}, {"window_scale"}),
        ({"ecn_retransmissions": 0.1}, {"all_sent_again"}),
    ],
)
def test_clues_miss_what_differs_from_them(changes: dict[str, float], missed: set[str]) -> None:
    seen = observed(**changes)
    assert {clue.name for clue in clues.CLUES if clue.credit(seen) < 1} == missed


def test_the_score_does_not_know_who_wins() -> None:
    # CC just behind Snoop and DDA everywhere, with as large a largest goodput in all
    behind = observed(cc_goodput=0.7, tcp_goodput=1.2, ecn_goodput=1.15)
    for per in clues.CLUE_PERS:
        assert behind["cc", per]["goodput"] < max(behind[each, per]["goodput"] for each in ("snoop", "dda", "ecn"))
    assert clues.fit(behind) == clues.fit(observed()) == 1


def test_clues_have_names_of_their_own_and_bounds_in_order() -> None:
    assert len({clue.name for clue in clues.CLUES}) == len(clues.CLUES)
    assert all(clue.low <= clue.high and clue.place and clue.words for clue in clues.CLUES)


# -- search --------------------------------------------------------------------------------------------------


def made_up(case: PathCase, settings: PathSettings, seed: int) -> Sample:
    """The paper's curves where the buffer is 12; more losses and timeouts with others."""
    scheme = next(name for name, given in SCHEMES.items() if given == case.scheme)
    at = clues.CLUE_PERS.index(case.per)
    share, off = settings.duration_s / 500, 1 + abs(settings.buffer_packets - 12) / 10
    counts = {counter: by_scheme[scheme][at] for counter, by_scheme in PAPERS.items()}
    for counter in ("wireless_losses", "congestion_losses", "timeouts", "retransmissions"):
        counts[counter] *= share
    counts["congestion_losses"] *= off * (1 + seed / 1000)
    counts["timeouts"] *= off
    return Sample(counts.pop("goodput") * share, counts)


PLAN = Plan(seed=7, coarse=12, coarse_s=50, starts=1, local_s=100, rounds=3, finalists=3)


def test_search_finds_the_buffer_that_fits_and_repeats_by_its_seed() -> None:
    first = search(PLAN, Lab(made_up))
    assert [row(each) for each in search(PLAN, Lab(made_up))] == [row(each) for each in first]
    found = dict(zip(GRID, best(first).candidate, strict=True))
    assert found["buffer_packets"] == 12
    assert best(first).score == 1
    other = search(replace(PLAN, seed=8), Lab(made_up))
    assert [each.candidate for each in other] != [each.candidate for each in first]


def test_a_line_of_the_search_has_a_column_for_each_parameter_and_clue() -> None:
    scored = search(Plan(coarse=1, starts=0), Lab(made_up))[0]
    assert len(row(scored)) == len(HEAD) == 3 + len(GRID) + len(clues.CLUES)


def test_seeds_of_the_search_are_not_those_of_the_published_figures() -> None:
    plan = Plan()
    assert {*plan.coarse_seeds, *plan.local_seeds, *plan.final_seeds, *ranking_map.SEEDS} <= set(SEEDS)
    assert max(SEEDS) < 1001


def test_runs_that_a_scheme_cannot_tell_apart_are_computed_once() -> None:
    asked: list[tuple[str, float]] = []

    def run(case: PathCase, settings: PathSettings, seed: int) -> Sample:
        asked.append((case.scheme.link, case.per))
        return made_up(case, settings, seed)

    lab = Lab(run)
    first: Candidate = tuple(values[0] for values in GRID.values())
    at = list(GRID).index("mark_share")
    for candidate in (first, (*first[:at], GRID["mark_share"][-1], *first[at + 1 :])):
        lab.observe(settings_of(candidate, 100), (1,))
    # ECN and CC anew, the drop-tail schemes not
    assert len(asked) == len(clues.CLUE_PERS) * (5 + 2)


def test_neighbours_of_a_value_are_those_beside_it() -> None:
    assert neighbours((1, 2, 3), 1) == [2]
    assert neighbours((1, 2, 3), 2) == [1, 3]


def test_the_parameters_are_those_that_fitted_best() -> None:
    with (FITTED / "search.csv").open(newline="") as file:
        tried = list(csv.DictReader(file))
    values = {name: {word(value): value for value in given} for name, given in GRID.items()}
    found = max((line for line in tried if line["stage"] == "final"), key=lambda line: float(line["score"]))
    candidate = tuple(values[name][found[name]] for name in GRID)
    assert settings_of(candidate, 500) == parameters.settings({})
    for line in tried:
        earned = [clues.credit(float(line[clue.name]), clue.low, clue.high) for clue in clues.CLUES]
        assert float(line["score"]) == pytest.approx(sum(earned) / len(earned), abs=1e-3)


# -- map -----------------------------------------------------------------------------------------------------


def test_map_names_winner_and_margin_and_is_read_back(tmp_path: Path) -> None:
    points = ranking_map.write(ranking_map.survey(Lab(made_up), duration_s=100, seeds=(1,)), tmp_path / "map.csv")
    assert len(points) == len(ranking_map.BUFFERS) * len(ranking_map.SHARES) * len(clues.CLUE_PERS)
    assert points[0].winner == "cc"
    assert points[0].margin == pytest.approx(75_000 / 65_000 - 1)
    lines = (tmp_path / "map.csv").read_text().splitlines()
    assert lines[0] == "buffer_packets,mark_share,per,fit,tcp,ecn,snoop,dda,cc,winner,cc_margin"
    assert lines[1] == "6,0.2,0.001,0.964,60000,65000,60000,55000,75000,cc,0.1538"
    assert ranking_map.read(tmp_path / "map.csv")[:2] == [point._replace(fit=0.964) for point in points[:2]]


def test_margin_is_negative_where_another_scheme_leads() -> None:
    point = ranking_map.Point(10, 0.5, 0.1, 0.8, (1, 2, 4, 3, 3))
    assert (point.winner, point.margin) == ("snoop", -0.25)


def test_the_stored_map_has_every_point() -> None:
    points = ranking_map.read(FITTED / "map.csv")
    assert [(point.buffer_packets, point.mark_share, point.per) for point in points] == [
        (buffer, share, per)
        for buffer in ranking_map.BUFFERS
        for share in ranking_map.SHARES
        for per in clues.CLUE_PERS
    ]
