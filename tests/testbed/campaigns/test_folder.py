"""The folder of a campaign: its index, and what a killed process may leave."""

import errno
import json
import os
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.campaigns.engine import run_campaign
from testbed.campaigns.executing import Parcel, execute, failed, task_of, unpack
from testbed.campaigns.file import CampaignError
from testbed.campaigns.folder import FAILED, RUNS, open_plan, read_rows, settle
from testbed.campaigns.journal import Journal, JournalError, read_journal
from testbed.campaigns.processes import Workers
from testbed.campaigns.rows import CONDITIONS, Row, row_of
from testbed.cli import app
from testbed.results.store import RunFolder
from testbed.sources import SourcesError, sources
from tests.harness.campaigns import InProcess, campaign_file, done, edited_sources, opened, plan, raw_campaign


def no_workers() -> Workers:
    pytest.fail("a run is made again")


@pytest.mark.parametrize("cut", range(12))
def test_line_that_a_killed_process_has_not_finished_is_cut_off(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "index.jsonl"
    with Journal(path) as journal:
        journal.append({"run": "a"})
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"run":"b"}'[:cut])
    assert read_journal(path) == [{"run": "a"}]
    with Journal(path) as journal:
        journal.append({"run": "c"})
    assert read_journal(path) == [{"run": "a"}, {"run": "c"}]


def test_journal_in_use_or_out_of_reach_is_a_line(tmp_path: Path) -> None:
    path = tmp_path / "index.jsonl"
    with Journal(path), pytest.raises(JournalError, match="another process writes there: wait for its end"):
        Journal(path)
    Journal(path).close()
    for call in (Journal, read_journal):
        with pytest.raises(JournalError, match="Is a directory"):
            call(tmp_path)


def test_lines_that_are_no_objects_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "index.jsonl"
    path.write_text('{"run": "a"}\n\xff{\n[1]\n{"run": "b"}\n')
    assert read_journal(path) == [{"run": "a"}, {"run": "b"}]
    assert read_journal(tmp_path / "none") == []


def test_index_of_1000_runs_opens_in_a_second(tmp_path: Path) -> None:
    made = plan(seeds={"count": 500})
    names = [made.run(point, n).name for point in made.points for n in range(500)]
    with Journal(tmp_path / "index.jsonl") as journal:
        for name in names:
            (tmp_path / "runs" / name).mkdir(parents=True)
            journal.append(done(name, duration_s=1.5, goodput_bps=1e6).as_dict())
    began = time.process_time()
    rows = read_rows(tmp_path, made)
    assert time.process_time() - began < 1
    assert list(rows) == names


def test_folder_counts_and_line_without_folder_does_not(tmp_path: Path) -> None:
    file = campaign_file(tmp_path)
    with opened(tmp_path / "out", file) as folder:
        settle(_made(tmp_path, "x", duration=2.0), tmp_path / "out" / "runs" / "0-none-s1")
        folder.add(done("0-none-s2", duration_s=9.0, goodput_bps=1.0))
        known = folder.known(retry=False)
        assert list(known) == ["0-none-s1"]
        assert known["0-none-s1"].metrics == {"duration_s": 2.0, "goodput_bps": 5.0}
        assert read_journal(tmp_path / "out" / "index.jsonl")[-1]["run"] == "0-none-s1"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("run", ["a"]), ("run", 5), ("status", "well"), ("metrics", []), ("metrics", {"a": "much"})),
        *(("metrics", {"a": []}), ("metrics", {"a": 1.7e308}), ("files", ["a"]), ("files", {"a": 5}), ("error", 5)),
        *(("seconds", "5"), ("intact", 1), ("late_events", 1.5), ("lost_s", {}), ("sources", None), ("more", 1)),
    ],
)
def test_line_of_a_stranger_that_is_no_row_is_none(field: str, value: object) -> None:
    good = done("a", goodput_bps=1.0).as_dict()
    assert row_of(good) == done("a", goodput_bps=1.0)
    assert row_of({**good, field: value}) is None


def test_what_lasts_of_a_row() -> None:
    kept: dict[str, object] = {"run": "a", "status": "failed", "metrics": {}, "files": {}}
    kept |= dict.fromkeys(CONDITIONS) | {"on_time": False}
    row = Row(run="a", status="failed", seconds=1.5, traceback="long", processor="any", on_time=False)
    assert row.lasting() == kept
    assert replace(row, error="why").lasting() == {**kept, "error": "why"}


def test_folder_that_is_there_already_stays(tmp_path: Path) -> None:
    target = tmp_path / "runs" / "0-none-s1"
    target.parent.mkdir()
    settle(_made(tmp_path, "first", duration=2.0), target)
    settle(_made(tmp_path, "second", duration=3.0), target)
    assert json.loads((target / "summary.json").read_text())["duration_s"] == 2.0
    assert not (tmp_path / "second").exists()


def _made(folder: Path, name: str, duration: float) -> Path:
    """The folder of a run, unfinished as far as anybody knows."""
    made = folder / name
    made.mkdir()
    (made / "summary.json").write_text(json.dumps({"duration_s": duration, "goodput_bps": 5}))
    (made / "manifest.json").write_text(json.dumps({"versions": {"fadelab": "1"}}))
    return made


def test_run_is_on_the_disk_before_its_name_and_its_name_before_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, calls = tmp_path / "out", list[str]()
    fsync, rename = os.fsync, Path.rename

    def note_fsync(descriptor: int) -> None:
        calls.append(f"fsync {Path(f'/proc/self/fd/{descriptor}').resolve().relative_to(tmp_path)}")
        fsync(descriptor)

    def note_rename(path: Path, target: Path) -> Path:
        calls.append(f"rename {path.relative_to(tmp_path)}")
        return rename(path, target)

    with opened(out, campaign_file(tmp_path)) as folder:
        run = folder.plan.run(folder.plan.points[0], 0)
        task = task_of(run, folder.plan.campaign, folder.path, folder.incoming)
        monkeypatch.setattr(os, "fsync", note_fsync)
        monkeypatch.setattr(Path, "rename", note_rename)
        folder.add(execute(task))
        left = (out / "index.jsonl").read_bytes()
    made = folder.incoming.relative_to(tmp_path) / run.name
    files = sorted(path.name for path in (out / RUNS / run.name).iterdir())
    assert {"manifest.json", "summary.json", "flow.parquet"} < set(files)
    before = [f"fsync {made / name}" for name in files]
    assert calls == [*before, f"fsync {made}", f"rename {made}", "fsync out/runs", "fsync out/index.jsonl"]
    assert f'"run":"{run.name}"'.encode() in left


def test_full_disk_ends_a_campaign_in_a_line_and_fails_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(_folder: RunFolder, _summary: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    file = campaign_file(tmp_path)
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(yaml.safe_dump(raw_campaign()["scenario"]))
    with monkeypatch.context() as patched, opened(tmp_path / "out", file) as folder:
        patched.setattr(RunFolder, "finish", full)
        with pytest.raises(
            CampaignError, match=r"out: .* no more \(No space.*\): make room, and the same command goes on"
        ):
            run_campaign(folder, InProcess)
        assert app.main(["run", str(scenario), "--out", str(tmp_path / "runs")]) == 2
        assert capsys.readouterr() == (
            "",
            f"fadelab: the disk takes no more at {tmp_path / 'runs'} (No space left on device): "
            "make room, or write to another disk (--out), and start again\n",
        )
    with opened(tmp_path / "out", file) as folder:
        assert folder.known(retry=False) == {}
        assert [row.status for _, row in run_campaign(folder, InProcess)] == ["done"] * 6


def test_plan_is_on_the_disk_before_the_folder_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, replace_, fsync = list[str](), Path.replace, os.fsync

    def note_fsync(descriptor: int) -> None:
        calls.append(Path(f"/proc/self/fd/{descriptor}").resolve().name)
        fsync(descriptor)

    def note_replace(path: Path, target: Path) -> Path:
        calls.append(f"{target.name} named")
        return replace_(path, target)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(Path, "replace", note_replace)
    with opened(tmp_path / "out", campaign_file(tmp_path)):
        pass
    at = calls.index("plan.json named")
    assert calls[at - 1] == f".plan.json.{os.getpid()}"
    assert calls[at + 1 :] == ["out", "index.jsonl"]


def test_runs_of_other_sources_are_not_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, out = campaign_file(tmp_path), tmp_path / "out"
    with opened(out, file) as folder:
        folder.hold_sources([])
        run = folder.plan.run(folder.plan.points[0], 0)
        row = execute(task_of(run, folder.plan.campaign, folder.path, folder.incoming))
    assert row.sources == json.loads((out / "sources.json").read_text())["sources"] == sources().digest
    with monkeypatch.context() as patched:
        edited_sources(patched)
        said = "0-none-s1 was made by fadelab .*, and this is .*: go on with those sources, or choose another --out"
        with opened(out, file) as folder, pytest.raises(CampaignError, match=said):
            run_campaign(folder, no_workers)
    with opened(out, file) as folder:
        assert all(row.status == "done" for _, row in run_campaign(folder, InProcess))
    with monkeypatch.context() as patched, opened(out, file) as folder:
        # a campaign that needs no more runs is shown by any sources
        edited_sources(patched)
        assert len(run_campaign(folder, no_workers)) == 6


def test_run_of_a_program_that_did_not_record_its_sources_is_not_gone_on_with(tmp_path: Path) -> None:
    with opened(tmp_path / "out", campaign_file(tmp_path)) as folder:
        settle(_made(tmp_path, "x", duration=2.0), tmp_path / "out" / "runs" / "0-none-s1")
        with pytest.raises(CampaignError, match="was made by fadelab 1, sources not recorded, and this is"):
            run_campaign(folder, no_workers)


def test_worker_of_other_sources_ends_the_campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Edits(InProcess):
        """Workers whose sources are edited after the command began."""

        def submit(self, call: Callable[[Any], Any], task: Any) -> "Future[Any]":
            edited_sources(monkeypatch)
            future: Future[Any] = Future()
            try:
                future.set_result(call(task))
            except SourcesError as error:
                future.set_exception(error)
            return future

    said = "a worker has other sources .* than this command: start it again"
    with opened(tmp_path / "out", campaign_file(tmp_path)) as folder:
        with pytest.raises(SourcesError, match=said):
            run_campaign(folder, Edits)
        assert not list((folder.path / RUNS).iterdir())


def test_failed_runs_are_kept_until_they_are_retried(tmp_path: Path) -> None:
    with opened(tmp_path / "out", campaign_file(tmp_path)) as folder:
        folder.add(Row("0-none-s1", "failed", error="no such trace"))
        assert folder.known(retry=False)["0-none-s1"].error == "no such trace"
        assert folder.known(retry=True) == {}


def test_the_folder_of_a_failed_run_takes_the_place_of_an_earlier_attempts(tmp_path: Path) -> None:
    file = campaign_file(tmp_path)
    with opened(tmp_path / "out", file) as folder:
        run = folder.plan.run(folder.plan.points[0], 0)
        task = task_of(run, folder.plan.campaign, folder.path, folder.incoming)
        for attempt in ("first", "second"):
            row = failed(run.name, ValueError(attempt))
            assert unpack(Parcel(row, {"summary.json": attempt.encode()}), task) == row
            [kept] = (folder.path / FAILED).iterdir()
            assert (kept.name, (kept / "summary.json").read_text()) == (run.name, attempt)
        assert not list((folder.path / RUNS).iterdir())


def test_retry_that_ended_well_counts_though_its_line_is_missing(tmp_path: Path) -> None:
    with opened(tmp_path / "out", campaign_file(tmp_path)) as folder:
        folder.add(Row("0-none-s1", "failed", error="no such trace"))
        settle(_made(tmp_path, "x", duration=2.0), tmp_path / "out" / "runs" / "0-none-s1")
        assert folder.known(retry=False)["0-none-s1"].metrics["duration_s"] == 2.0


def test_another_plan_another_process_and_another_folder_are_refused(tmp_path: Path) -> None:
    out, file = tmp_path / "out", campaign_file(tmp_path)
    with opened(out, file), pytest.raises(CampaignError, match="another process runs this campaign"):
        opened(out, file)
    with pytest.raises(CampaignError, match="has another plan, which was hashed before its first run"):
        opened(out, campaign_file(tmp_path, seeds={"count": 4}))
    (tmp_path / "mine" / "campaign").mkdir(parents=True)
    with pytest.raises(CampaignError, match=r"is no campaign's folder \(it has campaign\): choose another"):
        opened(tmp_path / "mine", file)
    with pytest.raises(CampaignError, match="is no campaign's folder"):
        open_plan(tmp_path)


def test_plan_that_was_changed_after_it_was_hashed_is_seen(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with opened(out, campaign_file(tmp_path)):
        pass
    text = (out / "plan.json").read_text()
    (out / "plan.json").write_text(text.replace('"count": 3', '"count": 2'))
    with pytest.raises(CampaignError, match="the plan was changed after it was hashed"):
        open_plan(out)


def test_campaign_whose_runs_are_done_makes_none(tmp_path: Path) -> None:
    file = campaign_file(tmp_path)
    with opened(tmp_path / "out", file) as folder:
        for point in folder.plan.points:
            for n in range(3):
                run = folder.plan.run(point, n)
                settle(_made(tmp_path, "made", duration=n), tmp_path / "out" / "runs" / run.name)
        rows = run_campaign(folder, no_workers)
    assert [row.metrics["duration_s"] for _, row in rows] == [0, 1, 2, 0, 1, 2]
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert (results["complete"], len(results["runs"])) == (True, 6)
    assert (tmp_path / "out" / "results.csv").read_text().splitlines()[1] == "0-none-s1,model,none,1,done,,,,,,,0.0,5.0"


def test_progress_counts_the_runs_that_ended_and_those_that_failed(tmp_path: Path) -> None:
    file = campaign_file(tmp_path, seeds={"count": 1})
    told: list[tuple[int, int]] = []
    with opened(tmp_path / "out", file) as folder:
        run_campaign(folder, InProcess, show=lambda status: told.append((status.ended, status.failed)))
    assert told == [(0, 0), (1, 0), (2, 0)]
