"""How often this machine stands still, and for how long: `sudo .venv/bin/python -m benchmarks.stillness --seconds 60`.

On each processor a process asks to be woken every millisecond. Its real-time priority is above those of the stations,
so that none of our programs runs in its place. What delays it is below the programs: a hypervisor that runs another
machine, firmware, an interrupt, or the kernel in a call that it does not leave. Whatever a run's own processes do, its
frames are late then.

Left out: programs of others with a priority as high (cyclictest of Debian's rt-tests measures the same).
"""

import ctypes
import gc
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple

from benchmarks.common import Column, Results, parser
from common.closing import Closing
from testbed.paths import root

_PRIORITY = 90
#: sys/mman.h: MCL_CURRENT and MCL_FUTURE
_ALL_MEMORY = 3
_EVERY_NS = 1_000_000
#: a wakeup so late is a standstill
LEAST_NS = 2_000_000
_BOUNDS_MS = (2, 5, 10, 20)


class Standstill(NamedTuple):
    """A span of Unix time (ns) in which a processor did not run its most urgent program."""

    processor: int
    begin_ns: int
    end_ns: int

    @property
    def ms(self) -> float:
        """Its length."""
        return (self.end_ns - self.begin_ns) / 1e6


class Watch(Closing):
    """Watches all processors of this process until it is closed. Raises PermissionError.

    Closing raises RuntimeError where a processor has not been watched.
    """

    def __init__(self) -> None:
        # a process that may not do so says it here, in place of each child
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        self._children = {
            processor: subprocess.Popen(
                [sys.executable, "-m", "benchmarks.stillness", "--watch", str(processor)],
                cwd=root(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for processor in sorted(os.sched_getaffinity(0))
        }
        self.found: list[Standstill] = []

    def close(self) -> None:
        """End, and take what was found; idempotent."""
        failed = []
        while self._children:
            processor, child = self._children.popitem()
            told, _ = child.communicate()
            self.found += [Standstill(processor, *map(int, line.split())) for line in told.splitlines()]
            if child.returncode:
                failed.append(str(processor))
        if failed:
            raise RuntimeError(f"processor {', '.join(failed)} has not been watched")


def watch(processor: int) -> None:
    """Print begin and end of each standstill of a processor, once stdin has ended."""
    ctypes.CDLL(None).mlockall(_ALL_MEMORY)
    os.sched_setaffinity(0, {processor})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    os.set_blocking(0, False)
    gc.disable()
    found = []
    due = time.monotonic_ns()
    while True:
        due += _EVERY_NS
        time.sleep(max(0, due - time.monotonic_ns()) / 1e9)
        late_ns = time.monotonic_ns() - due
        if late_ns >= LEAST_NS:
            now = time.time_ns()
            found.append((now - late_ns, now))
            due += late_ns
        try:
            if os.read(0, 1) == b"":
                break
        except BlockingIOError:
            continue
    for begin, end in found:
        print(begin, end)


def counts(found: Sequence[Standstill]) -> dict[str, int | float]:
    """Return how many standstills were so long at least, and the longest."""
    lengths = [each.ms for each in found]
    table: dict[str, int | float] = {f"from_{bound}_ms": sum(ms >= bound for ms in lengths) for bound in _BOUNDS_MS}
    return table | {"longest_ms": round(max(lengths, default=0.0), 1)}


def main() -> None:
    """Watch for a while."""
    options_of = parser(__doc__, seed=None)
    options_of.add_argument("--seconds", type=float, default=60.0, help="default 60")
    options_of.add_argument("--watch", type=int, help="a processor: what the processes of this program are given")
    options = options_of.parse_args()
    if options.watch is not None:
        watch(options.watch)
        return
    columns = {
        "processor": Column("processor"),
        **{f"from_{bound}_ms": Column(f"{bound} ms or more") for bound in _BOUNDS_MS},
        "longest_ms": Column("longest (ms)", ".1f"),
    }
    results = Results(options, "none", f"standstills in {options.seconds:g} s", columns)
    processors = sorted(os.sched_getaffinity(0))
    with ExitStack() as stack:
        seen = stack.enter_context(Watch())
        time.sleep(options.seconds)
    for processor in processors:
        results.add(processor=processor, **counts([each for each in seen.found if each.processor == processor]))
    results.finish()


if __name__ == "__main__":
    main()
