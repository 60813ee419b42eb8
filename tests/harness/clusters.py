"""Dask clusters of this machine's processes, for campaigns."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.harness.waiting import wait_for

ROOT = Path(__file__).parents[2]


@contextmanager
def cluster(
    workers: Sequence[Sequence[str]], folder: Path, *, host: str = "127.0.0.1", before: Sequence[str] = ()
) -> "Iterator[tuple[str, list[subprocess.Popen[bytes]]]]":
    """A scheduler, and a worker of one thread for each of `workers`, a process each: its address, and the workers.

    `before` has the words before the scheduler's command, and each of `workers` those before that worker's.
    """
    address_file = folder / "address"
    folder.mkdir()

    def start(before: Sequence[str], *arguments: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-P", "-m", "distributed.cli.dask_" + arguments[0], *arguments[1:], "--no-dashboard"]
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": path}
        with (folder / "log").open("ab") as log:
            return subprocess.Popen([*before, *command], cwd=folder, stdout=log, stderr=log, env=environment)

    processes = [start(before, "scheduler", "--host", host, "--port", "0", "--scheduler-file", str(address_file))]
    try:
        wait_for(address_file.exists)
        options = ("--nthreads", "1", "--no-nanny", "--local-directory", str(folder))
        processes += [start(words, "worker", "--scheduler-file", str(address_file), *options) for words in workers]
        wait_for(lambda: address_file.read_text().endswith("}"))
        yield json.loads(address_file.read_text())["address"], processes[1:]
    finally:
        for process in processes:
            process.kill()
            process.wait()
