"""Runs that are corrupt, cut off or late: their rows, and the files that have them."""

import csv
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.campaigns.folder import open_plan, read_rows
from testbed.campaigns.journal import read_journal
from testbed.campaigns.rows import CONDITIONS, Row
from testbed.cli import app
from tests.harness.campaigns import campaign_file
from tests.harness.flawed_runs import flawed
from tests.harness.live_runs import Capture
from tests.hosts.harness import needs_network

pytestmark = pytest.mark.interpreted

KINDS = {"0": "whole", "1": "cut", "2": "late", "3": "corrupt"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        return flawed(tmp_path_factory.mktemp("flawed"), patch)


def rows_of(folder: Path) -> dict[str, Row]:
    return read_rows(folder, open_plan(folder))


def test_rows_tell_corrupt_cut_and_late_runs_apart(made: Path) -> None:
    rows = rows_of(made)
    assert {name: row.kind for name, row in rows.items()} == {name: KINDS[name[0]] for name in rows}
    assert len(rows) == 8
    for name, row in rows.items():
        assert row.counts == (name[0] != "3")
        assert row.events
        assert row.late_events == (row.events if name[0] == "2" else 0)
        assert row.on_time == (name[0] != "2")
        assert row.intact == (name[0] != "3")
        assert row.finished == (name[0] != "1")
        duration_s, goodput_bps = row.value("duration_s"), row.value("goodput_bps")
        if name[0] == "3":
            assert (duration_s, goodput_bps, row.status) == (None, None, "failed")
            assert row.error.startswith(f"{name}: scenario sample, flow short: what arrived is not what was sent")
            assert (made / "failed" / name / "summary.json").exists()
        else:
            assert duration_s is not None
            assert math.isinf(duration_s) == (name[0] == "1")
            assert goodput_bps


def test_conditions_are_in_all_result_files(made: Path) -> None:
    rows = rows_of(made)
    text = (made / "results.json").read_text()
    # JSON has no infinity
    results = json.loads(text, parse_constant=pytest.fail)["runs"]
    with (made / "results.csv").open(newline="") as file:
        table = {line["run"]: line for line in csv.DictReader(file)}
    journal = {line["run"]: line for line in read_journal(made / "index.jsonl") if "run" in line}
    for each in results:
        row = rows[each["run"]]
        for name in CONDITIONS:
            assert each[name] == journal[row.run][name] == getattr(row, name)
            assert table[row.run][name] == str(getattr(row, name))
    cut = "1-700-"
    told = [each for each in results if each["run"].startswith(cut)]
    assert [each["metrics"]["duration_s"] for each in told] == ["Infinity"] * 2
    assert [table[each["run"]]["duration_s"] for each in told] == ["inf"] * 2
    assert all(float(each["metrics"]["goodput_bps"]) > 0 for each in told)


def test_late_runs_fail_without_permission_and_say_so_in_their_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = flawed(tmp_path, monkeypatch, allow_late=False)
    late = [row for name, row in rows_of(folder).items() if name[0] == "2"]
    assert [(row.status, row.kind, row.counts, row.on_time) for row in late] == [
        ("failed", "refused", False, False)
    ] * 2


def test_command_in_the_manifest_has_its_flags(made: Path) -> None:
    command = json.loads((made / "runs" / "0-600-s1" / "manifest.json").read_text())["command"]
    assert command == ["fadelab", "run", "runs/0-600-s1/scenario.yaml", "--allow-late"]


def test_corrupt_run_of_an_older_version_is_in_no_sample() -> None:
    row = Row("a", "done", {"duration_s": 1.0}, finished=True, intact=False, on_time=True)
    assert (row.kind, row.value("duration_s")) == ("corrupt", None)
    assert replace(row, intact=True).value("duration_s") == 1.0


def old(folder: Path, *, summaries: bool) -> None:
    """Let a folder be of a version that wrote no conditions, and the time of the cut as a duration."""
    lines = []
    for line in read_journal(folder / "index.jsonl"):
        kept = {key: value for key, value in line.items() if key not in CONDITIONS}
        if "metrics" in kept:
            kept["metrics"] = {key: 3.0 if value == "Infinity" else value for key, value in kept["metrics"].items()}
        lines.append(json.dumps(kept) + "\n")
    (folder / "index.jsonl").write_text("".join(lines))
    for path in folder.glob("*s/*/summary.json") if not summaries else ():
        path.unlink()


def test_old_folder_opens_with_the_conditions_of_its_summaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = flawed(tmp_path, monkeypatch)
    before = rows_of(folder)
    old(folder, summaries=True)
    after = rows_of(folder)
    for name in before:
        # of a failed run the error alone is left
        assert after[name].kind == ("failed" if name[0] == "3" else before[name].kind)
        assert after[name].metrics == before[name].metrics
    old(folder, summaries=False)
    lost = rows_of(folder)
    assert {row.kind for row in lost.values()} == {"unknown", "failed"}
    assert [row.value("duration_s") for name, row in lost.items() if name[0] == "1"] == [3.0, 3.0]


@pytest.mark.light
@pytest.mark.net
@needs_network[1]
@pytest.mark.parametrize(("flags", "status", "kind"), [((), 2, "refused"), (("--allow-late",), 0, "late")])
def test_late_run_of_a_real_time_tier(
    flags: tuple[str, ...], status: int, kind: str, tmp_path: Path, capsys: Capture
) -> None:
    hasty: dict[str, Any] = {
        "tier": "emulated",
        "tcp": "cubic",
        "timing": {"late_bound_ms": 0.001, "late_fraction": 0},
        "workloads": [{"kind": "short", "bytes": 5000}],
    }
    file = campaign_file(tmp_path, set=hasty, sweep=None, seeds={"count": 1})
    assert app.main(["campaign", str(file), "--out", str(tmp_path / "out"), *flags]) == status
    [row] = rows_of(tmp_path / "out").values()
    assert (row.kind, row.finished, row.intact) == (kind, True, True)
    assert row.late_events
    if flags:
        command = json.loads((tmp_path / "out" / "runs" / row.run / "manifest.json").read_text())["command"]
        assert command[-1] == "--allow-late"
    else:
        assert "events were late" in capsys.readouterr().err
