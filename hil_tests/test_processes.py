"""Stations as processes: what a killed one leaves, and what a busy one takes."""

import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from flowgraphs.air import Air
from hil_tests.bench import Bench
from hil_tests.conftest import Figures
from tests.harness.live_runs import children_once_up, crossed_bytes, finish, left_behind, running, start
from tests.harness.scenarios import written
from tests.harness.waiting import wait_for
from tests.hosts.harness import needs_network

pytestmark = [*needs_network, pytest.mark.radio]

CHILDREN = 4
#: what has crossed when a transfer is under way
UNDER_WAY_BYTES = 100_000


@dataclass(frozen=True)
class Run:
    """A run that is under way."""

    process: "subprocess.Popen[str]"
    #: the processes that take part
    children: list[int]
    #: from its start until they were up: what this machine needs for work of that kind
    up_s: float


@pytest.fixture
def transfer(bench: Bench, tmp_path: Path) -> Iterator[Run]:
    """A transfer that does not end by itself, under way."""
    scenario = bench.scenario(bench.at_snr(30.0), workloads=[{"kind": "bulk", "duration_s": 600}], limit_s=600)
    began = time.monotonic()
    process = start("run", written(tmp_path / "endless.yaml", scenario), "--out", tmp_path / "runs")
    try:
        children = children_once_up(process, CHILDREN)
        up_s = time.monotonic() - began
        wait_for(lambda: crossed_bytes(process) > UNDER_WAY_BYTES)
        yield Run(process, children, up_s)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            finish(process)


def stations(children: list[int]) -> list[int]:
    return [pid for pid in children if b"testbed.live.station_process" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def own_bytes(pid: int) -> int:
    """Memory of a process's own: without the air, whose pages it touches one after the other."""
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("RssAnon")]
    return int(line.split()[1]) * 1024


@pytest.mark.parametrize(("which", "name"), [(0, "st"), (1, "bas")])
def test_a_killed_radio_is_reported_and_the_run_ends_cleanly(
    transfer: Run, figures: Figures, which: int, name: str
) -> None:
    process, children = transfer.process, transfer.children
    assert process.stderr is not None
    os.kill(stations(children)[which], signal.SIGKILL)
    killed_at = time.monotonic()
    assert select.select([process.stderr], [], [], 10)[0], "nothing is said"
    reported_s = time.monotonic() - killed_at
    status, out, err = finish(process)
    ended_s = time.monotonic() - killed_at
    print(
        f"reported after {reported_s:.2f} s, ended after {ended_s:.2f} s, up after {transfer.up_s:.2f} s: {err.strip()}"
    )
    # saying so takes less than starting did, on a slow machine, too
    figures.check("reported after, over the time to start", reported_s / transfer.up_s, most=1.0)
    assert (status, out) == (2, "")
    assert err == f"fadelab: station {name}: was killed (SIGKILL)\n"
    assert left_behind(process.pid) == []
    assert running(children) == []
    assert [name for name in Air.names() if name.startswith(f"run-{process.pid}-")] == []


def test_a_station_does_not_grow_while_it_runs(transfer: Run) -> None:
    process, children = transfer.process, transfer.children
    pids = stations(children)
    wait_for(lambda: crossed_bytes(process) > 5 * UNDER_WAY_BYTES)
    before = {pid: own_bytes(pid) for pid in pids}
    wait_for(lambda: crossed_bytes(process) > 15 * UNDER_WAY_BYTES)
    grown = [own_bytes(pid) - before[pid] for pid in pids]
    print(f"grown by {grown} bytes")
    # a garbage collector that rests costs 5 MB a second
    assert all(growth < 6_000_000 for growth in grown)
