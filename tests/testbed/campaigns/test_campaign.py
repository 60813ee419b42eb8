"""`campaign` as a shell sees it: interruptions, failures, workers that die."""

import json
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from channel.replay import Outcome, Trace
from channel.trace import write_trace
from common.units import MS
from testbed.campaigns.engine import run_campaign
from testbed.campaigns.processes import Processes
from testbed.cli import app
from tests.harness.campaigns import campaign_file, opened, result_files
from tests.harness.live_runs import Capture, done, finish, start
from tests.harness.waiting import PATIENCE_S, wait_for

pytestmark = pytest.mark.slow

#: of these runs some take a few milliseconds and some a few hundred
UNEVEN = {
    "sweep": {"grid": {"link.scheme": ["none", "slacp"], "workloads.0.bytes": [5_000, 400_000]}},
    "seeds": {"count": 3},
}
#: a day of virtual time takes long enough to be interrupted
LONG = {"set": {"workloads": [{"kind": "bulk", "duration_s": 100_000}], "limit_s": 200_000}, "seeds": {"count": 2}}


def whole(folder: Path, file: Path) -> dict[str, bytes]:
    """The result files of a campaign that nothing disturbs."""
    with opened(folder, file) as made:
        run_campaign(made, lambda: Processes(2))
    return result_files(folder)


def test_killing_at_any_moment_and_resuming_changes_no_result_file(tmp_path: Path) -> None:
    file = campaign_file(tmp_path, **UNEVEN)
    expected = whole(tmp_path / "whole", file)
    assert sum(name.startswith("runs/") for name in expected) == 12 * 5
    out, rng = tmp_path / "out", random.Random(19)
    for _ in range(3):
        process = start("campaign", file, "--out", out, "--workers", "2", start_new_session=True)
        count = len(list((out / "runs").iterdir())) if (out / "runs").is_dir() else 0
        target = min(count + rng.randrange(1, 5), 11)
        wait_for(lambda: (out / "runs").is_dir() and len(list((out / "runs").iterdir())) >= target)  # noqa: B023
        time.sleep(rng.random() / 10)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    status, _, err = finish(start("campaign", file, "--out", out, "--workers", "2"))
    assert status == 0, err
    assert result_files(out) == expected


def begun(tmp_path: Path) -> "subprocess.Popen[str]":
    """A long campaign whose two workers have begun their runs."""
    file = campaign_file(tmp_path, **LONG)
    process = start("campaign", file, "--out", tmp_path / "out", "--workers", "2", start_new_session=True)
    wait_for(lambda: len(list((tmp_path / "out").glob(".incoming-*/*"))) == 2)
    return process


@pytest.mark.light
def test_ctrl_c_stops_within_two_seconds_and_leaves_nothing_running(tmp_path: Path) -> None:
    process = begun(tmp_path)
    try:
        began = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE_S)
        assert time.monotonic() - began < 2
    finally:
        process.kill()
    assert (process.returncode, err.splitlines()[-1]) == (app.INTERRUPTED, "fadelab: interrupted")
    assert not list((tmp_path / "out").glob(".incoming-*"))
    assert json.loads((tmp_path / "out" / "results.json").read_text())["complete"] is False
    wait_for(lambda: not workers_of(process))


def test_workers_end_with_a_killed_campaign(tmp_path: Path) -> None:
    process = begun(tmp_path)
    process.kill()
    process.communicate()
    wait_for(lambda: not workers_of(process))


def workers_of(process: "subprocess.Popen[str]") -> list[str]:
    """The processes that a campaign, the leader of its group, has started."""
    listed = subprocess.run(
        ["pgrep", "-g", str(process.pid), "-f", "spawn_main"], capture_output=True, text=True, check=False
    )
    return listed.stdout.split()


def test_run_that_fails_is_kept_and_retried_on_request(tmp_path: Path) -> None:
    trace = tmp_path / "air.parquet"
    write_trace(trace, Trace([n * MS for n in range(500)], [1500] * 500, [Outcome.OK, Outcome.PAYLOAD] * 250))
    replay = {"channel.per": None, "channel.errors": {"model": "trace", "path": "air.parquet"}}
    file = campaign_file(tmp_path, set=replay, seeds={"count": 1})
    out = tmp_path / "out"
    with opened(out, file) as folder:
        [copy] = folder.plan.files
        # gone while the campaign is open: before it, the command would be refused
        (out / copy).unlink()
        rows = run_campaign(folder, lambda: Processes(2))
    assert {row.status for _, row in rows} == {"failed"}
    shutil.copy(trace, out / copy)
    status, _, err = finish(start("campaign", file, "--out", out))
    assert status == 2
    assert "2 of 2 runs failed: 0-none-s1: " in err.splitlines()[-1]
    assert "--retry makes them again" in err.splitlines()[-1]
    status, text, err = finish(start("campaign", file, "--out", out, "--retry", "--json"))
    assert status == 0, err
    assert [run["status"] for run in json.loads(text)["runs"]] == ["done", "done"]
    # the run's folder repeats the run wherever the campaign's folder is
    moved = out.rename(tmp_path / "moved")
    scenario = moved / "runs" / "0-none-s1" / "scenario.yaml"
    assert str(tmp_path) not in scenario.read_text()
    status, text, err = finish(start("run", scenario, "--json", "--out", tmp_path / "again"))
    assert status == 0, err
    kept = json.loads((scenario.parent / "summary.json").read_text())
    assert json.loads(text)["duration_s"] == kept["duration_s"]


def test_worker_that_is_killed_costs_no_run(tmp_path: Path) -> None:
    file = campaign_file(tmp_path, **UNEVEN)
    expected = whole(tmp_path / "whole", file)
    out = tmp_path / "out"
    killed: list[int] = []

    class Watched(Processes):
        def submit(self, call, task):  # type: ignore[no-untyped-def]
            processes = list(self._pool._processes or {})
            if not killed and processes and len(list((out / "runs").iterdir())) >= 3:
                killed.append(processes[0])
                os.kill(processes[0], signal.SIGKILL)
            return super().submit(call, task)

    with opened(out, file) as folder:
        rows = run_campaign(folder, lambda: Watched(2))
    assert killed
    assert {row.status for _, row in rows} == {"done"}
    assert result_files(out) == expected


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--scheduler", "tcp://127.0.0.1:1"), "no Dask scheduler answers"),
        (("--workers", "0"), "'--workers': 0 is not in the range"),
        (("--out", "/proc/x"), "/proc/x: cannot be made"),
    ],
)
def test_wrong_options_are_one_line(
    options: tuple[str, ...], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    from testbed.campaigns import cluster

    monkeypatch.setattr(cluster, "_CONNECT_S", 0.5)
    monkeypatch.chdir(tmp_path)
    assert app.main(["campaign", str(campaign_file(tmp_path)), *options]) == 2
    err = capsys.readouterr().err.splitlines()
    assert complaint in err[-1]
    assert sum(line.startswith("fadelab: ") for line in err) == 1


def test_plan_shows_points_and_hash_and_runs_nothing(tmp_path: Path, capsys: Capture) -> None:
    file = campaign_file(tmp_path)
    out = done(capsys, "campaign", file, "--plan", "--out", tmp_path / "out")
    assert "0-none: tier model scheme=none" in out
    assert "2 points, 3 runs of each; plan " in out
    assert not (tmp_path / "out").exists()
