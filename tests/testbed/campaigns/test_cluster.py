"""A campaign on a real Dask cluster of this machine."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from testbed.campaigns.cluster import Cluster, ClusterError
from testbed.campaigns.engine import Status, run_campaign
from testbed.campaigns.processes import Processes
from tests.harness.campaigns import campaign_file, edited_sources, opened, result_files
from tests.harness.waiting import wait_for

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]


@contextmanager
def cluster(count: int, folder: Path) -> "Iterator[tuple[str, list[subprocess.Popen[bytes]]]]":
    """A scheduler and so many workers, a process each: its address, and the workers."""
    address_file = folder / "address"
    folder.mkdir()

    def start(*arguments: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-P", "-m", "distributed.cli.dask_" + arguments[0], *arguments[1:], "--no-dashboard"]
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        with (folder / "log").open("ab") as log:
            return subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": path})

    processes = [start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(address_file))]
    try:
        wait_for(address_file.exists)
        options = ("--nthreads", "1", "--no-nanny", "--local-directory", str(folder))
        processes += [start("worker", "--scheduler-file", str(address_file), *options) for _ in range(count)]
        wait_for(lambda: address_file.read_text().endswith("}"))
        yield json.loads(address_file.read_text())["address"], processes[1:]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_cluster_gives_the_same_files_as_local_processes_even_if_a_worker_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = campaign_file(tmp_path, seeds={"count": 10})
    with opened(tmp_path / "local", file) as folder:
        run_campaign(folder, lambda: Processes(2))
    with cluster(4, tmp_path / "dask") as (address, workers):
        with monkeypatch.context() as patched:
            edited_sources(patched)
            with pytest.raises(ClusterError, match=r"worker tcp://\S+ has fadelab .*, sources \w{12}, and this is"):
                Cluster(address)

        def connect() -> Cluster:
            made = Cluster(address)
            wait_for(lambda: made.room == 12)
            return made

        def kill(status: Status) -> None:
            if status.ended == 5 and workers[0].poll() is None:
                workers[0].send_signal(signal.SIGKILL)
                workers[0].wait()

        with opened(tmp_path / "far", file) as folder:
            rows = run_campaign(folder, connect, afar=True, show=kill)
        assert workers[0].poll() == -signal.SIGKILL
    assert [row.error for _, row in rows if row.status == "failed"] == []
    assert len(rows) == 20
    assert result_files(tmp_path / "far") == result_files(tmp_path / "local")
