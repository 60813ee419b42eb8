"""A radio pulled out in mid-run: a run of two virtual devices of a family on the path of real ones, and its end."""

import itertools
import os
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from channel.trace import read_trace
from flowgraphs.air import Air
from telemetry.parquet import read_records
from tests.harness.live_runs import children_once_up, crossed_bytes, finish, left_behind, running, start
from tests.harness.scenarios import scenario, written
from tests.harness.waiting import wait_for

CHILDREN = 4
#: what has crossed when a transfer is under way
UNDER_WAY_BYTES = 100_000
_SILENT = "no samples for 1 s: check its cable, its power and this machine's load"
#: what a run says of each kind of link, and nothing else
FAULTS = {"usb": f"its thread .* has failed: check its cable and power|{_SILENT}", "network": _SILENT}
_PATH_GAIN_DB = -30.0

_numbers = itertools.count()


@dataclass(frozen=True)
class Unplugged:
    """How a run has ended whose station ST or BAS lost its radio; empty tuples where all is well."""

    ended_s: float
    #: what was said, when it is not one line of the fault
    said: tuple[str, ...]
    #: records that are missing
    incomplete: tuple[str, ...]
    #: what the run has left behind
    left: tuple[str, ...]

    @property
    def faults(self) -> tuple[str, ...]:
        return self.said + self.incomplete + self.left


def unplug_in_mid_run(profile: str, serial: str, folder: Path) -> Unplugged:
    """Pull out the radio of a station while a transfer is under way."""
    shared = set(Path("/dev/shm").iterdir())
    with Air.create(f"unplug-{os.getpid()}-{next(_numbers)}", seed=1) as air:
        air.set_link("*", "*", gain_db=_PATH_GAIN_DB)
        devices = [f"type=vusrp,profile={profile},air={air.name},serial={station}" for station in ("ST", "BAS")]
        endless = scenario(
            tier="usrp",
            channel={"rate_bps": 2_000_000, "delay_ms": 15},
            radio={"devices": devices},
            workloads=[{"kind": "bulk", "duration_s": 600}],
            limit_s=600,
        )
        runs = folder / "runs"
        process = start("run", written(folder / "endless.yaml", endless), "--out", runs)
        children = children_once_up(process, CHILDREN)
        wait_for(lambda: _under_way(process))
        air.unplug(serial)
        pulled_at = time.monotonic()
        status, out, err = finish(process)
        ended_s = time.monotonic() - pulled_at
        # a file of the air is there as long as it is
        left = left_behind(process.pid) + [f"process {pid}" for pid in running(children)]
    left += [str(path) for path in set(Path("/dev/shm").iterdir()) - shared if air.name in path.name]
    kind = "usb" if profile.startswith("b2") else "network"
    # a slow start shows its progress first
    line = rf"(sample slacp seed 1: .*\n)*fadelab: station {serial.lower()}: USRP '.*': ({FAULTS[kind]})\n"
    fine = (status, out) == (2, "") and re.fullmatch(line, err)
    [run] = runs.iterdir()
    return Unplugged(ended_s, () if fine else (f"{status}: {out}{err}",), tuple(_incomplete(run)), tuple(left))


def _under_way(process: "subprocess.Popen[str]") -> bool:
    assert process.poll() is None, f"ended with {process.returncode}: {process.communicate()}"
    return crossed_bytes(process) > UNDER_WAY_BYTES


def _incomplete(run: Path) -> Iterator[str]:
    for side, measurement in itertools.product(("up", "down"), ("phy", "link")):
        if not [row for row in read_records(run, measurement) if row["link"] == side]:
            yield f"no records of {measurement} {side}"
    for side in ("up", "down"):
        if len(read_trace(run / f"trace-{side}.parquet")) == 0:
            yield f"no frames in the trace of {side}"
