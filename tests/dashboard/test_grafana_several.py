"""Grafana's board of several runs on a real InfluxDB: its bars are the runs' summaries, each run begins at zero."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from telemetry.influx import Influx
from telemetry.parquet import read_records
from tests.harness.grafana import BOARDS, Filled, asking, database, panel_of
from tests.harness.live_runs import ROOT, finish, start

pytestmark = pytest.mark.slow

WORK = '[{"kind": "bulk", "duration_s": 10, "drain_s": 1}, {"kind": "bulk", "duration_s": 8, "drain_s": 1}]'
BOARD = BOARDS["several"]
#: of these runs
_LONGEST_S = 11


class Stored(NamedTuple):
    """Three runs in a database, of which two are chosen: their summaries and folders by their names."""

    influx: Influx
    summaries: dict[str, dict[str, Any]]
    folders: dict[str, Path]

    def bars(self, title: str) -> dict[str, float]:
        """The bars of a panel by their names, in whatever time range."""
        [target] = panel_of("several", title)["targets"]
        assert (target["alias"], "$timeFilter" in target["query"]) == ("$tag_run", False)
        answer = self.influx.query(self.interpolated(target["query"], list(self.summaries)))
        found = [(series.tags["run"], series.values) for series in answer]
        assert len(dict(found)) == len(found), "two bars of a run"
        return {run: values[0][1] for run, [*values] in found}

    def interpolated(self, query: str, runs: list[str]) -> str:
        return Filled(self.influx, "none", 0, 1).interpolate(query, {"runs": runs})


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    place = tmp_path_factory.mktemp("several")
    with database(place / "influxdb") as influx:
        scenario = ROOT / "scenarios" / "lossy-link.yaml"
        options = ("--tier", "model", "--set", f"workloads={WORK}", "--out", place / "runs", "--influx", influx.url)
        for scheme in ("none", "slacp", "arq"):
            status, _, err = finish(start("run", scenario, *options, "--set", f"link.scheme={scheme}"))
            assert status == 0, err
        folders = {path.name: path for path in (place / "runs").glob("*-lossy-link-*") if "-arq-" not in path.name}
        summaries = {name: json.loads((path / "summary.json").read_text()) for name, path in folders.items()}
        assert len(folders) == 2
        # a query by intervals of time ends now, and the seconds of virtual time come sooner
        time.sleep(_LONGEST_S)
        yield Stored(influx, summaries, folders)


def test_bars_are_those_of_the_summaries(stored: Stored) -> None:
    expected: dict[str, dict[str, float]] = {}
    for name, summary in stored.summaries.items():
        figures = {"Goodput of the run": 1e-6 * summary["goodput_bps"], "Timeouts": summary["timeouts"]}
        for direction, link in summary["link"].items():
            figures |= {
                f"Loss before repair, {direction}": 100 * link["per"],
                f"Loss after repair, {direction}": 100 * link["residual_losses"] / link["packets"],
                f"Link retransmissions, {direction}": 100 * link["retransmissions"] / link["frames"],
            }
        recorded = [row["srtt_ms"] for row in read_records(stored.folders[name], "tcp") if row["srtt_ms"] is not None]
        for title, share in (("Median round-trip time", 0.5), ("95th percentile of the round-trip time", 0.95)):
            # InfluxDB's: the nearest rank
            figures[title] = sorted(recorded)[int(share * len(recorded) + 0.5) - 1]
        expected[name] = figures
    titles = [panel["title"] for panel in asking(BOARD) if panel["type"] == "bargauge"]
    assert sorted(titles) == sorted(next(iter(expected.values())))
    for title in titles:
        shown = stored.bars(title)
        assert shown == pytest.approx({name: figures[title] for name, figures in expected.items()}), title


def test_table_has_the_chosen_runs(stored: Stored) -> None:
    [target] = panel_of("several", "Chosen runs")["targets"]
    [series] = stored.influx.query(stored.interpolated(target["query"], list(stored.summaries)))
    column = series.columns.index("run")
    assert {row[column] for row in series.values} == set(stored.summaries)


def test_a_row_is_repeated_for_each_run_and_has_that_run_alone(stored: Stored) -> None:
    [row] = [panel for panel in BOARD["panels"] if "repeat" in panel]
    assert (row["type"], row["repeat"], row["title"]) == ("row", "runs", "$runs")
    [variable] = BOARD["templating"]["list"]
    assert (variable["name"], variable["multi"], variable["includeAll"]) == ("runs", True, False)
    below = [panel for panel in asking(BOARD) if panel["gridPos"]["y"] > row["gridPos"]["y"]]
    assert [panel["type"] for panel in below] == ["xychart"] * 2
    for name in stored.summaries:
        for panel, board in zip(below, [panel_of("compare", panel["title"]) for panel in below], strict=True):
            [target] = panel["targets"]
            [dimensions] = panel["options"]["series"]
            # Grafana gives a panel of the row the one value of its variable
            [series] = stored.influx.query(stored.interpolated(target["query"], [name]))
            assert series.columns == ("time", dimensions["x"], dimensions["y"])
            as_a = board["targets"][0]["query"].replace("${run:regex}", "${runs:regex}")
            [compared] = stored.influx.query(stored.interpolated(as_a, [name]))
            assert series.values == compared.values
            assert 0 < series.values[0][1] < 1.5
            # each second of the run, but for those that the wall clock cuts at both ends
            assert len(series.values) >= stored.summaries[name]["duration_s"] - 2
