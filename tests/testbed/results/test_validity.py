"""Which results may be used."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import testbed.api as fadelab
from testbed.cli import app
from testbed.results.validity import CorruptError, LateError, require_intact, require_valid
from testbed.simulation import simulate
from tests.harness.flawed_runs import SHORT, corrupt
from tests.harness.live_runs import Capture
from tests.harness.model_runs import model
from tests.harness.scenarios import FLOW, summary, written

CORRUPT = summary(run="r2", intact=False, flows=(FLOW, replace(FLOW, flow="web", intact=False)))
LATE = summary(run="r3", on_time=False, late_events=30, max_late_ms=44.0)


def test_corrupt_run_is_an_error_that_names_run_scenario_and_flow() -> None:
    require_intact([summary()])
    with pytest.raises(CorruptError) as error:
        require_valid([summary(), CORRUPT], allow_late=True)
    assert str(error.value).startswith(
        "r2: scenario sample, flow web: what arrived is not what was sent: this is a bug"
    )
    assert "\n" not in str(error.value)


def test_late_run_is_an_error_unless_that_is_allowed() -> None:
    with pytest.raises(LateError, match="r3: 30 of 1000 events were late"):
        require_valid([summary(), LATE], allow_late=False)
    require_valid([summary(), LATE], allow_late=True)
    # corruption is the graver fault
    with pytest.raises(CorruptError):
        require_valid([LATE, CORRUPT], allow_late=False)


def test_flow_that_cannot_tell_is_intact() -> None:
    require_intact([summary(flows=(replace(FLOW, intact=None),))])


@pytest.mark.interpreted
def test_corrupt_run_fails_wherever_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    corrupt(monkeypatch)
    path = written(tmp_path / "short.yaml", model(workloads=SHORT))
    for words in (["--json"], [], ["--allow-late"]):
        assert app.main(["run", str(path), "--out", str(tmp_path / "runs"), *words]) == 2
        shown = capsys.readouterr()
        assert shown.err.count("\n") == 1
        assert shown.err.startswith("fadelab: ")
        assert "scenario sample, flow short: what arrived is not what was sent" in shown.err
        if words == ["--json"]:
            assert json.loads(shown.out)["intact"] is False
    # each run keeps its folder
    assert len(list((tmp_path / "runs").glob("*/summary.json"))) == 3
    with pytest.raises(CorruptError, match="flow short"):
        fadelab.run(path, out=tmp_path / "again")
    with pytest.raises(CorruptError, match="flow short"):
        simulate(model(workloads=SHORT))


@pytest.mark.interpreted
def test_results_of_notebooks_have_no_duration_of_a_cut_transfer(tmp_path: Path) -> None:
    run = fadelab.run(model(workloads=[{"kind": "bulk", "bytes": 100_000_000}], limit_s=2), out=tmp_path)
    assert run.summary["duration_s"] == 2
    assert fadelab.results([run]).arrow["duration_s"].to_pylist() == [float("inf")]
