"""Faults of a live run's own processes, interfaces, radios and clock."""

import os
import signal
import subprocess
import time
from functools import partial

from hosts.errors import HostError
from hosts.kernel.namespaces import run_in
from hosts.kernel.network import TAP_NAME
from hosts.kernel.tun import TUN_NAME
from telemetry.parquet import read_records
from tests.harness.live_runs import records_of, running
from tests.harness.process_faults.limits import memory_group
from tests.harness.process_faults.stage import (
    CHILDREN,
    BusyError,
    Case,
    Command,
    Stage,
    named,
    require,
    require_failed,
    require_records,
    require_reported,
    require_whole,
    stopped,
    wait_for,
)
from tests.harness.process_faults.wall_clock import WallClock
from tests.harness.uhd_programs import RATES
from tests.harness.unplugging import unplug_in_mid_run

#: octets across the link until a fault, at most
_LATEST = 400_000
#: seconds of a pause: some timers expire in it, no connection's patience does
_SHORTEST_S, _LONGEST_S = 0.1, 3.0


def _begun(stage: Stage, command: Command, count: int) -> list[int]:
    """The processes of a run whose transfer has been under way for a moment drawn at random."""
    pids = stage.note(command.children(count))
    command.wait_crossed(stage.rng.randrange(20_000, _LATEST))
    return pids


def _count(role: str) -> int:
    return len(CHILDREN) if role == "split" else len(CHILDREN) - 1


def _scheme(role: str) -> dict[str, dict[str, str]]:
    return {"link": {"scheme": "split"}} if role == "split" else {}


def _tcp(role: str) -> dict[str, str]:
    # a split connection is the kernel's at the fixed host
    return {"tcp": "cubic"} if role == "split" else {}


def _killed(role: str, stage: Stage) -> None:
    command = stage.run(stage.endless(**_scheme(role), **_tcp(role)))
    pids = _begun(stage, command, _count(role))
    os.kill(named(pids)[role], signal.SIGKILL)
    require_failed(command.end(), rf"{role}: was killed \(SIGKILL\)(: .*)?")
    require_records(stage.only)
    require_reported(stage.only)


def _paused(role: str, stage: Stage) -> None:
    command = stage.run(stage.scenario(**_scheme(role), **_tcp(role)))
    pids = stage.note(command.children(_count(role)))
    command.wait_crossed(stage.rng.randrange(20_000, _LATEST))
    with stopped(named(pids)[role]):
        time.sleep(stage.rng.uniform(_SHORTEST_S, _LONGEST_S))
    require_whole(command.end(), stage.only)


def _stuck(role: str, stage: Stage) -> None:
    # where the transfer ends before, the run waits for the process that does not answer
    command = stage.run(stage.endless(**_scheme(role), **_tcp(role), limit_s=4))
    pids = _begun(stage, command, _count(role))
    os.kill(named(pids)[role], signal.SIGSTOP)
    require_failed(command.end(), rf"{role}: .*")
    require_reported(stage.only)


def _run_killed(stage: Stage) -> None:
    command = stage.run(stage.endless())
    # at any moment, that of the start included
    time.sleep(stage.rng.uniform(0.3, 4.0))
    children = [child["pid"] for record in records_of(command.pid) for child in record["children"]]
    command.process.kill()
    command.process.communicate()
    wait_for(lambda: not running(children), "its processes have ended")
    again = stage.run(stage.scenario(workloads=[{"kind": "bulk", "bytes": 50_000}]))
    require_whole(again.end(), stage.folders()[-1])
    stage.clean(command.pid)


def _run_interrupted(stage: Stage) -> None:
    command = stage.run(stage.endless())
    time.sleep(stage.rng.uniform(0.3, 4.0))
    # as a terminal does: to all of its processes
    os.killpg(command.pid, stage.rng.choice((signal.SIGINT, signal.SIGINT, signal.SIGTERM)))
    end = command.end()
    require(end.status in (130, 128 + signal.SIGTERM) and "Traceback" not in end.err, end)


def _run_paused(stage: Stage) -> None:
    command = stage.run(stage.scenario())
    command.children(4)
    command.wait_crossed(stage.rng.randrange(20_000, _LATEST))
    with stopped(command.pid):
        time.sleep(stage.rng.uniform(_SHORTEST_S, _LONGEST_S))
    require_whole(command.end(), stage.only)


def _out_of_memory(stage: Stage) -> None:
    # from less than an interpreter takes to more than the whole run does
    limit = stage.rng.randrange(30 << 20, 500 << 20)
    with memory_group(f"fadelab-faults-{stage.folder.name}", limit) as enter:
        command = stage.run(stage.scenario(), before=enter)
        end = command.end()
    if end.status == 0:
        require_whole(end, stage.only)
    elif end.status == 2:
        require_failed(end, r".*")
    else:
        require(end.status in (-signal.SIGKILL, 128 + signal.SIGKILL), end)
    stage.clean(command.pid)
    for folder in stage.folders() if end.status else []:
        require_reported(folder)


def _clock_stepped(stage: Stage) -> None:
    clock = WallClock(stage.folder)
    command = stage.run(stage.scenario(workloads=[{"kind": "bulk", "bytes": 700_000}]), env=clock.environment())
    command.children(4)
    command.wait_crossed(stage.rng.randrange(20_000, _LATEST))
    clock.step(stage.rng.choice((-3600, 3600)))
    result = require_whole(command.end(), stage.only)
    rows = read_records(stage.only, "link")
    last_s = max(row["time_ns"] for row in rows) / 1e9
    require(0 < last_s < 60 and abs(result["duration_s"] - last_s) < 2, f"records until {last_s} s, {result}")


def _interface_removed(role: str, stage: Stage) -> None:
    # a TCP of our own has a TUN
    command = stage.run(stage.endless(**({"tcp": "user:sack"} if role.startswith("host") else {})))
    _begun(stage, command, 4)
    [names] = [record["namespaces"] for record in records_of(command.pid)]
    name = next(name for name in names if str(name).endswith(f"-{role.split()[1]}"))
    interface = TAP_NAME if role.startswith("station") else TUN_NAME
    run_in(str(name), partial(subprocess.run, ["ip", "link", "delete", interface], check=True))
    require_failed(command.end(), rf"{role}: .*{interface}.* removed.*")
    require_records(stage.only)
    require_reported(stage.only)


def _radio_closed(stage: Stage) -> None:
    profile, serial = stage.rng.choice(list(RATES)), stage.rng.choice(("ST", "BAS"))
    try:
        faults = unplug_in_mid_run(profile, serial, stage.folder).faults
    except HostError as error:
        raise BusyError(f"the run ended early: {error}") from None
    require(not faults, "; ".join(faults))


def _radio_killed(stage: Stage) -> None:
    command = stage.run(stage.endless(tier="vusrp", channel={"rate_bps": 1_000_000, "delay_ms": 10}))
    pids = _begun(stage, command, 4)
    station = stage.rng.choice(("station st", "station bas"))
    os.kill(named(pids)[station], signal.SIGKILL)
    require_failed(command.end(), rf"{station}: was killed \(SIGKILL\)(: .*)?")
    require_records(stage.only)
    require_reported(stage.only)


def _two_at_once(stage: Stage) -> None:
    made = stage.scenario(workloads=[{"kind": "bulk", "bytes": 200_000}])
    commands = [stage.run(made) for _ in range(2)]
    ends = [command.end() for command in commands]
    folders = stage.folders()
    require(len(folders) == len(ends), folders)
    for end in ends:
        [folder] = [folder for folder in folders if f'"{folder.name}"' in end.out]
        require_whole(end, folder)


_ROLES = CHILDREN
CASES = (
    *(
        Case(
            f"{role} killed",
            "one line and status 2; records until then; the list of runs says that there is no result",
            partial(_killed, role),
        )
        for role in _ROLES
    ),
    *(
        Case(f"{role} paused", "0.1 to 3 s long: the transfer resumes and ends, whole", partial(_paused, role))
        for role in _ROLES
    ),
    *(
        Case(f"{role} stuck", "stopped for good: the run ends at its limit and names it", partial(_stuck, role))
        for role in _ROLES
    ),
    Case(
        "memory limited",
        "30 to 500 MB in a control group: whole, or one line and status 2, or killed; `clean` tidies up",
        _out_of_memory,
    ),
    Case("run killed", "at any moment: its processes end; the next run is whole; `clean` tidies up", _run_killed),
    Case("run interrupted", "Ctrl-C or SIGTERM at any moment: status 130 or 143, nothing left", _run_interrupted),
    Case("run paused", "0.1 to 3 s long: whole", _run_paused),
    Case("wall clock stepped", "an hour forth or back: whole; no record's time has the step", _clock_stepped),
    *(
        Case(f"{role}'s interface removed", "one line names it; records until then", partial(_interface_removed, role))
        for role in ("station st", "station bas", "host h1")
    ),
    Case("radio unplugged", "a virtual B210 or X310: one line; records of both sides", _radio_closed),
    Case("radio killed", "the process of a virtual USRP: as a station killed", _radio_killed),
    Case("two runs at once", "in one folder, in the same second: both whole", _two_at_once),
)  # fmt: skip
