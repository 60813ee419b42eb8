"""What the demo can ask of this machine: two links at once, one after the other, or one at a lower rate.

Read first: proc(5) on /proc/stat, sched(7), cgroups(7) and the kernel's cgroup-v2.rst on cpu.max.

Rules kept
- What is free is measured: for how much of a second the processors we may use had nothing to do, and what our control
  group has left of its quota. A core that is there but busy does not count, nor does one that the hypervisor gives to
  others.
- Links side by side need free processors, for stations compete with each other. A single link may take processors from
  ordinary programs, because stations run in real time (SCHED_RR); where that is not allowed, it needs free ones, too.
- What a link takes was measured with nothing else in its way (docs/measurements.md). With less it may still keep the
  clock: that is the margin.
- `choose` is pure: the same figures give the same plan.

Left out: what other programs do later. A run that is late all the same says so.
"""

import json
import os
import time
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from common.sides import SIDES
from testbed.scenario.schema import Scenario

#: shares of its rates that a link may run at, the whole first
SHARES = (Fraction(1), Fraction(1, 2), Fraction(1, 4))
#: of a core, real-time processes get this much (sched_rt_runtime_us; the kernel's default)
_REAL_TIME_SHARE = 0.95
_LOOK_S = 1.0
#: `_work` on the processors that costs were measured on (AMD EPYC, 2.6 GHz), both busy; alone one takes 1.05 ms
_REFERENCE_S = 1.6e-3
_CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Cost:
    """What one link takes of a core: always, and for each Msps (Mbit/s where there are no radios)."""

    fixed: float
    per_mega: float


#: by tier, both stations and hosts together
_COSTS: Mapping[str, Cost] = MappingProxyType({"vusrp": Cost(0.5, 0.4), "emulated": Cost(0.1, 0.05)})


@dataclass(frozen=True, slots=True)
class Room:
    """The processors as far as they are ours, in cores."""

    #: what nobody used while we looked
    free: float
    #: what a real-time process gets whatever else runs; `free` where we may not have one
    claimable: float

    def beside(self, cores: float) -> "Room":
        """What is left beside something that is to have so many cores."""
        return Room(max(0.0, self.free - cores), max(0.0, self.claimable - cores))


@dataclass(frozen=True, slots=True)
class Plan:
    """How to run some links: so many at a time, and at which share of the scenario's rates."""

    together: int
    share: Fraction
    #: whether the machine is expected to carry that
    fits: bool = True


def choose(room: Room, costs: Mapping[Fraction, float], links: int) -> Plan:
    """All links at once where that fits; else one after the other at the largest share that fits, or at the least.

    `costs` are a link's, in cores, by the share of its rates; the largest share is the one that is wanted.
    """
    wanted = max(costs)
    if links * costs[wanted] <= room.free:
        return Plan(links, wanted)
    fitting = [share for share, cores in costs.items() if cores <= max(room.free, room.claimable)]
    return Plan(1, max(fitting, default=min(costs)), fits=bool(fitting))


def explain(plan: Plan, room: Room, costs: Mapping[Fraction, float], links: int) -> str:
    """Why the plan is not all links at once, in one line; empty where it is."""
    if plan.together == links:
        return ""
    wanted = max(costs)
    if plan.share == wanted and plan.fits:
        return (
            f"One run after the other: {links} links at once take {links * costs[wanted]:.1f} cores, "
            f"and {room.free:.1f} are free."
        )
    own = max(room.free, room.claimable)
    at = "" if plan.share == wanted else f" at {plan.share} of its rates"
    late = "" if plan.fits else f" Even the {costs[plan.share]:.1f} that it takes now are too much: it may be late."
    return f"One run after the other{at}: a link takes {costs[wanted]:.1f} cores, and {own:.1f} are to be had.{late}"


def link_costs(scenario: Scenario, slow: float) -> dict[Fraction, float]:
    """What a link of the scenario takes (cores), by the share of its rates; `slow` as of `slowness`."""
    cost = _COSTS[scenario.tier]
    bps = max(direction.rate_bps for direction in map(scenario.channel.direction, SIDES))
    mega = (scenario.radio.rate_sps if scenario.tier == "vusrp" else bps) / 1e6
    return {share: slow * (cost.fixed + cost.per_mega * mega * share) for share in SHARES}


def lowered(scenario: Scenario, share: Fraction) -> tuple[str, ...]:
    """The settings that make the scenario one at a share of its rates, its description included."""
    if share == 1:
        return ()
    return (
        f"channel.rate_bps={round(scenario.channel.rate_bps * share)}",
        f"radio.rate_sps={float(scenario.radio.rate_sps * share)}",
        f"description={json.dumps(f'{scenario.description}, at {share} of these rates')}",
    )


def slowness() -> float:
    """How much longer a core of this machine takes than the one that costs were measured on; 1 at least.

    It is processor time that counts, so other programs hardly matter, and of some tries the quickest, because what
    disturbs only adds. A core that looks faster may share its units with one that is idle now and will not be then.
    """
    samples = np.exp(1j * np.arange(1 << 14)).astype(np.complex64).reshape(-1, 64)
    return max(1.0, min(_work(samples) for _ in range(15)) / _REFERENCE_S)


def _work(samples: NDArray[np.complex64]) -> float:
    """Processor time (s) of what a radio does most: multiply samples, and transform them."""
    started = time.thread_time()
    for _ in range(20):
        np.fft.fft(samples * samples, axis=1)
    return time.thread_time() - started


# -- what is free --------------------------------------------------------------------------------------------


def idle_s(stat: str, cpus: Collection[int]) -> float:
    """Seconds these processors had nothing to do since the machine started, by the text of /proc/stat."""
    ticks = 0
    for line in stat.splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name != "cpu" and int(name.removeprefix("cpu")) in cpus:
            # idle and iowait: in both, a processor is there for whoever asks
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
    """The quotas that hold for a process with this /proc/self/cgroup; of cgroup v2 and of v1's controller cpu."""
    for line in membership.splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = mounted / controllers
        inner = top / path.lstrip("/")
        # a container may see a path that only holds outside: what is not there has no quota
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
    """Look for `look_s` how much of the processors nobody uses: the least that the machine and each quota leave."""
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
