"""What this process needs of its machine: processor time and memory, as Linux counts them."""

import os
import time
from collections.abc import Callable
from pathlib import Path

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_STATM = Path("/proc/self/statm")


class Usage:
    """Processor time between two calls; the clocks are in ns, `processor` counts that of all threads."""

    def __init__(
        self,
        clock: Callable[[], int] = time.monotonic_ns,
        processor: Callable[[], int] = time.process_time_ns,
    ) -> None:
        self._clock = clock
        self._processor = processor
        self._last = clock(), processor()

    def processor_percent(self) -> float:
        """Return the processor time since the last call, in percent of one core."""
        at, used = self._last
        self._last = now, spent = self._clock(), self._processor()
        return 100 * (spent - used) / (now - at) if now > at else 0.0


def resident_bytes() -> int:
    """Return how much memory the process has resident (proc(5), statm)."""
    return int(_STATM.read_text().split()[1]) * _PAGE_BYTES
