"""Agreement of points: medians of paired runs, scores and bounds. Tier model, seeds 1 to 3."""

import json
import shutil
from pathlib import Path
from statistics import median

import pytest

from testbed.campaigns.engine import run_campaign
from testbed.campaigns.file import CampaignError, load_campaign
from testbed.campaigns.plan import make_plan
from testbed.cli import app
from testbed.reports import agreement
from testbed.reports.agreement import Compared, blocks, compare
from testbed.reports.document import Heading, Paragraph, Table
from testbed.reports.numbers import read_campaign
from tests.harness.campaigns import InProcess, campaign_file, opened, plan

slow = pytest.mark.slow

#: two profiles of one TCP: the same runs
SAME = {"points": {"tcp": "reno"}, "to": {"tcp": "newreno"}, "within": 0.01}
FAR = {"points": {"tcp": "reno"}, "to": {"tcp": "bsd"}, "within": 0.01}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("agreement")
    changes = {
        "sweep": {"grid": {"link.scheme": ["none", "slacp"], "tcp": ["reno", "newreno", "bsd"]}},
        "agreement": [SAME, FAR],
    }
    with opened(folder / "out", campaign_file(folder, **changes)) as campaign:
        run_campaign(campaign, InProcess)
    return folder / "out"


def compared(
    ours: float, theirs: float, within: float | None = 0.1, on_time: tuple[float, float] | None = (1.0, 1.0)
) -> Compared:
    return Compared("", "a", "b", "goodput (Mbit/s)", 5, ours, theirs, within, on_time)


@pytest.mark.parametrize(
    ("ours", "theirs", "score", "agrees"),
    [(1.0, 1.0, 1.0, True), (1.09, 1.0, 1 / 1.09, True), (0.89, 1.0, 0.89, False), (0, 0, 1.0, True), (1, 0, 0, False)],
)
def test_score_is_the_smaller_over_the_larger(ours: float, theirs: float, score: float, agrees: bool) -> None:
    assert compared(ours, theirs).score == pytest.approx(score)
    assert compared(ours, theirs).agrees is agrees
    assert compared(ours, theirs, None, None).agrees


@pytest.mark.parametrize(
    ("ours", "on_time", "verdict"),
    [
        (1.0, (1.09, 1.0), "agrees"),
        (1.0, (1.2, 1.0), "not decided without late runs"),
        (1.0, None, "not decided without late runs"),
        # to be late does not take a difference away
        (1.2, (1.0, 1.0), "differs"),
    ],
)
def test_late_runs_alone_make_no_agreement(ours: float, on_time: tuple[float, float] | None, verdict: str) -> None:
    assert compared(ours, 1.0, on_time=on_time).verdict == verdict
    assert compared(ours, 1.0, on_time=on_time).agrees is (verdict == "agrees")


@slow
def test_points_are_compared_with_those_that_differ_in_these_settings_alone(made: Path) -> None:
    found = compare(read_campaign(made))
    goodputs = [each for each in found if each.within is not None]
    assert [(each.where, each.points, each.to) for each in goodputs] == [
        ("scheme=none", "tcp=reno", "tcp=newreno"),
        ("scheme=slacp", "tcp=reno", "tcp=newreno"),
        ("scheme=none", "tcp=reno", "tcp=bsd"),
        ("scheme=slacp", "tcp=reno", "tcp=bsd"),
    ]
    assert {each.n for each in found} == {3}
    campaign = read_campaign(made)
    first = campaign.plan.having({"link.scheme": "none", "tcp": "reno"})[0]
    assert all(each.on_time == (each.ours, each.theirs) for each in found)
    assert goodputs[0].ours == pytest.approx((campaign.sample(first, "goodput_bps").median or 0) / 1e6)
    quantities = {each.quantity: each for each in found if each.where == "scheme=slacp" and each.to == "tcp=newreno"}
    assert len(quantities) == 5
    assert quantities["smoothed RTT, mean (ms)"].ours >= 50


@slow
def test_only_seeds_that_both_have_count(made: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(made, tmp_path / "copy"))
    shutil.rmtree(copy / "runs" / "0-none-reno-s2")
    found = compare(read_campaign(copy))[0]
    theirs = [json.loads((copy / "runs" / f"1-none-newreno-s{seed}" / "summary.json").read_text()) for seed in (1, 3)]
    assert found.n == 2
    assert found.theirs == pytest.approx(median(one["goodput_bps"] for one in theirs) / 1e6)


@slow
def test_command_fails_beyond_the_bound_and_report_has_the_section(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.main(["report", "agreement", str(made)]) == 2
    out, err = capsys.readouterr()
    assert "do not agree within the bound, the first: scheme=none: goodput (Mbit/s)" in err
    assert "The goodput agrees at " in out
    heading, *tables, words = blocks(read_campaign(made))
    assert heading == Heading(2, "Agreement")
    assert [type(each) for each in tables] == [Table, Table]
    assert isinstance(words, Paragraph)
    assert words.text.startswith("The goodput agrees at ")


def test_means_of_records_are_of_the_first_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("a", 1024), ("b", 9999), ("a", None), ("a", 3072)]
    for found, mean in ((rows, 2.0), (rows[2:3], None), ([], None)):
        records = [{"flow": flow, "cwnd_bytes": cwnd} for flow, cwnd in found]
        monkeypatch.setattr(agreement, "read_records", lambda folder, kind, needs, records=records: records)
        assert agreement.QUANTITIES["cwnd, mean (KiB)"](Path()) == mean


def test_agreement_without_such_points_is_refused_and_plans_without_it_keep_their_hash(tmp_path: Path) -> None:
    with pytest.raises(CampaignError, match=r"agreement\.0: no two points"):
        plan(agreement=[SAME])
    assert "agreement" not in plan().document()["campaign"]
    file = campaign_file(tmp_path, sweep={"grid": {"tcp": ["reno", "newreno"]}}, agreement=[SAME])
    assert make_plan(load_campaign(file), file)[0].document()["campaign"]["agreement"] == [SAME]
