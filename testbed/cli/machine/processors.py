"""The processors of this machine, as far as they are ours: how many are free, and how fast they are.

Read first: proc(5) on /proc/stat, sched(7), cgroups(7) and the kernel's cgroup-v2.rst on cpu.max.

Rule kept: free processors are measured: the share of a second for which the processors we may use had nothing to do,
and the rest of our control group's quota. A core that is there but busy does not count, nor does one that the
hypervisor gives to others.
"""

import os
import time
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

#: the share of a core that real-time processes may have (sched_rt_runtime_us; the kernel's default)
_REAL_TIME_SHARE = 0.95
_LOOK_S = 1.0
#: `_work` on the processors that costs were measured on (AMD EPYC, 2.6 GHz), both busy; alone one takes 1.05 ms
_REFERENCE_S = 1.6e-3
_CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Room:
    """The processors as far as they are ours, in cores."""

    #: idle while we looked
    free: float
    #: for a real-time process beside any other work; equal to `free` where we may not start one
    claimable: float

    def beside(self, cores: float) -> "Room":
        """Return the room that is left when another program takes `cores`."""
        return Room(max(0.0, self.free - cores), max(0.0, self.claimable - cores))


def idle_s(stat: str, cpus: Collection[int]) -> float:
    """Return for how many seconds these processors were idle since the machine started, by the text of /proc/stat."""
    ticks = 0
    for line in stat.splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name != "cpu" and int(name.removeprefix("cpu")) in cpus:
            # idle and iowait: in both, the processor is free
            ticks += int(fields[3]) + int(fields[4])
    return ticks / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Quota:
    """A control group that limits the processor time of all in it."""

    folder: Path
    #: cores
    limit: float

    def used_s(self) -> float:
        """Processor time (s) of all in it so far."""
        usage = self.folder / "cpuacct.usage"
        if usage.exists():
            return int(usage.read_text()) / 1e9
        fields = dict(line.split() for line in (self.folder / "cpu.stat").read_text().splitlines())
        return int(fields.get("usage_usec", 0)) / 1e6


def quotas(membership: str, mounted: Path = _CGROUPS) -> Iterator[Quota]:
    """Yield the quotas of a process with this /proc/self/cgroup, of cgroup v2 and of v1's controller cpu."""
    for line in membership.splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = mounted / controllers
        inner = top / path.lstrip("/")
        # a container may see a path that only holds outside: a folder that does not exist has no quota
        for folder in (inner, *inner.parents):
            if (limit := _limit(folder)) is not None:
                yield Quota(folder, limit)
            if folder == top:
                break


def _limit(folder: Path) -> float | None:
    """The quota of a control group in cores, or None."""
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
    except OSError:
        return None
    return None if quota.strip() in ("max", "-1") else int(quota) / int(period)


def look(look_s: float = _LOOK_S) -> Room:
    """Measure for `look_s` how much of the processors is free: the least that the machine and each quota leave."""
    cpus = os.sched_getaffinity(0)
    stat = Path("/proc/stat")
    limits = list(quotas(Path("/proc/self/cgroup").read_text()))
    started = time.monotonic()
    idle, used = idle_s(stat.read_text(), cpus), [quota.used_s() for quota in limits]
    time.sleep(look_s)
    seconds = time.monotonic() - started
    left = [quota.limit - (quota.used_s() - before) / seconds for quota, before in zip(limits, used, strict=True)]
    free = (idle_s(stat.read_text(), cpus) - idle) / seconds
    # ticks are coarse: a second may seem to have a few more of them than it can
    free = max(0.0, min([free, len(cpus), *left]))
    claimable = min([_REAL_TIME_SHARE * len(cpus), *left]) if _real_time_allowed() else free
    return Room(free, claimable)


def _real_time_allowed() -> bool:
    """Whether stations may run in real time, as they will ask to (testbed/live/station_process.py)."""

    def ask() -> bool:
        # holds for this thread alone, which ends
        try:
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        except PermissionError:
            return False
        return True

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(ask).result()


def slowness() -> float:
    """Return how many times longer a core of this machine takes than the one that costs were measured on; 1 at least.

    Processor time counts, so other programs hardly matter; the quickest of some tries, since a disturbance only adds. A
    core that looks faster may share its units with one that is idle now and will not be then.
    """
    samples = np.exp(1j * np.arange(1 << 14)).astype(np.complex64).reshape(-1, 64)
    return max(1.0, min(_work(samples) for _ in range(15)) / _REFERENCE_S)


def _work(samples: NDArray[np.complex64]) -> float:
    """Return the processor time (s) of the work that a radio does most: multiply samples, and transform them."""
    started = time.thread_time()
    for _ in range(20):
        np.fft.fft(samples * samples, axis=1)
    return time.thread_time() - started
