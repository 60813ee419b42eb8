"""The grid of times on which the parts of a run in virtual time begin.

In virtual time a start takes some microseconds more when a process reads its clock once more, or a system call fails.
Who pauses until the next time of the grid begins at the same time all the same.

Nor must it matter when garbage is collected: whoever collects takes locks, and who takes a lock reads the clock. The
collector comes after so many new objects, and now and then after a quarter more than there are, which differs with the
packages that are installed. A pause forgets all objects so far, so that the collector counts those of the run.
"""

import gc
import time

#: whole ticks of the kernel
_STEP_NS = 100_000_000


def next_time(time_ns: int) -> int:
    """Return the next time of the grid."""
    return -(-time_ns // _STEP_NS) * _STEP_NS


def pause() -> None:
    """Sleep until a time of the grid, a step away at least, and count objects from there."""
    gc.collect()
    gc.freeze()
    # of no objects: what is frozen counts no more
    gc.collect()
    now = time.monotonic_ns()
    time.sleep((next_time(now + _STEP_NS) - now) / 1e9)
