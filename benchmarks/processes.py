"""What processes need: their families, processor time, memory, descriptors, threads, and what they share."""

import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_SHARED = Path("/dev/shm")


def family(pid: int) -> dict[int, str]:
    """A process and all below it: command lines by process id."""
    parents, commands = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int(re.sub(r".*\) . ", "", (entry / "stat").read_text()).split()[0])
                commands[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return {one: commands[one] for one in found if one in commands}


def part(command: str) -> str:
    """Which part of the whole a process is."""
    for name in ("testbed.live.station_process", "hosts.agent_process", "testbed dashboard", "influxd", "chromium"):
        if name in command:
            return name.removeprefix("testbed ").removeprefix("testbed.")
    return "other"


def spent_s(pid: int) -> float:
    """Processor time of a process's threads so far; 0 when it is gone.

    From the scheduler: what /proc/PID/stat says is sampled, and too high for threads that wake with the clock.
    """
    spent_ns = 0
    for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError):
            spent_ns += int(task.read_text().split()[0])
    return spent_ns / 1e9


def resident_bytes(pid: int) -> int:
    """Return a process's memory, with all that it shares; 0 when it is gone.

    A share of it (PSS) would halve for the moment in which a process has forked.
    """
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def entries(folder: Path) -> int:
    """Return how many entries a folder has; 0 when there is none."""
    with suppress(OSError):
        return len(list(folder.iterdir()))
    return 0


def descriptors(pid: int) -> int:
    """Return how many files a process has open; 0 when it is gone."""
    return entries(Path(f"/proc/{pid}/fd"))


def threads(pid: int) -> int:
    """Return how many threads a process has; 0 when it is gone."""
    return entries(Path(f"/proc/{pid}/task"))


def shared_bytes() -> int:
    """Return the size of all shared memory of this machine that has a name."""
    return shutil.disk_usage(_SHARED).used


class Memory:
    """The memory of groups of processes, looked at again and again.

    What a moment needs comes and goes; the least of many looks is what stays.
    """

    def __init__(self) -> None:
        self._seen: dict[str, list[int]] = {}

    def look(self, groups: Mapping[str, list[int]]) -> None:
        """Keep what each group needs now."""
        for name, pids in groups.items():
            self._seen.setdefault(name, []).append(sum(map(resident_bytes, pids)))

    def least(self) -> dict[str, int]:
        """Return the least of each group since the last call."""
        least = {name: min(seen) for name, seen in self._seen.items()}
        self._seen.clear()
        return least
