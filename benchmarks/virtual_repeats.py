"""Live runs in virtual time, repeated: how many files differ from those of the first run, and how fast they are.

    .venv/bin/python -m benchmarks.virtual_repeats [--repetitions N] [--only WORD] [--load N] [--seconds S] [--json]

Of every case N runs of one seed are made, each with S seconds of traffic; beside the second half of them --load
processes keep the processors busy. Files are compared to the byte, but for the manifest's times of the wall clock and
its command, and the folder's name. Wall times are the medians of the runs without load; the share of a run that is
start-up is that of a run with hardly any traffic. It ends with 1 when a file differs.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.common import parser, whole
from testbed.results.summary import Summary
from testbed.running import run_once
from testbed.scenario.file import load
from testbed.scenario.schema import Scenario
from tests.harness.repeats import contents

SCENARIOS = Path(__file__).parents[1] / "scenarios"
_LOSSY: tuple[str, dict[str, Any]] = ("lossy-link.yaml", {"tier": "emulated"})
#: by name: the scenario's file, and what it is given
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    **{f"tcp {tcp}": (_LOSSY[0], {**_LOSSY[1], "tcp": tcp}) for tcp in ("cubic", "bbr", "reno", "user:modern")},
    # in QEMU
    "tcp eln": (_LOSSY[0], {**_LOSSY[1], "tcp": "eln", "link.scheme": "none", "link.eln": "ends"}),
    "split-smart": (_LOSSY[0], {**_LOSSY[1], "link.scheme": "split-smart"}),
    "two-classes": ("two-classes.yaml", {"tier": "emulated"}),
    "satellite": ("satellite.yaml", {"tier": "emulated"}),
    "fading-link, vusrp": ("fading-link.yaml", {}),
}


def main() -> None:
    """Run and print."""
    options_of = parser(__doc__, repetitions=20)
    options_of.add_argument("--only", default="", help="cases with this word in their name")
    options_of.add_argument("--load", type=whole(0), default=4, help="processes beside half of the runs (default 4)")
    options_of.add_argument("--seconds", type=float, default=5.0, help="of traffic (default 5)")
    options = options_of.parse_args()
    chosen = {name: case for name, case in CASES.items() if options.only in name}
    if not chosen:
        options_of.error(f"--only {options.only}: no such case; there are {'; '.join(CASES)}")
    rows = []
    for name, (file, settings) in chosen.items():
        row = {"case": name, "seed": options.seed, **_repeat(file, settings, options)}
        rows.append(row)
        if not options.json:
            print("  ".join(f"{key}: {value}" for key, value in row.items()), flush=True)
    if options.json:
        print(json.dumps({"clock": "virtual", "cases": rows}))
    sys.exit(1 if any(row["differing"] for row in rows) else 0)


def _repeat(file: str, settings: dict[str, Any], options: Any) -> dict[str, Any]:
    scenario = _scenario(file, settings, options.seed, options.seconds)
    differing: dict[int, list[str]] = {}
    idle_s: list[float] = []
    late = 0
    with tempfile.TemporaryDirectory() as place:
        empty_s = _timed(_scenario(file, settings, options.seed, 0.01), Path(place) / "empty")[0]
        first: dict[str, bytes] = {}
        for number in range(options.repetitions):
            busy = number >= options.repetitions // 2
            with _load(options.load if busy else 0):
                wall_s, summary = _timed(scenario, Path(place) / str(number))
            files = contents(Path(str(summary.folder)))
            first = first or files
            others = sorted(name for name in files.keys() | first.keys() if files.get(name) != first.get(name))
            if others:
                differing[number] = others
            late += summary.late_events
            if not busy:
                idle_s.append(wall_s)
    wall_s = median(idle_s)
    return {
        "runs": options.repetitions,
        "files": len(first),
        "differing": differing,
        "late": late,
        "run_s": round(summary.duration_s, 1),
        "wall_s": round(wall_s, 1),
        "startup_s": round(empty_s, 1),
        "times_real_time": round(options.seconds / max(wall_s - empty_s, 1e-3), 1),
    }


def _scenario(file: str, settings: dict[str, Any], seed: int, seconds: float) -> Scenario:
    scenario = load(SCENARIOS / file, [f"{key}={json.dumps(value)}" for key, value in settings.items()])
    raw = {**scenario.plain(), "clock": "virtual", "seed": seed}
    for work in raw["workloads"]:
        if work["kind"] == "bulk":
            work.pop("bytes", None)
        if "duration_s" in work or work["kind"] == "bulk":
            work["duration_s"] = seconds
    return Scenario.model_validate(raw)


def _timed(scenario: Scenario, runs: Path) -> tuple[float, Summary]:
    begun = time.monotonic()
    summary = run_once(scenario, runs, lambda progress: None)
    return time.monotonic() - begun, summary


@contextmanager
def _load(count: int) -> Iterator[None]:
    """Busy processes."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
