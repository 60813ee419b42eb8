"""Faults of live runs' processes, interfaces, disks, dashboards, again and again: what must survive, and what is left.

    sudo .venv/bin/python -m benchmarks.process_faults [--repetitions N] [--seed N] [--only PATTERN] [--seconds S]

`tests/harness/process_faults/` has the cases. Each is lived through N times, case after case in rounds, so that a run
that a fault has ended is followed by a run of another kind; the moment of the fault, scheme and TCP are drawn from the
seed, the case and the round. Each outcome is printed to stderr. Only processes that it started get signals. A run that
a busy machine did not start in time is not counted. It ends with 1 when a statement did not hold, or a case was never
tried.
"""

import itertools
import os
import re
import signal
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.common import Column, Results, parser
from tests.harness.process_faults.cases import CASES
from tests.harness.process_faults.stage import BusyError, Case, outcome
from tests.harness.radio_process import MODULES

COLUMNS = {
    "case": Column("case"),
    "runs": Column("times"),
    "held": Column("held"),
    "max_s": Column("s at most", ".1f"),
}


def main() -> None:
    """Live through the cases and print."""
    made = parser(__doc__, repetitions=20)
    made.add_argument("--only", default="", help="cases whose name has this pattern")
    made.add_argument("--seconds", type=float, default=float("inf"), help="no new case after this")
    options = made.parse_args()
    chosen = [case for case in CASES if re.search(options.only, case.name)]
    if not chosen:
        made.error(f"--only {options.only}: no such case; there are {'; '.join(case.name for case in CASES)}")
    os.environ["UHD_MODULE_PATH"] = os.fspath(MODULES)
    # its commands inherit it where it is ignored, as in the background of a shell
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # as Ctrl-C does: what is under way is tidied up, and the table is printed
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    results = Results(options, "emulated", "faults of processes, interfaces, disks, dashboards", COLUMNS)
    lived: dict[str, list[tuple[float, str]]] = {case.name: [] for case in chosen}
    faults: list[str] = []
    busy = 0
    begun = time.monotonic()
    rounds = range(options.seed, options.seed + options.repetitions)
    with suppress(KeyboardInterrupt):
        for number, case in itertools.product(rounds, chosen):
            began = time.monotonic()
            if began - begun > options.seconds:
                break
            try:
                wrong = _live(case, number)
            except BusyError as error:
                busy += 1
                print(f"{case.name}, seed {number}: not tried: {error}", file=sys.stderr, flush=True)
                continue
            took_s = time.monotonic() - began
            lived[case.name].append((took_s, wrong))
            if wrong:
                faults.append(f"{case.name}, seed {number}: {wrong}")
            print(f"{case.name}, seed {number}, {took_s:.0f} s: {wrong or 'held'}", file=sys.stderr, flush=True)
    for case in chosen:
        took = lived[case.name]
        held = sum(not wrong for _, wrong in took)
        results.add(case=case.name, runs=len(took), held=held, max_s=max((seconds for seconds, _ in took), default=0.0))
    results.finish(faults=faults, busy=busy)
    # what was never lived through has not held
    sys.exit(1 if faults or not all(lived.values()) else 0)


def _live(case: Case, number: int) -> str:
    with TemporaryDirectory(prefix="fadelab-fault-") as folder:
        try:
            return outcome(case, Path(folder), number)
        except BusyError:
            raise
        except Exception as error:
            traceback.print_exc()
            return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main()
