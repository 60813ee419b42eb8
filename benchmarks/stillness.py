"""How often this machine stands still, and for how long: `sudo .venv/bin/python -m benchmarks.stillness --seconds 60`.

On each processor a process in the highest real-time priority asks to be woken every millisecond. No program can keep it
from that; what does is below the programs: a hypervisor that runs another machine, firmware, an interrupt. A run on
such a machine is late then, whatever its own processes do. Only on a machine without other real-time programs is that
so: those with a lower priority do not matter.
"""

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

_PRIORITY = 90
_EVERY_NS = 1_000_000
#: a wakeup so late is a standstill
LEAST_NS = 2_000_000
_BOUNDS_MS = (2, 5, 10, 20)


class Standstill(NamedTuple):
    """A time, Unix time in ns, in which a processor did not run its most urgent program."""

    processor: int
    begin_ns: int
    end_ns: int

    @property
    def ms(self) -> float:
        """The length."""
        return (self.end_ns - self.begin_ns) / 1e6


class Watch(Closing):
    """Watches all processors of this process until it is closed. Raises PermissionError."""

    def __init__(self) -> None:
        # a process that may not do so says it here, in place of each child
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        self._processors = sorted(os.sched_getaffinity(0))
        self._children = [
            subprocess.Popen(
                [sys.executable, "-P", "-m", "benchmarks.stillness", "--watch", str(processor)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for processor in self._processors
        ]
        self.found: list[Standstill] = []

    def close(self) -> None:
        """End, and take what was found; idempotent."""
        for processor, child in zip(self._processors, self._children, strict=True):
            told, _ = child.communicate()
            self.found += [Standstill(processor, *map(int, line.split())) for line in told.splitlines()]
        self._children.clear()
        self._processors.clear()


def watch(processor: int) -> None:
    """Print standstills of a processor, once stdin has ended."""
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
            found.append(f"{now - late_ns} {now}")
            due += late_ns
        try:
            if os.read(0, 1) == b"":
                break
        except BlockingIOError:
            continue
    print("\n".join(found))


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
