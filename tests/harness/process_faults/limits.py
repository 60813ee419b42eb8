"""A limit on the memory of a process by a control group of version 1 or 2, and small or read-only file systems."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.harness.process_faults.stage import require, wait_for

_ROOT = Path("/sys/fs/cgroup")


@contextmanager
def memory_group(name: str, nbytes: int) -> Iterator[tuple[str, ...]]:
    """A control group below our own with so much memory; yields the words before a command that run it there.

    What the command starts is in it, too.
    """
    group, limit = _group(name)
    group.mkdir()
    try:
        (group / limit).write_text(str(nbytes))
        yield "sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"
    finally:
        wait_for(lambda: _removed(group), f"control group {group}")


def _removed(group: Path) -> bool:
    with suppress(OSError):
        group.rmdir()
    return not group.exists()


def _group(name: str) -> tuple[Path, str]:
    """The folder of a new group, and the file of its limit: of version 1 or 2, whichever has this machine's memory."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return _ROOT / "memory" / path.strip("/") / name, "memory.limit_in_bytes"
    own = Path("/proc/self/cgroup").read_text().strip().rpartition(":")[2]
    return _ROOT / own.strip("/") / name, "memory.max"


@contextmanager
def small_disk(folder: Path, nbytes: int) -> Iterator[Path]:
    """A file system of this size at `folder`."""
    folder.mkdir()
    _mount("-t", "tmpfs", "-o", f"size={nbytes}", "tmpfs", folder)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def make_read_only(folder: Path) -> bool:
    """Make a file system read-only, as a kernel does with one in trouble; False while files are open for writing."""
    return subprocess.run(["mount", "-o", "remount,ro", str(folder)], capture_output=True, check=False).returncode == 0


def fill(folder: Path) -> None:
    """Write a file until there is no room."""
    with suppress(OSError), (folder / ".filler").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    free = os.statvfs(folder)
    require(free.f_bavail * free.f_bsize < 8192, "the disk is not full")


def _mount(*args: str | Path) -> None:
    subprocess.run(["mount", *map(str, args)], check=True)
