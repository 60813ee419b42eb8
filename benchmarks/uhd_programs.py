"""UHD's own programs on a device of every family: which pass, which are refused, and whether that is as expected.

    .venv/bin/python -m benchmarks.uhd_programs [--profile NAME] [--device ARGS --cabled] [--only WORD] [--json]

The programs, and what a real device of each family does, are in tests/harness/uhd_programs.py. `--device` runs them on
one real device of the profile's family, which transmits at 1 GHz: --cabled says that no antenna is joined to it. Each
row has the end of a program in one profile's column: `passes`, `refused` (as by a real device), `left out` (a virtual
one lacks it), or `WRONG`. The benchmark ends with status 1 when something is wrong.
"""

import argparse
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.common import Column, Results, parser
from flowgraphs.air import Air
from flowgraphs.frontend import is_virtual
from tests.harness.radio_process import MODULES
from tests.harness.uhd_programs import PROGRAMS, RATES, Program, completed, path_of, verdict


def main() -> None:
    made = parser(__doc__, seed=None)
    made.add_argument("--profile", choices=list(RATES), action="append", help="this one only; may be repeated")
    made.add_argument("--device", metavar="ARGS", help="a real device of the profile's family")
    made.add_argument("--cabled", action="store_true", help="an attenuator, no antenna, is joined to the real device")
    made.add_argument("--only", default="", metavar="WORD", help="programs whose name has it")
    options = made.parse_args()
    profiles = options.profile or list(RATES)
    if options.device and (len(profiles) != 1 or not (options.cabled or is_virtual(options.device))):
        made.error("--device: give one --profile, and --cabled when it cannot radiate")
    results = Results(options, "none", "one run of each", {"program": Column("program")} | _columns(profiles))
    wrong = 0
    for program in PROGRAMS:
        if options.only in program.name and path_of(program.name):
            ends = {profile: _end(program, profile, options) for profile in profiles}
            wrong += sum(end.startswith("WRONG") for end in ends.values())
            results.add(program=program.name.removeprefix("/usr/libexec/uhd/utils/"), **ends)
    results.finish()
    sys.exit(1 if wrong else 0)


def _columns(profiles: list[str]) -> dict[str, Column]:
    return {profile: Column(profile) for profile in profiles}


def _end(program: Program, profile: str, options: argparse.Namespace) -> str:
    virtual = options.device is None or is_virtual(options.device)
    air = f"programs-{os.getpid()}"
    args = options.device or f"type=vusrp,air={air},profile={profile}"
    with TemporaryDirectory() as folder:
        words = program.words(args, profile, virtual=virtual)
        done = completed(words, Path(folder), MODULES if virtual else None, program.keys)
    Air.remove(air)
    if error := verdict(program, profile, done):
        print(f"{program.name} on {profile}: {error}", file=sys.stderr)
        return "WRONG"
    return "refused" if profile in program.refused else "left out" if profile in program.left_out else "passes"


if __name__ == "__main__":
    main()
