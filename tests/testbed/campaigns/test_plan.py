"""Campaign files and the plans made of them."""

import json
from functools import reduce
from operator import getitem
from pathlib import Path

import pytest

from channel.replay import Outcome, Trace
from channel.trace import write_trace
from testbed.campaigns.file import load_campaign, parse_campaign
from testbed.campaigns.folder import open_plan
from testbed.campaigns.plan import CampaignPlan, make_plan, plan_from
from testbed.errors import FadelabError
from tests.harness.campaigns import campaign_file, opened, plan, raw_campaign

ROOT = Path(__file__).parents[3]
#: 101 points
MANY = {"grid": {"mtu": list(range(1000, 1101))}}
STOP = {"metric": "timeouts", "half_width": 1}


def test_points_are_every_combination_of_grid_and_list() -> None:
    made = plan(
        sweep={
            "grid": {"link.scheme": ["none", "slacp"], "channel.per": [0.01, 0.1]},
            "list": [{"tcp": "reno"}, {"tcp": "newreno", "mtu": 1000}],
        }
    )
    names = [point.name for point in made.points]
    assert names[:3] == ["0-none-0.01-reno", "1-none-0.01-newreno-1000", "2-none-0.1-reno"]
    assert len(made.points) == 8
    last = made.points[-1]
    assert last.settings == {"link.scheme": "slacp", "channel.per": 0.1, "tcp": "newreno", "mtu": 1000}
    assert (last.scenario["link"]["scheme"], last.scenario["mtu"]) == ("slacp", 1000)
    assert last.label == "scheme=slacp per=0.1 tcp=newreno mtu=1000"


def test_paired_seeds_are_the_same_at_all_points_and_others_are_never() -> None:
    paired, apart = plan(seeds={"first": 7, "count": 3}), plan(seeds={"first": 7, "count": 3, "paired": False})

    def seeds(made: CampaignPlan) -> list[list[int]]:
        return [[made.run(point, n).seed for n in range(3)] for point in made.points]

    assert seeds(paired) == [[7, 8, 9], [7, 8, 9]]
    assert seeds(apart) == [[7, 8, 9], [10, 11, 12]]


def test_hash_depends_on_all_that_decides_results_and_on_nothing_else(tmp_path: Path) -> None:
    base = plan().sha256
    assert plan(sweep={"grid": {"link.scheme": ["none", "slacp"]}, "list": [{}]}).sha256 == base
    claim = {"claim": "c", "metric": "duration_s", "greater": {"link.scheme": "none"}, "than": {"link.scheme": "slacp"}}
    others = [
        plan(seeds={"count": 4}),
        plan(seeds={"count": 3, "first": 2}),
        plan(hypotheses=[claim]),
        plan(hypotheses=[{**claim, "greater": claim["than"], "than": claim["greater"]}]),
        plan(set={"mtu": 1400}),
        plan(metrics=["timeouts"]),
    ]
    assert len({base, *(other.sha256 for other in others)}) == 7
    in_file = make_plan(load_campaign(campaign_file(tmp_path)), tmp_path / "campaign.yaml")[0]
    assert in_file.sha256 == base


@pytest.mark.parametrize(
    "changes",
    [{}, {"seeds": None, "stop": {"metric": "goodput_bps", "half_width": "5%", "of": "mean"}}],
    ids=["fixed", "stop"],
)
def test_plan_read_back_is_the_same(changes: dict[str, object]) -> None:
    made = plan(**changes)
    assert plan_from(made.document(), "plan.json").sha256 == made.sha256


@pytest.mark.parametrize(
    ("keys", "value", "complaint"),
    [
        (("format",), 2, "has format 2, and this version reads 1"),
        (("campaign",), [], "campaign: input should be a valid dictionary"),
        (("campaign", "seeds"), {"count": 10**12}, "seeds.count: input should be less than or equal to 10000"),
        (("points",), {"a": 1}, "points: input should be a valid tuple"),
        (("points",), [1], "points.0: input should be a valid dictionary"),
        (("points", 0, "name"), ["0-none"], "points.0.name: input should be a valid string"),
        (("points", 0, "name"), "1-slacp", "points: two have the same name"),
        (("points", 0, "settings"), 5, "points.0.settings: input should be a valid dictionary"),
        (("points", 0, "settings"), {"link.scheme": "slacp"}, "two points have the same settings"),
        (("points", 0, "scenario"), "x", "points.0.scenario: input should be a valid dictionary"),
        (("points", 0, "scenario", "tier"), ["model"], "points.0.scenario: tier must be one of"),
        (("points", 0, "scenario", "name"), 5, "points.0.scenario: it has no name"),
        (("points", 0, "name"), "../../elsewhere", "'../../elsewhere' is no name of a point"),
        (("points", 0, "scenario", "channel"), {"path": "/dev/zero"}, "reads '/dev/zero', which is none of its files"),
        (("files",), {"files/../../../secret": "0"}, "names 'files/../../../secret', which is outside its folder"),
        (("files",), {"index.jsonl": "0"}, "'index.jsonl' is not in files/"),
        (("files",), {"files/a/b": "0"}, "'files/a/b' is not in files/"),
        (("files",), [], "files: input should be a valid dictionary"),
        (("files",), {"a": 1}, "files.a: input should be a valid string"),
    ],
)
def test_plan_of_a_stranger_is_refused_in_one_line(keys: tuple[str | int, ...], value: object, complaint: str) -> None:
    document = json.loads(plan().text)
    *parents, last = keys
    reduce(getitem, parents, document)[last] = value
    with pytest.raises(FadelabError, match=complaint) as refused:
        plan_from(document, "plan.json")
    assert "\n" not in str(refused.value)


def test_files_of_scenarios_are_copied_and_hashed(tmp_path: Path) -> None:
    trace = tmp_path / "air.parquet"
    write_trace(trace, Trace(list(range(50)), [1500] * 50, [Outcome.OK] * 50))
    replay = {"channel.errors": {"model": "trace", "path": "air.parquet"}, "channel.per": None}
    file = campaign_file(tmp_path, sweep=None, set=replay)
    with opened(tmp_path / "out", file) as folder:
        [name] = folder.plan.files
        assert name.endswith("-air.parquet")
        assert (tmp_path / "out" / name).read_bytes() == trace.read_bytes()
        assert folder.plan.points[0].scenario["channel"]["errors"]["path"] == name
        assert str(tmp_path) not in folder.plan.text
    assert open_plan(tmp_path / "out").sha256 == folder.plan.sha256


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"sweeps": {}}, "sweeps: unknown key"),
        ({"scenario": None}, "scenario: is missing"),
        ({"scenario": "none.yaml"}, "none.yaml: no such scenario"),
        ({"scenario": "a\0b.yaml"}, "scenario: is neither the name of a file nor a mapping"),
        (
            {"sweep": {"list": [{"scenario": 2.5, "tcp": "reno"}]}},
            "scenario: is neither the name of a file nor a mapping",
        ),
        ({"name": None}, "name: field required"),
        ({"seeds": {"count": 0}}, "^campaign.yaml: seeds.count: input should be greater than or equal to 1$"),
        ({"stop": {"metric": "timeouts", "half_width": 1}}, "^campaign.yaml: seeds.count and stop exclude"),
        ({"metrics": ["goodput"]}, "no metric 'goodput': choose from"),
        ({"sweep": {"grid": {"link.schema": [1]}}}, "link.schema=1: link.schema: unknown key .did you mean scheme"),
        ({"sweep": {"grid": {"seed": [1]}}}, "seed cannot be set or swept"),
        (
            {"sweep": {"grid": {f"link.x{n}": list(range(100)) for n in range(6)}}},
            "sweep: has 1,000,000,000,000 points, 10,000 at most",
        ),
        ({"seeds": {"count": 10_001}}, "seeds.count: input should be less than or equal to 10000"),
        ({"sweep": MANY, "seeds": {"count": 10_000}}, "seeds.count: makes 1,010,000 runs, 1,000,000 at most"),
        (
            {"sweep": MANY, "seeds": {}, "stop": STOP | {"least": 10_000, "most": 10_000}},
            "stop.least: makes 1,010,000 runs, 1,000,000 at most",
        ),
        (
            {"sweep": MANY, "seeds": {}, "stop": STOP | {"batch": 10**9, "most": 9_999}},
            "stop.batch: makes 1,009,899 runs, 1,000,000 at most",
        ),
        ({"metrics": [None]}, "metrics.0: none is no name of a metric"),
        ({"sweep": {"list": [{"mtu": 1000}, {"mtu": 1000}]}}, "two points have the same settings"),
        ({"stop": {"metric": "timeouts", "half_width": 1}}, "seeds.count and stop exclude one another"),
        ({"seeds": {}, "stop": {"metric": "timeouts", "half_width": "0%"}}, "half_width is 0 %"),
        ({"seeds": {}, "stop": {"metric": "timeouts", "half_width": 1, "least": 9, "most": 3}}, "least is 9"),
        (
            {"hypotheses": [{"claim": "c", "metric": "timeouts", "greater": {"mtu": 1}, "than": {"mtu": 2}}]},
            "hypotheses.0: no two points have these settings",
        ),
        (
            {"reference": [{"source": "s", "metric": "timeouts", "at": {"mtu": 1}, "value": 2}]},
            "reference.0: no point has",
        ),
    ],
)
def test_wrong_campaign_is_one_line(changes: dict[str, object], complaint: str) -> None:
    with pytest.raises(FadelabError, match=complaint) as raised:
        make_plan(parse_campaign(raw_campaign(**changes), "campaign.yaml"), Path("campaign.yaml"))
    assert "campaign.yaml" in str(raised.value) or "none.yaml" in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("stop", "complaint"),
    [
        ({"least": 5}, "stop.least: 5 runs carry no 95 % interval of the median: 6 or more do"),
        ({"of": "mean"}, "stop.least: 10 runs carry no 95 % interval of the mean: 20 or more do"),
        ({"least": 7, "confidence": 0.99}, "stop.least: 7 runs carry no 99 % interval of the median: 8 or more do"),
    ],
)
def test_stop_rule_begins_where_its_interval_does(stop: dict[str, object], complaint: str, tmp_path: Path) -> None:
    file = campaign_file(tmp_path, seeds=None, stop={"metric": "timeouts", "half_width": 1, **stop})
    with pytest.raises(FadelabError, match=f"^{file}: {complaint}$"):
        load_campaign(file)
