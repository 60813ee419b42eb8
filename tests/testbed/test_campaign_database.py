"""A campaign in a real InfluxDB: as it goes on, goes on again, and while the database is away."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from telemetry.influx import Influx
from testbed import campaign_database
from testbed.campaign_database import CampaignDatabase, name_of
from testbed.campaigns.engine import run_campaign
from testbed.campaigns.rows import Row
from testbed.campaigns.schedule import Schedule
from tests.harness.campaigns import InProcess, campaign_file, done, opened
from tests.harness.grafana import database
from tests.harness.influxd import count, free_port, influxd
from tests.harness.live_runs import finish, start

pytestmark = pytest.mark.slow

#: of the campaign below: runs, and metrics of each
RUNS, METRICS = 6, 2


@pytest.fixture
def influx(tmp_path: Path) -> Iterator[Influx]:
    with database(tmp_path / "influxdb") as influx:
        yield influx


def silent(line: str) -> None:
    raise AssertionError(line)


def rows(influx: Influx, query: str) -> list[dict[str, Any]]:
    found = influx.query(query)
    return [series.tags | dict(zip(series.columns, row, strict=True)) for series in found for row in series.values]


def newest(influx: Influx) -> dict[tuple[str, str], dict[str, Any]]:
    """The newest figures by point and metric."""
    found = rows(influx, 'SELECT * FROM "campaign_points" GROUP BY "point", "metric" ORDER BY time DESC LIMIT 1')
    return {(row["point"], row["metric"]): row for row in found}


class Interrupted(InProcess):
    """Workers during whose third run somebody presses Ctrl-C."""

    def __init__(self) -> None:
        self._calls = 0

    def submit(self, call: Any, task: Any) -> Any:
        self._calls += 1
        if self._calls == 3:
            raise KeyboardInterrupt
        return super().submit(call, task)


def test_campaign_that_goes_on_writes_no_run_twice(tmp_path: Path, influx: Influx) -> None:
    file, out = campaign_file(tmp_path), tmp_path / "out"
    # the first session has no database, the second one is interrupted
    with pytest.raises(KeyboardInterrupt), opened(out, file) as folder:
        run_campaign(folder, Interrupted)
    with (
        pytest.raises(KeyboardInterrupt),
        opened(out, file) as folder,
        CampaignDatabase(influx, folder, silent) as records,
    ):
        run_campaign(folder, Interrupted, look=records.look)
    [campaign] = rows(influx, "SELECT * FROM campaigns")
    assert (campaign["state"], campaign["ended"], campaign["planned"], campaign["failed"]) == ("interrupted", 4, 6, 0)
    assert count(influx, "campaign_runs", "text") == 4 * METRICS
    for _ in range(2):
        with opened(out, file) as folder, CampaignDatabase(influx, folder, silent) as records:
            name, sha256 = name_of(folder), folder.plan.sha256
            run_campaign(folder, InProcess, look=records.look)
        [campaign] = rows(influx, "SELECT * FROM campaigns")
        assert (campaign["campaign"], campaign["name"], campaign["plan"]) == (name, "small", sha256)
        assert (campaign["state"], campaign["ended"], campaign["points"]) == ("complete", RUNS, 2)
        assert count(influx, "campaign_runs", "text") == RUNS * METRICS
        found = newest(influx)
        assert len(found) == 2 * METRICS
        assert {row["n"] for row in found.values()} == {3}


def test_points_are_there_before_their_first_run(tmp_path: Path, influx: Influx) -> None:
    with opened(tmp_path / "out", campaign_file(tmp_path)) as folder:
        records = CampaignDatabase(influx, folder, silent)
        records.look(Schedule(folder.plan, {}))
        records.close()
    found = newest(influx)
    assert {(row["n"], row["median_text"], row["median_interval"]) for row in found.values()} == {
        (0, "", "none: no values")
    }
    assert [row["state"] for row in rows(influx, "SELECT * FROM campaigns")] == ["interrupted"]


def test_a_figure_that_a_point_no_longer_has_is_not_shown(
    tmp_path: Path, influx: Influx, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a transfer that did not end there is no mean any more, and with most of them no finite median."""
    monkeypatch.setattr(campaign_database, "INTERVAL_S", 0.0)
    monkeypatch.setattr(campaign_database, "SHARE", 1e9)
    with opened(tmp_path / "out", campaign_file(tmp_path, sweep=None, seeds={"count": 4})) as folder:
        schedule = Schedule(folder.plan, {})
        with CampaignDatabase(influx, folder, silent) as records:
            for replication, duration_s in enumerate((2.0, 3.0, float("inf"), float("inf"))):
                run = folder.plan.run(folder.plan.points[0], replication)
                schedule.handle_row(run, done(run.name, duration_s=duration_s, goodput_bps=1e6))
                records.look(schedule)
    figures = "median, mean, median_text, mean_text"
    found = rows(influx, f"SELECT {figures} FROM campaign_points WHERE metric = 'duration_s'")
    shown = [tuple(row[name] for name in figures.split(", ")) for row in found]
    assert shown == [
        (2, 2, "2", "2"),
        (2.5, 2.5, "2.5", "2.5"),
        (3, None, "3", "none: 1 of 3 did not end"),
        (None, None, "never", "none: 2 of 4 did not end"),
    ]
    [cut] = rows(influx, "SELECT value, text FROM campaign_runs WHERE metric = 'duration_s' ORDER BY time DESC LIMIT 1")
    assert (cut["value"], cut["text"]) == (None, "never")


def test_failed_run_has_its_kind_in_place_of_a_number(tmp_path: Path, influx: Influx) -> None:
    with opened(tmp_path / "out", campaign_file(tmp_path)) as folder:
        schedule = Schedule(folder.plan, {})
        run = folder.plan.run(folder.plan.points[1], 0)
        schedule.handle_row(run, Row(run.name, "failed", error="no such file"))
        with CampaignDatabase(influx, folder, silent) as records:
            records.look(schedule)
    found = rows(influx, "SELECT * FROM campaign_runs")
    assert {(row["kind"], row["text"], row.get("value"), row["seed"]) for row in found} == {
        ("failed", "failed§", None, 1)
    }
    assert [row["failed"] for row in rows(influx, "SELECT failed FROM campaigns")] == [1]


def test_database_that_goes_away_costs_no_run(tmp_path: Path) -> None:
    port, file, out = free_port(), campaign_file(tmp_path), tmp_path / "out"
    complaints: list[str] = []
    (tmp_path / "influxdb").mkdir()
    with influxd(tmp_path / "influxdb", port) as url:
        influx = Influx(url)
        influx.create_database(retention_days=36500)
    # it is gone now
    with opened(out, file) as folder, CampaignDatabase(influx, folder, complaints.append) as records:
        made = run_campaign(folder, InProcess, look=records.look)
    assert [row.status for _, row in made] == ["done"] * RUNS
    [complaint] = complaints
    assert f"records wait in {tmp_path / '.influx-spool'}" in complaint
    with influxd(tmp_path / "influxdb", port), opened(out, file) as folder:
        with CampaignDatabase(influx, folder, silent) as records:
            run_campaign(folder, InProcess, look=records.look)
        assert count(influx, "campaign_runs", "text") == RUNS * METRICS
        assert [row["state"] for row in rows(influx, "SELECT state FROM campaigns")] == ["complete"]


def test_command_without_its_database_begins_nothing(tmp_path: Path) -> None:
    file, out = campaign_file(tmp_path), tmp_path / "out"
    status, _, err = finish(start("campaign", file, "--out", out, "--influx", f"http://127.0.0.1:{free_port()}"))
    assert (status, len(err.splitlines())) == (2, 1)
    assert "check that it runs, and the URL" in err
    assert not out.exists()


def test_command_writes_what_it_prints(tmp_path: Path, influx: Influx) -> None:
    options = ("--out", tmp_path / "out", "--influx", influx.url, "--json")
    status, text, err = finish(start("campaign", campaign_file(tmp_path), *options))
    assert status == 0, err
    for metric in ("duration_s", "goodput_bps"):
        found = rows(influx, f"SELECT point, seed, value, kind FROM campaign_runs WHERE metric = '{metric}'")
        assert {(row["point"], row["seed"]): row["value"] for row in found} == {
            (run["point"], run["seed"]): run["metrics"][metric] for run in json.loads(text)["runs"]
        }
        assert {row["kind"] for row in found} == {"whole"}
