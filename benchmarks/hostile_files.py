"""Hostile files by the thousand: scenarios, campaigns, traces, recordings, bundles and folders of runs.

    .venv/bin/python -m benchmarks.hostile_files [--inputs N] [--seed N] [--only WORD] [--seconds S] [--json]

`tests/harness/hostile_files.py` damages valid files and has the rules. The doors with WORD in their name get N files
each, or as many as are read in S seconds. Where a rule is broken, the number of the file is shown, once for each place
in the code; `--seed NUMBER --inputs 1` reads it again. It ends with 1 when a rule was broken.
"""

import resource
import sys
import time
import traceback
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.common import Column, Results, parser, whole
from tests.harness.checked import RuleBrokenError
from tests.harness.hostile_files import FileDoor, attack, doors

#: more than a command needs for a file of some kilobytes
_MOST_BYTES = 3 << 30
_COLUMNS = {"door": Column("door"), "inputs": Column("files", ","), "broken": Column("broken")}


def main() -> None:
    """Attack and print."""
    options_of = parser(__doc__)
    options_of.add_argument("--inputs", type=whole(1), default=10_000, help="files of each door (default 10,000)")
    options_of.add_argument("--only", default="", help="doors with this word in their name")
    options_of.add_argument("--seconds", type=float, default=float("inf"), help="no new file of a door after these")
    options = options_of.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    results = Results(options, "model", "", _COLUMNS)
    broken = False
    with TemporaryDirectory(prefix="fadelab-hostile-") as scratch:
        known = list(doors(Path(scratch)))
        chosen = [door for door in known if options.only in door.name]
        if not chosen:
            options_of.error(f"--only {options.only}: no such door; there are {'; '.join(door.name for door in known)}")
        for door in chosen:
            inputs, found = _attack(door, options.seed, options.inputs, options.seconds)
            for words in found:
                print(f"{door.name}: {words}", file=sys.stderr, flush=True)
            results.add(door=door.name, inputs=inputs, broken=len(found))
            broken |= bool(found)
    results.finish()
    sys.exit(1 if broken else 0)


def _attack(door: FileDoor, first: int, count: int, seconds: float) -> tuple[int, list[str]]:
    """Return the number of files that were read, and what was found, a line for each place in the code."""
    ends_at, found, number = time.monotonic() + seconds, dict[str, str](), first
    with TemporaryDirectory(prefix="fadelab-hostile-") as parent:
        while number < first + count and time.monotonic() < ends_at:
            folder = Path(parent) / "folder"
            folder.mkdir()
            try:
                attack(door, number, folder)
            except RuleBrokenError as error:
                cause = error.__cause__ or error
                [*_, last] = traceback.extract_tb(cause.__traceback__)
                found.setdefault(
                    f"{last.filename}:{last.lineno}", f"file {number}: {error} ({last.filename}:{last.lineno})"
                )
            _empty(Path(parent))
            number += 1
    return number - first, list(found.values())


def _empty(folder: Path) -> None:
    import shutil

    for entry in folder.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


if __name__ == "__main__":
    main()
