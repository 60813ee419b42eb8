"""What the tests with real runs share: runs in threads, command lines, and what a run has left behind.

Rules kept: a run is named by the process that owns it, so other runs on this machine do not matter; waits are bounded
and end on events.
"""

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hosts.kernel.namespaces import NETNS_DIR, run_in
from hosts.kernel.network import TAP_NAME
from hosts.kernel.ownership import RUN_DIR
from testbed.cli import app
from testbed.results.summary import Summary
from testbed.running import run_once
from testbed.scenario.schema import Scenario
from tests.harness import lateness
from tests.harness.busy import late
from tests.harness.scenarios import scenario
from tests.harness.waiting import wait_for

ROOT = Path(__file__).parents[2]
#: what a command has printed in this process
Capture = pytest.CaptureFixture[str]
#: what a scenario allows by default
LATE_FRACTION = 0.01
_STATIONS = 2


def run_all(scenarios: Sequence[Scenario], runs: Path) -> list[Summary]:
    """Run scenarios at the same time; lateness is told to `tests.harness.busy`."""
    with ThreadPoolExecutor(len(scenarios)) as pool:
        summaries = list(pool.map(lambda scenario: run_once(scenario, runs, lambda progress: None), scenarios))
    for summary in summaries:
        tell_lateness(summary)
    return summaries


def run_schemes(schemes: Sequence[str], runs: Path, **changes: Any) -> dict[str, Summary]:
    return dict(
        zip(schemes, run_all([scenario(link={"scheme": scheme}, **changes) for scheme in schemes], runs), strict=True)
    )


def tell_lateness(summary: Summary) -> None:
    """Let a test that fails be tried again when its run was late, whatever lateness its scenario allows."""
    if summary.late_events > LATE_FRACTION * summary.events:
        late(f"{summary.late_events} of {summary.events} events of a run were late")


def folder_of(summary: Summary) -> Path:
    assert summary.folder is not None
    return Path(summary.folder)


def start(
    *args: str | Path, before: Sequence[str] = (), columns: str = "80", **options: Any
) -> "subprocess.Popen[str]":
    """`python -m testbed` with these arguments, after the words of `before`; other options are Popen's."""
    given: dict[str, Any] = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "text": True,
        "env": {**os.environ, "COLUMNS": columns},
        **options,
    }
    return subprocess.Popen([*before, sys.executable, "-m", "testbed", *map(str, args)], cwd=ROOT, **given)


def finish(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    try:
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    return process.returncode, out, err


def fadelab(*args: str | Path, **options: Any) -> tuple[int, str, str]:
    return finish(start(*args, **options))


def complaint(outcome: tuple[int, str, str]) -> str:
    """The one line of a command that was refused."""
    status, out, err = outcome
    assert (status, out) == (2, ""), err
    assert err.startswith("fadelab: ")
    assert err.count("\n") == 1
    return err


def refused(capture: Capture, *args: str | Path) -> str:
    """The one line of a command that was refused in this process."""
    status = app.main([str(arg) for arg in args])
    shown = capture.readouterr()
    return complaint((status, shown.out, shown.err))


def done(capture: Capture, *args: str | Path) -> str:
    """What a command in this process printed, which went well."""
    status = app.main([str(arg) for arg in args])
    shown = capture.readouterr()
    assert (status, shown.err) == (0, "")
    return shown.out


def records_of(owner: int) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in RUN_DIR.glob(f"{owner}-*.json")]


def children_once_up(process: "subprocess.Popen[str]", count: int) -> list[int]:
    """The pids of the children of a process's runs, once so many are on record, or more."""

    def up() -> list[int]:
        assert process.poll() is None, f"ended with {process.returncode}: {process.communicate()}"
        children = [child["pid"] for record in records_of(process.pid) for child in record["children"]]
        return children if len(children) >= count else []

    return wait_for(up)


def crossed_bytes(run: "subprocess.Popen[str]") -> int:
    """What has gone in and out of the interface of a run's slower station; 0 before both have one."""
    names = (record["namespaces"] for record in records_of(run.pid))
    taps = [crossed for name in itertools.chain(*names) if (crossed := run_in(name, _tap_bytes)) is not None]
    return min(taps) if len(taps) == _STATIONS else 0


def _tap_bytes() -> int | None:
    """The octets in and out of the TAP of the namespace one is in, if it has one."""
    for line in Path("/proc/thread-self/net/dev").read_text().splitlines():
        name, _, counters = line.strip().partition(":")
        if name == TAP_NAME:
            received, transmitted = counters.split()[0], counters.split()[8]
            return int(received) + int(transmitted)
    return None


def running(pids: Sequence[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}/fd").exists()]


def left_behind(owner: int) -> list[str]:
    """Namespaces and records of the runs of a process, and (if it is this one) its children."""
    names = [path.name for path in NETNS_DIR.glob(f"fadelab-{owner}-*")] if NETNS_DIR.exists() else []
    names += [path.name for path in RUN_DIR.glob(f"{owner}-*")]
    if owner == os.getpid():
        for children in Path("/proc/self/task").glob("*/children"):
            # a thread that has just ended has none
            with suppress(FileNotFoundError, ProcessLookupError):
                names += [f"process {pid}" for pid in children.read_text().split() if not is_the_sessions(pid)]
    return names


def is_the_sessions(pid: str) -> bool:
    """Whether a process lives as long as this one: those of multiprocessing, once used, and the busy plugin's probe."""
    command = Path(f"/proc/{pid}/cmdline").read_bytes()
    own = (b"multiprocessing.resource_tracker", b"multiprocessing.forkserver", os.fsencode(lateness.__file__))
    return any(word in command for word in own)
