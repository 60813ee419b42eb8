"""Processor time and memory of this process, as Linux counts them."""

import os
import time
from collections.abc import Callable
from pathlib import Path

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_STATM = Path("/proc/self/statm")


class Usage:
    """Processor time between two calls. Both clocks are in ns; `processor` is the sum of all threads."""

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
    """Return the resident memory of the process (proc(5), statm)."""
    return int(_STATM.read_text().split()[1]) * _PAGE_BYTES
