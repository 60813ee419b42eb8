"""Outcomes of claims: few, equal, infinite and late runs; repeated claims; comparisons of two campaigns."""

import json
import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.reports.numbers import Tested as Outcome
from testbed.reports.numbers import judge, read_campaign
from testbed.reports.report import compared
from tests.harness.campaigns import CLAIMS, campaign_file, opened
from tests.harness.campaigns import done as row_of_whole
from tests.harness.live_runs import Capture, refused

pytestmark = pytest.mark.slow

#: of a metric that has the same values
ALIAS: dict[str, Any] = {**CLAIMS[0], "metric": "flows.0.end_s"}


def claimed(
    folder: Path,
    greater: Sequence[float],
    than: Sequence[float],
    *,
    claims: Sequence[dict[str, Any]] = CLAIMS[:1],
    cut_at: float = math.inf,
    same: int = 0,
    late: Collection[int] = (),
) -> list[Outcome]:
    """The outcome of claims over runs of these durations, by seed from 1 on; infinite: cut off at `cut_at`.

    `same`: flows whose durations are the same at both points. `late`: seeds at which the second point's runs are late.
    """
    file = campaign_file(folder, hypotheses=claims, seeds={"count": max(len(greater), len(than))})
    alike = {f"flows.{n}.duration_s": 1.0 for n in range(same)}
    aliased = any(each is ALIAS for each in claims)
    with opened(folder / "out", file) as campaign:
        for point, durations in zip(campaign.plan.points, (greater, than), strict=False):
            second = point is campaign.plan.points[1]
            for run, duration in zip((campaign.plan.run(point, n) for n in range(99)), durations, strict=False):
                place = folder / "out" / "runs" / run.name
                place.mkdir()
                stated = min(duration, cut_at)
                flow = {"direction": "down", "finished": duration < math.inf}
                (place / "summary.json").write_text(json.dumps({"duration_s": stated, "flows": [flow]}))
                metrics = {**alike, "duration_s": duration, "goodput_bps": 1.0}
                if aliased:
                    metrics[ALIAS["metric"]] = duration
                on_time = not (second and run.seed in late)
                campaign.add(replace(row_of_whole(run.name, **metrics), on_time=on_time))
    return judge(read_campaign(folder / "out"))


@pytest.mark.parametrize(
    ("greater", "than", "verdict"),
    [
        ([2, 3, 4, 5, 6, 7], [1] * 6, "holds"),
        ([1] * 6, [2, 3, 4, 5, 6, 7], "the opposite holds"),
        ([2, 3], [1, 1], "not shown"),
        ([2, 3, 4, 5, 6], [1] * 5, "not shown"),
        ([1] * 40, [1] * 40, "not shown"),
        ([math.inf] * 40, [math.inf] * 40, "not shown"),
        ([9] + [1] * 39, [1] * 40, "not shown"),
        ([math.inf] + [1] * 39, [1] * 40, "not shown"),
        ([math.inf] + [1] * 5, [2] * 6, "not shown"),
        ([2] * 5 + [1], [1] * 6, "not shown"),
        ([math.inf] * 3 + [1] * 3, [1] * 3 + [math.inf] * 3, "not shown"),
    ],
)
def test_outcomes_of_few_equal_and_infinite_values(
    greater: Sequence[float], than: Sequence[float], verdict: str, tmp_path: Path
) -> None:
    [found] = claimed(tmp_path, greater, than, cut_at=60)
    assert found.verdict == verdict


def test_runs_of_unlike_seeds_are_no_pairs(tmp_path: Path, capsys: Capture) -> None:
    file = campaign_file(tmp_path, hypotheses=CLAIMS, seeds={"count": 6, "paired": False})
    assert "hypotheses are tested in pairs: leave out seeds.paired" in refused(capsys, "campaign", file, "--plan")
    claimed(tmp_path / "a", [2] * 6, [1] * 6)
    with opened(tmp_path / "b", campaign_file(tmp_path, seeds={"first": 100, "count": 6})) as campaign:
        for run in [campaign.plan.run(point, n) for point in campaign.plan.points for n in range(6)]:
            (tmp_path / "b" / "runs" / run.name).mkdir()
            campaign.add(row_of_whole(run.name, duration_s=9.0))
    table, _ = compared(read_campaign(tmp_path / "a" / "out"), read_campaign(tmp_path / "b"))
    assert {(row[4], row[8]) for row in table.rows if row[0] == "duration_s"} == {("0", "")}


def test_claim_is_not_judged_before_all_runs_have_ended(tmp_path: Path) -> None:
    """Who looks after each run, and stops at the first difference, finds one."""
    [found] = claimed(tmp_path, [2] * 7, [1] * 6)
    assert (found.difference.pairs.n, found.verdict) == (6, "not complete")
    campaign = read_campaign(tmp_path / "out")
    assert {row[8] for row in compared(campaign, campaign)[0].rows} == {"not complete"}


def test_repeated_claim_is_one_test(tmp_path: Path) -> None:
    """Otherwise repetitions hide other tests: of ten the adjustment asks for ten times, of 109 for 1.09 times."""
    greater, than = [2, 3, 4, 5, 6, 7, 8, 0.9], [1] * 8
    none = [{**CLAIMS[0], "metric": f"flows.{n}.duration_s"} for n in range(9)]
    once = claimed(tmp_path / "once", greater, than, claims=[CLAIMS[0], *none], same=9)
    often = claimed(tmp_path / "often", greater, than, claims=[*CLAIMS * 50, *none], same=9)
    assert once[0].p is not None
    assert once[0].p > 0.05
    assert {each.p for each in often[:100]} == {once[0].p}
    assert {each.verdict for each in often} == {"not shown"}
    assert often[0].tests == 10
    # the same of a metric by another name
    alias = claimed(tmp_path / "alias", greater, than, claims=[*CLAIMS, *none, ALIAS], same=9)
    assert (alias[-1].p, alias[-1].tests) == (once[0].p, 10)


def test_run_that_was_cut_before_the_other_ended_is_not_the_longer_one(tmp_path: Path) -> None:
    """As where a claim's points have unlike limits."""
    endless, ended = [math.inf] * 8, [20.0] * 8
    [early] = claimed(tmp_path / "early", endless, ended, cut_at=3.0)
    assert (early.verdict, early.difference.pairs.n, early.p) == ("not shown", 8, 1.0)
    [late] = claimed(tmp_path / "late", endless, ended, cut_at=30.0)
    assert late.verdict == "holds"
    [other] = claimed(tmp_path / "other", ended, endless, cut_at=3.0)
    assert other.verdict == "not shown"


@pytest.mark.parametrize(
    ("greater", "late", "verdict"),
    [
        # six pairs without late runs carry the claim, five do not
        ([2, 3, 4, 5, 6, 7, 8, 9], (1, 5), "holds"),
        ([2, 3, 4, 5, 6, 7, 8, 9], (1, 5, 8), "not decided: 5 pairs without late runs"),
        ([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2], (1, 5), "the opposite holds"),
        ([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2], range(1, 9), "not decided: 0 pairs without late runs"),
        # evidence against the claim counts, late or not
        ([1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 0.2, 0.1], (7, 8), "not shown"),
    ],
)
def test_late_runs_alone_decide_no_claim(
    greater: Sequence[float], late: Collection[int], verdict: str, tmp_path: Path
) -> None:
    [found] = claimed(tmp_path, greater, [1] * 8, late=late)
    assert (found.verdict, found.difference.pairs.n) == (verdict, 8)


@pytest.mark.parametrize(("late", "outcome"), [((1, 5), "A > B†"), (range(1, 6), "not decided†")])
def test_late_runs_alone_decide_no_comparison(late: Collection[int], outcome: str, tmp_path: Path) -> None:
    """Four tests need eight pairs."""
    claimed(tmp_path / "a", [1] * 12, range(2, 14))
    claimed(tmp_path / "b", [1] * 12, [1] * 12, late=late)
    table, _ = compared(*(read_campaign(tmp_path / name / "out") for name in "ab"))
    assert [row[8] for row in table.rows if row[0] == "duration_s"] == ["", outcome]
