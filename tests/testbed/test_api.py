"""The module for notebooks: runs as frames, and refusals of one line."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import testbed.api as fadelab
from testbed.errors import FadelabError
from testbed.results.store import RunFolder
from tests.harness.model_runs import model
from tests.harness.scenarios import written

LOSSY = fadelab.root() / "scenarios" / "lossy-link.yaml"
SHORT = {"workloads.0.duration_s": 0.5}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[fadelab.Run]:
    """Two short runs of the same seed, without SLACP and with it."""
    out = tmp_path_factory.mktemp("runs")
    return [
        fadelab.run(LOSSY, tier="model", settings={**SHORT, "link.scheme": scheme}, seed=5, out=out)
        for scheme in ("none", "slacp")
    ]


def test_a_run_is_the_run_of_its_folder(made: list[fadelab.Run]) -> None:
    bare, slacp = made
    assert (bare.summary["scheme"], slacp.summary["scheme"], slacp.summary["seed"]) == ("none", "slacp", 5)
    assert slacp.manifest["tier"] == "model"
    assert slacp.scenario.link.scheme == "slacp"
    assert slacp.kinds == ("flow", "link", "tcp", "trace-down", "trace-up")
    assert fadelab.open_run(slacp.folder).summary == slacp.summary


def test_the_same_scenario_gives_the_same_run(made: list[fadelab.Run], tmp_path: Path) -> None:
    again = fadelab.run(made[1].scenario, out=tmp_path)
    assert again.summary == made[1].summary
    assert again.records("link").arrow.equals(made[1].records("link").arrow)


@pytest.mark.parametrize("kind", ["link", "tcp", "trace-up"])
def test_both_frames_have_the_rows_of_the_file(kind: str, made: list[fadelab.Run]) -> None:
    frame = made[1].records(kind)
    rows = frame.arrow.to_pylist()
    pandas, polars = frame.pandas(), frame.polars()
    assert list(pandas.columns) == polars.columns == list(rows[0])
    assert len(pandas) == len(polars) == len(rows)
    assert polars.to_dicts() == rows
    assert list(pandas["time_s"]) == [row["time_ns"] / 1e9 for row in rows]


def test_results_have_a_row_per_run(made: list[fadelab.Run]) -> None:
    table = fadelab.results(made)
    assert list(table.pandas()["scheme"]) == ["none", "slacp"]
    assert table.polars()["link.up.per"].to_list() == [run.summary["link"]["up"]["per"] for run in made]
    assert table.polars()["run"].to_list() == [run.name for run in made]
    assert fadelab.results([]).arrow.num_rows == 0


def test_records_of_several_runs_name_their_run(made: list[fadelab.Run]) -> None:
    for kind in ("link", "trace-up"):
        joined = fadelab.records(made, kind).polars()
        for run in made:
            own = joined.filter(joined["run"] == run.name)
            assert len(own) == run.records(kind).arrow.num_rows
            assert set(own["scheme"]) == {run.summary["scheme"]}
    assert set(fadelab.records(made, "trace-up").pandas()["outcome"]) == {"ok", "missed"}


def test_find_filters_and_leaves_out_runs_without_a_result(made: list[fadelab.Run]) -> None:
    out = made[0].folder.parent
    unfinished = RunFolder.create(out, model()).path
    assert {run.name for run in fadelab.find(out)} == {run.name for run in made}
    assert [run.name for run in fadelab.find(out, scheme="none")] == [made[0].name]
    assert [run.name for run in fadelab.find(out, "slacp lossy")] == [made[1].name]
    with pytest.raises(FadelabError, match="the run failed, was stopped or goes on"):
        _ = fadelab.open_run(unfinished).summary


def test_settings_take_paths_and_numbers_of_numpy(tmp_path: Path) -> None:
    path = written(tmp_path / "small.yaml", model())
    made = fadelab.scenario(path, settings={"channel.per": np.float64(0.25), "link.scheme": "none"}, seed=9)
    assert (made.channel.per, made.link.scheme, made.seed) == (0.25, "none", 9)


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda run: run.records("phy"), r"has no 'phy' records; it has flow, link, tcp, trace-down, trace-up"),
        (lambda run: fadelab.open_run(run.folder / "nothing"), "there is no run in this folder"),
        (lambda run: fadelab.find(run.folder.parent, color="red"), "'color' is unknown: choose from tier, scheme"),
        (lambda run: fadelab.run(run.scenario, seed=3), "give changes with the scenario's file"),
        (lambda run: fadelab.run(LOSSY, settings={"channel.pre": 1}), "unknown key"),
        (lambda run: fadelab.run(LOSSY, settings={"channel.per": object()}), "not JSON serializable"),
    ],
)
def test_wrong_requests_are_one_line(call: Any, complaint: str, made: list[fadelab.Run]) -> None:
    with pytest.raises(FadelabError, match=complaint) as refused:
        call(made[1])
    assert "\n" not in str(refused.value)


def test_a_setting_without_effect_is_a_warning(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="has no use for channel.snr_db"):
        fadelab.run(LOSSY, tier="model", settings={**SHORT, "channel.snr_db": 3}, out=tmp_path)
