"""The processors of the computer: their rights and their frequency.

Read first: sched(7); UHD's manual, "Thread Priority Scheduling", and X3x0's "Host PC Configuration" on governors.
"""

from testbed.cli.doctor.look import Check
from testbed.cli.doctor.usrp.case import ON_TIME, Case, made

#: linux/capability.h
_CAP_SYS_NICE = 23
#: of getrlimit(2), as /proc/PID/limits names it
_LIMIT = "Max realtime priority"


def real_time_rights(case: Case) -> Check:
    """Whether threads may run in real time: by a capability or by a limit."""
    status = case.read("/proc/self/status").splitlines()
    effective = next((int(line.split()[1], 16) for line in status if line.startswith("CapEff")), 0)
    limits = case.read("/proc/self/limits").splitlines()
    limit = next((line.removeprefix(_LIMIT).split()[0] for line in limits if line.startswith(_LIMIT)), "0")
    seen = "CAP_SYS_NICE" if effective >> _CAP_SYS_NICE & 1 else f"a real-time priority of {limit} at most"
    return made(
        "real-time rights",
        seen != "CAP_SYS_NICE" and limit == "0",
        seen,
        "start with sudo (a container: --cap-add SYS_NICE), or add `@USERS - rtprio 99` to /etc/security/limits.conf",
        (ON_TIME,),
    )


def governor(case: Case) -> Check:
    """Whether the processors keep their frequency."""
    files = case.path("/sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    found = sorted({file.read_text().strip() for file in files})
    return made(
        "processors' governor",
        found not in ([], ["performance"]),
        ", ".join(found) or "none: the frequency is fixed",
        "cpupower frequency-set -g performance",
        (ON_TIME,),
    )
