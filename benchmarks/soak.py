"""One long run, watched: `sudo .venv/bin/python -m benchmarks.soak --tier vusrp --hours 1`.

A transfer goes up for so many hours of the run's time, and others come down, one after the other, each on a connection
of its own. A row tells what the run's processes need all together: memory is resident memory, what they share counted
for each, the least of many looks since the row before, so that what is never given back shows. Compare later rows with
the second: in the first, caches fill. At the end come the run's own words on lateness, gaps in its samples, and for
each tenth of its time the least round-trip time: stations whose clocks drift apart would change it. On tiers with
processes the machine is watched, too (`stillness.py`): late events while it did not stand still are the program's.
"""

import json
import math
import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.common import Column, Results, parser
from benchmarks.processes import Memory, descriptors, family, shared_bytes, threads
from benchmarks.stillness import Standstill, Watch, counts
from telemetry.parquet import read_records
from testbed.tiers import TIERS
from tests.harness.live_runs import ROOT, start
from tests.harness.radio_process import MODULES

_MIB = 1 / 2**20
_SCENARIOS = {"vusrp": "fading-link"}
_SCENARIO = "lossy-link"
#: between two looks; the memory of a large process takes milliseconds to add up
_LOOK_S = 5.0
_TENTHS = 10
#: a standstill half as long as the lateness that a scenario allows: what came before it may have taken the rest
_EXPLAINS_MS = 5.0
_COLUMNS = {
    "minute": Column("minute", ".1f"),
    "bytes": Column("memory", ".1f", _MIB),
    "shared_bytes": Column("/dev/shm", ".1f", _MIB),
    "descriptors": Column("fds"),
    "threads": Column("threads"),
    "processes": Column("procs"),
    "records_bytes": Column("records", ".1f", _MIB),
}


def main() -> None:
    """Make the run and watch it."""
    options_of = parser(__doc__)
    options_of.add_argument("--tier", choices=tuple(TIERS), default="vusrp", help="default vusrp")
    options_of.add_argument("--hours", type=float, default=1.0, help="of the run's time (default 1)")
    options_of.add_argument("--scheme", default="slacp", help="default slacp")
    options_of.add_argument("--tcp", default="cubic", help="default cubic")
    options_of.add_argument("--every", type=float, default=5.0, help="minutes of a row (default 5)")
    options = options_of.parse_args()
    os.environ["UHD_MODULE_PATH"] = os.fspath(MODULES)
    seconds = 3600 * options.hours
    workloads = [
        {"kind": "bulk", "direction": "up", "duration_s": seconds},
        # so few that they end before
        {"kind": "short", "direction": "down", "count": math.ceil(seconds / 10), "gap_ms": 5000},
    ]
    settings = {
        "tier": options.tier,
        "seed": options.seed,
        "tcp": options.tcp,
        "link.scheme": options.scheme,
        "workloads": json.dumps(workloads),
        "limit_s": seconds + 60,
    }
    scenario = ROOT / "scenarios" / f"{_SCENARIOS.get(options.tier, _SCENARIO)}.yaml"
    results = Results(options, options.tier, f"{scenario.stem}, {options.hours:g} h; memory in MiB", _COLUMNS)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="fadelab-soak-"))
        told = stack.enter_context(tempfile.TemporaryFile("w+"))
        watched = None if TIERS[options.tier].simulated else stack.enter_context(Watch())
        changes = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
        process = start("run", scenario, *changes, "--allow-late", "--json", "--out", folder, stdout=told)
        memory = Memory()
        begun = row_at = time.monotonic()
        while process.poll() is None:
            # only the machine's noise when the run is over
            commands = family(process.pid)
            memory.look({"bytes": list(commands)})
            if time.monotonic() > row_at + 60 * options.every:
                row_at = time.monotonic()
                results.add(
                    minute=(row_at - begun) / 60,
                    **memory.least(),
                    shared_bytes=shared_bytes(),
                    descriptors=sum(map(descriptors, commands)),
                    threads=sum(map(threads, commands)),
                    processes=len(commands),
                    records_bytes=sum(path.stat().st_size for path in Path(folder).rglob("*.parquet")),
                )
            time.sleep(_LOOK_S)
        _, err = process.communicate()
        if process.returncode:
            raise SystemExit(err)
        told.seek(0)
        summary = json.loads(told.read())
        [run] = [path for path in Path(folder).iterdir() if path.is_dir()]
        about = {
            **{name: summary[name] for name in ("duration_s", "late_events", "events", "max_late_ms", "lost_s")},
            **{name: summary[name] for name in ("finished", "intact", "goodput_bps")},
            "wall_s": round(time.monotonic() - begun, 1),
            "overflows": overflows(run),
            "least_rtt_ms": least_rtt_ms(run),
        }
        if watched is not None:
            watched.close()
            about["standstills"] = counts(watched.found)
            about["late_while_it_ran"] = late_without(run, watched.found)
    for name, value in about.items():
        results.say(f"{name}: {value}")
    results.finish(**about)


def overflows(run: Path) -> int | None:
    """Return the gaps in the samples of both receivers; None without radios."""
    if not (path := run / "phy.parquet").exists():
        return None
    table = pq.read_table(path, columns=["link", "overflows"])
    counts = table.group_by("link").aggregate([("overflows", "max")]).column("overflows_max").to_pylist()
    return sum(count or 0 for count in counts)


def late_without(run: Path, found: Sequence[Standstill]) -> int:
    """Return the late events that no standstill explains: none of `_EXPLAINS_MS` at least, on any processor, between
    the records of their station before and after.
    """
    epoch_ns = int(pq.read_schema(run / "station.parquet").metadata[b"epoch_ns"])
    long_ones = [still for still in found if still.ms >= _EXPLAINS_MS]
    count = 0
    for station in ("st", "bas"):
        rows = [row for row in read_records(run, "station") if row["station"] == station]
        for before, after in pairwise([{"time_ns": 0, "late_events": 0}, *rows]):
            late = after["late_events"] - before["late_events"]
            begin, end = before["time_ns"] + epoch_ns, after["time_ns"] + epoch_ns
            if late and not any(still.begin_ns < end and still.end_ns > begin for still in long_ones):
                count += late
    return count


def least_rtt_ms(run: Path) -> list[float]:
    """Return the least smoothed round-trip time (ms) of each tenth of the run, of all its connections."""
    table = pq.read_table(run / "tcp.parquet", columns=["time_ns", "srtt_ms"])
    span = pc.max(table["time_ns"]).as_py() + 1
    tenths = pc.divide(pc.multiply(table["time_ns"], _TENTHS), span)
    least = table.append_column("tenth", tenths).group_by("tenth").aggregate([("srtt_ms", "min")]).sort_by("tenth")
    return [round(value, 2) for value in least.column("srtt_ms_min").to_pylist()]


if __name__ == "__main__":
    main()
