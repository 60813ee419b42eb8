"""Radios pulled out in mid-run, again and again on every family: how each run ends, and whether anything is left.

    sudo .venv/bin/python -m benchmarks.unplugging [--profile NAME] [--repetitions N] [--json]

Each run has two virtual devices of a family on the path of real ones and a transfer; ST's and BAS's radio are pulled
out in turn. A run ends well with one line and status 2, records of both sides of the link, and no process, namespace
or shared memory left behind. The benchmark ends with status 1 when one does not.
"""

import os
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.common import Column, Results, parser
from tests.harness.radio_process import MODULES
from tests.harness.uhd_programs import RATES
from tests.harness.unplugging import unplug_in_mid_run

COLUMNS = {
    "profile": Column("profile"),
    "runs": Column("runs"),
    "one_line": Column("one line"),
    "complete": Column("complete records"),
    "nothing_left": Column("nothing left"),
    "median_s": Column("s to the end", ".1f"),
    "max_s": Column("at most", ".1f"),
}


def main() -> None:
    made = parser(__doc__, seed=None, repetitions=10)
    made.add_argument("--profile", choices=list(RATES), action="append", help="this one only; may be repeated")
    options = made.parse_args()
    os.environ["UHD_MODULE_PATH"] = os.fspath(MODULES)
    results = Results(options, "usrp", "runs of virtual devices of a family", COLUMNS)
    faults: list[str] = []
    for profile in options.profile or RATES:
        ends = []
        for number in range(options.repetitions):
            with TemporaryDirectory(prefix="fadelab-unplug-") as folder:
                ends.append(unplug_in_mid_run(profile, ("ST", "BAS")[number % 2], Path(folder)))
        faults += [f"{profile}: {fault}" for end in ends for fault in end.faults]
        results.add(
            profile=profile,
            runs=len(ends),
            one_line=sum(not end.said for end in ends),
            complete=sum(not end.incomplete for end in ends),
            nothing_left=sum(not end.left for end in ends),
            median_s=median(end.ended_s for end in ends),
            max_s=max(end.ended_s for end in ends),
        )
    results.finish(faults=faults)
    for fault in faults:
        print(fault, file=sys.stderr)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
