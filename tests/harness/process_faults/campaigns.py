"""Faults of campaigns on tier `model`: of a worker, and of their own process."""

import os
import signal
import time
from functools import partial
from pathlib import Path

from tests.harness.campaigns import campaign_file, result_files
from tests.harness.process_faults.stage import Case, Command, Stage, require, stopped, wait_for

#: runs of some tenths of a second to a second each
_CAMPAIGN = {
    "sweep": {"grid": {"link.scheme": ["none", "slacp"], "workloads.0.bytes": [50_000, 400_000]}},
    "seeds": {"count": 5},
    "keep": "summary",
}
_RUNS = 20


def _expected(stage: Stage) -> tuple[Path, dict[str, bytes]]:
    """A campaign's file, and the result files of a campaign that nothing disturbs."""
    file = campaign_file(stage.folder, **_CAMPAIGN)
    end = stage.command("campaign", file, "--out", stage.folder / "whole", "--workers", "1").end()
    require(end.status == 0, end)
    return file, result_files(stage.folder / "whole")


def _require_same(stage: Stage, command: Command, expected: dict[str, bytes]) -> None:
    end = command.end()
    require(end.status == 0, end)
    require(len(_done(stage)) == _RUNS, f"{len(_done(stage))} runs")
    found = result_files(stage.folder / "out")
    require(found == expected, f"other results: {[name for name in expected if found.get(name) != expected[name]]}")


def _done(stage: Stage) -> list[Path]:
    runs = stage.folder / "out" / "runs"
    return list(runs.iterdir()) if runs.is_dir() else []


def _workers(command: Command) -> list[int]:
    """The worker processes of a local campaign."""
    children = "".join(path.read_text() for path in Path(f"/proc/{command.pid}/task").glob("*/children")).split()
    return [int(pid) for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def _local(fault: str, stage: Stage) -> None:
    file, expected = _expected(stage)
    arguments = ("campaign", file, "--out", stage.folder / "out", "--workers", "2")
    command = stage.command(*arguments)
    after = stage.rng.randrange(1, _RUNS // 2)
    wait_for(lambda: len(_done(stage)) >= after, f"{after} runs")
    time.sleep(stage.rng.random() / 10)
    workers = stage.note(_workers(command))
    require(workers, "no workers")
    if fault == "worker killed":
        os.kill(stage.rng.choice(workers), signal.SIGKILL)
    elif fault == "worker paused":
        with stopped(stage.rng.choice(workers)):
            time.sleep(stage.rng.uniform(0.5, 3.0))
    else:
        command.process.kill()
        command.process.communicate()
        command = stage.command(*arguments)
    _require_same(stage, command, expected)


CASES = (
    *(
        Case(f"campaign's {fault}", statement, partial(_local, fault))
        for fault, statement in (
            ("worker killed", "its run is made again: all result files as without the fault"),
            ("worker paused", "all result files as without the fault"),
            ("own process killed", "the same command goes on: all result files as without the fault"),
        )
    ),
)
