"""Grafana's board of campaigns on a real InfluxDB: what it shows is what results.json and the report say."""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from telemetry.influx import Influx
from testbed.campaign_database import CampaignDatabase, name_of
from testbed.campaigns.engine import run_campaign
from testbed.reports.numbers import read_campaign
from testbed.reports.report import write_report
from testbed.results.metrics import bounds
from testbed.results.statistics import Interval, describe
from tests.harness.campaigns import InProcess, campaign_file, opened
from tests.harness.flawed_runs import POINTS, flawed
from tests.harness.grafana import BOARDS, Filled, asking, database, panel_of

pytestmark = pytest.mark.slow

#: with as many runs of a point there are intervals of medians and means
SEEDS = 20
METRICS = ("duration_s", "goodput_bps")


class Stored(NamedTuple):
    """A campaign with runs of all kinds: its folder, and its name in a database that has another one, too."""

    folder: Path
    name: str
    database: Filled

    def rows(self, title: str, metric: str) -> list[dict[str, Any]]:
        """The rows that a panel gets, in whatever time range."""
        [target] = panel_of("campaigns", title)["targets"]
        assert (target["resultFormat"], "$timeFilter" in target["query"]) == ("table", False)
        chosen = {"campaign": [self.name], "metric": [metric]}
        answer = self.database.influx.query(self.database.interpolate(target["query"], chosen))
        return [each.tags | dict(zip(each.columns, row, strict=True)) for each in answer for row in each.values]

    def results(self) -> list[dict[str, Any]]:
        runs: list[dict[str, Any]] = json.loads((self.folder / "results.json").read_text())["runs"]
        return runs


def keep(influx: Influx, out: Path, file: Path) -> str:
    """Write a campaign that is over to a database; return its name there."""
    with opened(out, file) as folder, CampaignDatabase(influx, folder, print) as records:
        run_campaign(folder, InProcess, look=records.look)
        return name_of(folder)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    place = tmp_path_factory.mktemp("campaign")
    with pytest.MonkeyPatch.context() as patch:
        out = flawed(place, patch, seeds={"count": SEEDS})
    with database(place / "influxdb") as influx:
        keep(influx, place / "other", campaign_file(place / "another", name="other"))
        name = keep(influx, out, place / "campaign.yaml")
        yield Stored(out, name, Filled(influx, "none", 0, 1))


@pytest.mark.parametrize("metric", METRICS)
def test_points_have_the_words_of_the_report(metric: str, stored: Stored, tmp_path: Path) -> None:
    write_report(read_campaign(stored.folder), tmp_path)
    section = (tmp_path / "report.md").read_text().split(f"## {metric}\n")[1].split("\n## ")[0]
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    headings, _, *lines = table
    expected = [dict(zip(headings, line, strict=True)) for line in lines]
    shown = sorted(stored.rows("Points: $metric", metric), key=lambda row: row["point"])
    assert [row["settings"] for row in shown] == [row["point"] for row in expected]
    names = ["median", "95 % of the median", "mean", "95 % of the mean"]
    assert [[row[name] for name in names] for row in shown] == [[row[name] for name in names] for row in expected]
    assert [row["n"] for row in shown] == [int(re.sub(r"\D", "", row["n"])) for row in expected]
    if metric == "duration_s":
        # a cut run is neither left out nor a number
        assert [row["median"] for row in shown if row["point"].startswith("1-")] == ["never‡"]


@pytest.mark.parametrize("of", ["median", "mean"])
@pytest.mark.parametrize("metric", METRICS)
def test_bars_are_of_the_results(metric: str, of: str, stored: Stored) -> None:
    values: dict[str, list[float]] = {}
    for run in stored.results():
        own = values.setdefault(run["point"], [])
        if run["status"] == "done" and run["intact"]:
            own.append(float(run["metrics"][metric]))
    shown = {row["point"]: row for row in stored.rows(f"{of.capitalize()} and its 95 % interval: $metric", metric)}
    assert len(values) == len(POINTS)
    assert shown.keys() == values.keys()
    for point, own in values.items():
        sample = describe(own, bounds=bounds(metric))
        interval = getattr(sample, f"{of}_interval")
        ends = [interval.low, interval.high] if isinstance(interval, Interval) else [None, None]
        expected = [ends[0], getattr(sample, of), ends[1]]
        finite = [None if value is None or math.isinf(value) else value for value in expected]
        assert [shown[point][name] for name in ("low end", of, "high end")] == finite, point


@pytest.mark.parametrize("metric", METRICS)
def test_matrix_has_every_run_by_its_seed(metric: str, stored: Stored) -> None:
    panel = panel_of("campaigns", "Runs by seed: $metric")
    group, matrix = panel["transformations"]
    # the matrix takes the last of the values in a cell: there is one
    assert set(group["options"]["fields"]) == {"seed", "point", "text"}
    assert matrix["options"] == {"rowField": "seed", "columnField": "point", "valueField": "text (lastNotNull)"}
    rows = stored.rows(panel["title"], metric)
    cells = {(row["seed"], row["point"]): row["text"] for row in rows}
    assert len(cells) == len(rows) == SEEDS * len(POINTS)
    for run in stored.results():
        text = cells[run["seed"], run["point"]]
        if run["status"] == "failed":
            assert text == "corrupt§"
        elif run["metrics"][metric] == "Infinity":
            assert text == "never‡"
        else:
            assert float(text.rstrip("†‡").replace(",", "")) == pytest.approx(run["metrics"][metric], rel=5e-4)
    # the points in the plan's order
    assert [row["point"] for row in rows[: len(POINTS)]] == sorted({row["point"] for row in rows})


def test_list_says_how_far_each_campaign_is(stored: Stored) -> None:
    found = {row["campaign"]: row for row in stored.rows("Campaigns: a click on a name leads to it", "none")}
    assert [name.rpartition("-")[2] for name in sorted(found)] == ["small", "other"]
    ours = found[stored.name]
    assert (ours["ended"], ours["planned"], ours["failed"], ours["points"]) == (80, 80, 20, 4)
    assert (ours["state"], ours["progress"]) == ("complete", 100)
    assert ours["plan"] == json.loads((stored.folder / "results.json").read_text())["plan"]


def test_variables_are_the_campaigns_and_their_metrics(stored: Stored) -> None:
    influx = stored.database.influx
    campaign, metric = BOARDS["campaigns"]["templating"]["list"]
    # the newest first, and metrics by their names
    assert (campaign["sort"], metric["sort"]) == (2, 1)
    [names] = influx.query(stored.database.interpolate(campaign["query"], {}))
    assert stored.name in [row[1] for row in names.values]
    [metrics] = influx.query(stored.database.interpolate(metric["query"], {"campaign": [stored.name]}))
    assert sorted(row[1] for row in metrics.values) == list(METRICS)


def test_words_tell_apart_what_bars_leave_out() -> None:
    for panel in asking(BOARDS["campaigns"]):
        if panel["type"] == "barchart":
            assert "infinite" in panel["description"]
