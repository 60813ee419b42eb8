"""Radio runs started and stopped again and again: whether every process ends by itself and nothing is left behind.

    sudo .venv/bin/python -m benchmarks.radio_starts [--runs N] [--seed N] [--json]

Each run is scenarios/fading-link.yaml with a transfer of half a second: two stations with virtual USRPs and two hosts.
All processes leave by an ordinary exit, which destroys GNU Radio's blocks, UHD's devices and the interpreter. After
each run the benchmark looks at the exit statuses, and compares with the end of the first run: processes, namespaces,
airs in shared memory, this process's descriptors and threads. It ends with status 1 when something is wrong.
"""

import os
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any
from unittest.mock import patch

from benchmarks.common import Column, Results, parser, whole
from flowgraphs.air import Air
from hosts.errors import HostError
from testbed.errors import FadelabError
from testbed.live.children import Child
from testbed.paths import root
from testbed.running import run_once
from testbed.scenario.file import load

COLUMNS = {
    "runs": Column("runs"),
    "processes": Column("processes"),
    "crashes": Column("crashes"),
    "leftovers": Column("leftovers"),
    "seconds": Column("s per run", ".1f"),
}
_SETTINGS = ('workloads=[{"kind": "bulk", "direction": "up", "duration_s": 0.5}]',)
_NAMESPACES = Path("/run/netns")


def main() -> None:
    """Start, stop, look and print."""
    options_of = parser(__doc__)
    options_of.add_argument("--runs", type=whole(1), default=100)
    options = options_of.parse_args()
    results = Results(options, "vusrp", "radio runs with an ordinary exit", COLUMNS)
    statuses: list[tuple[str, int]] = []
    crashes, leftovers, processes = [], [], 0
    began = monotonic()
    with TemporaryDirectory(prefix="fadelab-starts-") as folder, noting(statuses):
        before: set[str] | None = None
        for number in range(options.runs):
            seed = options.seed + number
            scenario = load(root() / "scenarios" / "fading-link.yaml", (*_SETTINGS, f"seed={seed}"))
            try:
                run_once(scenario, Path(folder), lambda progress: None)
            except (HostError, FadelabError) as error:
                crashes.append(f"seed {seed}: {error}")
            if before is None:
                # the first run loads what stays
                before = present()
            crashes += [f"seed {seed}: {name} ended with status {status}" for name, status in statuses if status]
            processes += len(statuses)
            statuses.clear()
            leftovers += [f"seed {seed}: {what}" for what in sorted(present() - before)]
    results.add(
        runs=options.runs,
        processes=processes,
        crashes=len(crashes),
        leftovers=len(leftovers),
        seconds=(monotonic() - began) / options.runs,
    )
    results.finish(crashes=crashes, leftovers=leftovers)
    for line in crashes + leftovers:
        print(line, file=sys.stderr)
    sys.exit(1 if crashes or leftovers else 0)


def noting(statuses: list[tuple[str, int]]) -> Any:
    """Note the name and the exit status of every process of a run, while this is entered."""
    end = Child.end

    def ended(child: Child) -> None:
        end(child)
        statuses.append((child.name, child._process.returncode))

    return patch.object(Child, "end", ended)


def present() -> set[str]:
    """What a run might leave: our children, namespaces, airs; and how many descriptors and threads we have."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return {
        *(f"process {pid}" for pid in children),
        *(f"namespace {path.name}" for path in _NAMESPACES.glob(f"fadelab-{os.getpid()}-*")),
        *(f"air {name}" for name in Air.names() if name.startswith(f"run-{os.getpid()}-")),
        f"{len(list(Path('/proc/self/fd').iterdir()))} descriptors",
        f"{threading.active_count()} threads",
    }


if __name__ == "__main__":
    main()
