"""Looks at the kernel, its rights, its clock, processors and disk."""

import os
import platform
import shutil
import statistics
import time
from functools import partial
from pathlib import Path

from hosts.kernel.profiles import ELN_CONTROL, PROFILES
from testbed.cli.doctor.look import RADIOS, RUNS, Look, Seen, read
from testbed.paths import root

_MIN_KERNEL = (5, 10)
_MIN_FREE_BYTES = 1 << 30
#: of the demo's TCP, and of hosts whose TCP is not the kernel's
_OF_DEMO = ("cubic", "reno")
#: linux/capability.h
_CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}


def _kernel() -> Seen:
    release = platform.release()
    numbers = tuple(int(part) for part in release.split("-")[0].split(".")[:2] if part.isdigit())
    return Seen(platform.system() == "Linux" and numbers >= _MIN_KERNEL, release)


def _privileges() -> Seen:
    status = read("/proc/self/status")
    effective = next((int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff")), 0)
    lacking = [name for name, bit in _CAPABILITIES.items() if not effective >> bit & 1]
    return Seen(not lacking, f"without {', '.join(lacking)}" if lacking else ", ".join(_CAPABILITIES))


def _congestion_control(name: str) -> Seen:
    if name in read("/proc/sys/net/ipv4/tcp_available_congestion_control").split():
        return Seen(True, "available")
    # the kernel loads it by itself the first time it is asked for by name
    modules = Path("/lib/modules") / platform.release() / "kernel" / "net" / "ipv4"
    loadable = any(modules.glob(f"tcp_{name}.ko*"))
    return Seen(loadable, "loaded on demand" if loadable else "not in this kernel")


def _timer() -> Seen:
    resolution_ns = time.clock_getres(time.CLOCK_MONOTONIC) * 1e9
    late_us = []
    for _ in range(20):
        before = time.perf_counter_ns()
        time.sleep(0.001)
        late_us.append((time.perf_counter_ns() - before - 1_000_000) / 1000)
    late = f"{resolution_ns:.0f} ns, a 1 ms sleep ends {statistics.median(late_us):.0f} us late"
    return Seen(resolution_ns <= 1000, late)


def _cores() -> Seen:
    count = len(os.sched_getaffinity(0))
    return Seen(count >= 2, f"{count}")


def _disk() -> Seen:
    free = shutil.disk_usage(root()).free
    return Seen(free >= _MIN_FREE_BYTES, f"{free / 1e9:.1f} GB free")


LOOKS = (
    Look("Linux kernel", _kernel, f"boot a kernel of {'.'.join(map(str, _MIN_KERNEL))} or later", RUNS),
    Look(
        "privileges",
        _privileges,
        "start with sudo; in a container, as root with --cap-add NET_ADMIN --cap-add SYS_ADMIN",
        RUNS,
    ),
    *(
        Look(
            f"TCP congestion control {name}",
            partial(_congestion_control, name),
            f"`modprobe tcp_{name}`, or a kernel with CONFIG_TCP_CONG_{name.upper()}",
            ("demo", "run") if name in _OF_DEMO else ("run",),
        )
        for name in dict.fromkeys(profile.congestion_control for profile in PROFILES.values())
        if name != ELN_CONTROL
    ),
    Look(
        "high-resolution timer",
        _timer,
        "boot without highres=off and nohpet, with a clock source that is not jiffies",
        RUNS,
    ),
    Look(
        "processor cores",
        _cores,
        "give the machine two cores or more",
        RADIOS,
    ),
    Look("disk space", _disk, f"free {_MIN_FREE_BYTES / 1e9:.0f} GB on the file system of {root()}", RUNS),
)
