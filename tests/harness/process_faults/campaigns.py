"""Faults of campaigns on tier `model`: of a worker, of their own process, and of a cluster's network."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.harness.campaigns import campaign_file, result_files
from tests.harness.clusters import cluster
from tests.harness.process_faults.stage import Case, Command, Stage, require, stopped, wait_for

#: runs of some tenths of a second to a second each
_CAMPAIGN = {
    "sweep": {"grid": {"link.scheme": ["none", "slacp"], "workloads.0.bytes": [50_000, 400_000]}},
    "seeds": {"count": 5},
    "keep": "summary",
}
_RUNS = 20
#: seconds: shorter than the time after which Dask takes a silent connection for broken (`comm.timeouts.tcp`)
_SHORTEST_S, _LONGEST_S = 0.5, 10.0
#: the interface of either side of the cluster's network, and the address of the scheduler's side
_INTERFACE, _ADDRESS = "cut0", "10.99.0.1"


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


def _wait_begun(stage: Stage, command: Command) -> None:
    """Wait until some of the runs have been made, and a moment longer."""
    after = stage.rng.randrange(1, _RUNS // 2)

    def done() -> bool:
        command.require_under_way()
        return len(_done(stage)) >= after

    wait_for(done, f"{after} runs")
    time.sleep(stage.rng.random() / 10)


def _local(fault: str, stage: Stage) -> None:
    file, expected = _expected(stage)
    arguments = ("campaign", file, "--out", stage.folder / "out", "--workers", "2")
    command = stage.command(*arguments)
    _wait_begun(stage, command)
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


def _cut_off(fault: str, stage: Stage) -> None:
    file, expected = _expected(stage)
    near, far = stage.stack.enter_context(_two_namespaces(str(os.getpid())))
    workers = [_inside(near), _inside(far)]
    made = cluster(workers, stage.folder / "dask", host=_ADDRESS, before=_inside(near))
    address, processes = stage.stack.enter_context(made)
    stage.note([process.pid for process in processes])
    arguments = ("campaign", file, "--out", stage.folder / "out", "--scheduler", address)
    command = stage.command(*arguments, before=_inside(near))
    _wait_begun(stage, command)
    _ip("-n", far, "link", "set", _INTERFACE, "down")
    if fault == "for a while":
        time.sleep(stage.rng.uniform(_SHORTEST_S, _LONGEST_S))
        _ip("-n", far, "link", "set", _INTERFACE, "up")
    _require_same(stage, command, expected)
    stage.stack.close()


@contextmanager
def _two_namespaces(name: str) -> Iterator[tuple[str, str]]:
    """Two network namespaces with a cable between them; yields their names. The first one has `_ADDRESS`."""
    near, far = f"faults-{name}-near", f"faults-{name}-far"
    try:
        for namespace in (near, far):
            _ip("netns", "add", namespace)
            _ip("-n", namespace, "link", "set", "lo", "up")
        _ip("-n", near, "link", "add", _INTERFACE, "type", "veth", "peer", "name", _INTERFACE, "netns", far)
        for namespace, address in ((near, _ADDRESS), (far, "10.99.0.2")):
            _ip("-n", namespace, "address", "add", f"{address}/24", "dev", _INTERFACE)
            _ip("-n", namespace, "link", "set", _INTERFACE, "up")
        yield near, far
    finally:
        for namespace in (near, far):
            subprocess.run(["ip", "netns", "delete", namespace], capture_output=True, check=False)


def _inside(namespace: str) -> tuple[str, ...]:
    """The words before a command that run it there."""
    return "ip", "netns", "exec", namespace


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


CASES = (
    *(
        Case(f"campaign's {fault}", statement, partial(_local, fault))
        for fault, statement in (
            ("worker killed", "its run is made again: all result files as without the fault"),
            ("worker paused", "all result files as without the fault"),
            ("own process killed", "the same command goes on: all result files as without the fault"),
        )
    ),
    *(
        Case(f"cluster's worker cut off {fault}", statement, partial(_cut_off, fault))
        for fault, statement in (
            ("for good", "its network is gone, it lives on: all result files as without the fault"),
            ("for a while", "0.5 to 10 s long: all result files as without the fault"),
        )
    ),
)
