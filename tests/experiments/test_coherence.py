"""COHERENCE: its cells, their runs, and the statements of the paper on medians. Seeds are stated where runs are.

`tests/conformance/test_papers.py` has the rules of all papers.
"""

from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from experiments.coherence import PAPER, parameters
from experiments.coherence.cells import ELSEWHERE_PERS, METRICS, PERS, SCHEME_WORDS, Case
from experiments.coherence.jobs import counts, job
from experiments.coherence.radio_path_runs import PathOutcome, run
from hosts.tcp.profiles import USER_PROFILES
from linklayer.filters import FILTERS
from linklayer.schemes import SCHEMES
from testbed.errors import FadelabError
from testbed.papers import report
from testbed.papers.results import NO_FIGURE, CellResult, Results, Sample
from testbed.results.ground_truth import Confusion

pytestmark = pytest.mark.slow

CC = Case("figure8", "cc", 0.1)


def test_every_metric_scheme_and_error_rate_is_there_once() -> None:
    pers = 7 * len(PERS) + 2 * len(ELSEWHERE_PERS)
    assert len(METRICS) == 9
    assert len(PAPER.cells) == len(SCHEME_WORDS) * (pers + 2)
    assert {cell.paper for cell in PAPER.cells} == {NO_FIGURE}
    assert min(cell.replications for cell in PAPER.cells) >= 5
    for scheme in (*parameters.SCHEMES.values(), *parameters.FIRST_HOP.values()):
        assert scheme.link in SCHEMES
        assert set(scheme.filters) <= set(FILTERS)
        assert scheme.tcp in USER_PROFILES


def test_cells_differ_in_scheme_error_rate_and_place_alone() -> None:
    one = job(CC)
    for case in (cell.case for cell in PAPER.cells if cell.case.place != "figure7"):
        made = job(case)
        assert made.settings == one.settings
        assert (made.case.per, made.case.position) == (case.per, case.position)
    assert job(Case("figure12", "cc", 0.1)) == one
    assert job(Case("first", "cc", 0.1)).case.scheme.filters == ("cc-sender",)


@pytest.mark.parametrize(
    "setting",
    ["duration_s", "parameters=mine", "duration_s=x", "retries=1.5", "cross_ect=1", "link.scheme=none", "per=0.5"],
)
def test_other_settings_are_refused_in_one_line(setting: str) -> None:
    with pytest.raises(FadelabError, match=rf"^--set {setting}: [^\n]*$"):
        job(CC, [setting])
    assert job(CC, ["retries=5", "wait_ms=61.5", "cross_ect=false"]).settings.retries == 5


def test_both_sets_of_parameters_are_whole_and_a_setting_changes_either() -> None:
    fitted, ours = (job(CC, [f"parameters={name}"]).settings for name in parameters.SETS)
    assert fitted == job(CC).settings
    assert (ours.buffer_packets, ours.mark_packets, ours.min_rto_ms) == (50, 45, 1000)
    # all that the paper does not give, and nothing else
    assert {choice.key for choice in parameters.CHOICES if choice.whose == "ours"} == set(parameters.SETS["ours"])
    for order in (["parameters=ours", "retries=3"], ["retries=3", "parameters=ours"]):
        assert job(CC, order).settings == replace(ours, retries=3)


GUESSES: Confusion = {
    "cc": {
        "congestion": {"corruption": 1, "congestion": 40, "late": 2},
        "late": {"corruption": 0, "congestion": 5, "late": 50},
        "corruption": {"corruption": 0, "congestion": 1, "late": 1},
    }
}


@pytest.mark.parametrize(
    ("confusion", "rates"),
    # without guesses the share of the air; else congestion losses that were taken for others
    [({}, {"mistake_rate": 75}), (GUESSES, {"guesses": 100, "mistake_rate": 3, "needless_rate": 6})],
)
def test_rates_of_mistakes(confusion: Confusion, rates: dict[str, float]) -> None:
    figures: Any = {field.name: 1 for field in fields(PathOutcome)}
    outcome = PathOutcome(**{**figures, "wireless_losses": 30, "congestion_losses": 10, "confusion": confusion})
    assert counts(outcome).items() >= rates.items()


def results(values: dict[str, float]) -> Results:
    """Some cells with made-up figures."""
    found = tuple(CellResult(c, 1, (Sample(values[c.name]),)) for c in PAPER.cells if c.name in values)
    return Results("coherence", found)


def test_findings_name_the_cells_for_which_they_do_not_hold() -> None:
    cells = {"figure8/cc/0.1": 70_000.0, "figure8/tcp/0.1": 36_000.0, "figure8/ecn/0.1": 34_000.0}
    found = {each.statement.name: each for each in PAPER.findings(results(cells))}
    assert found["figure8/cc_best"].misses == ()
    assert (found["figure8/axis"].hits, len(found["figure8/axis"].cases)) == (3, 3)
    assert set(found) == {"figure8/cc_best", "figure8/axis"}
    behind = {each.statement.name: each for each in PAPER.findings(results({**cells, "figure8/dda/0.1": 71_000.0}))}
    assert behind["figure8/cc_best"].misses == ("figure8/cc/0.1, figure8/dda/0.1 (0/1)",)


def test_a_statement_is_of_every_figure_and_of_the_conclusion() -> None:
    places = [statement.place for statement in PAPER.statements]
    for where in (*(f"figure {number}" for number in range(7, 15)), "4.1", "and 5"):
        assert any(where in place for place in places), where


def test_the_report_has_plots_for_the_cells_that_were_computed(tmp_path: Path) -> None:
    values = {cell.name: 10.0 for cell in PAPER.cells if cell.case.place in ("figure8", "figure14")}
    written = report.write(PAPER, results(values), tmp_path)
    assert {path.name for path in written} == {"report.md", "goodput.png", "details.png"}
    assert "## Figure 14: mistake rate (%)" in (tmp_path / "report.md").read_text()


@cache
def short(place: str, scheme: str, per: float) -> PathOutcome:
    """Half a minute, seed 2001, with a window that outlasts the link's retransmissions."""
    made = job(Case(place, scheme, per), ["parameters=ours", "duration_s=30"])
    return run(made.case, made.settings, 2001)


@pytest.mark.parametrize("place", ["figure8", "first", "middle"])
def test_congestion_coherence_keeps_the_window_that_link_arq_alone_loses(place: str) -> None:
    cc, tcp = short(place, "cc", 0.1), short(place, "tcp", 0.1)
    assert cc.goodput_packets > 1.4 * tcp.goodput_packets
    assert cc.mean_cwnd > 2 * tcp.mean_cwnd
    assert counts(cc)["mistake_rate"] < 2


def test_dda_takes_congestion_for_corruption_and_cc_does_not() -> None:
    dda, cc = (counts(short("figure8", scheme, 0.01)) for scheme in ("dda", "cc"))
    assert dda["mistake_rate"] > 5 > cc["mistake_rate"]
