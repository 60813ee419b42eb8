"""A wall clock that steps, for the processes of a run only: `CLOCK_REALTIME` with an offset that a file has.

A library in their environment (`LD_PRELOAD`) adds it; the machine's clock is not touched.
"""

import os
import struct
import subprocess
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

_SOURCE: Final = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long *offset;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("STEPPED_CLOCK");
    int file = path ? open(path, O_RDONLY) : -1;
    if (file >= 0) {
        void *mapped = mmap(NULL, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
        if (mapped != MAP_FAILED) offset = mapped;
        close(file);
    }
}

int clock_gettime(clockid_t id, struct timespec *now) {
    int status = syscall(SYS_clock_gettime, id, now);
    if (!status && offset && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) now->tv_sec += *offset;
    return status;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    int status = syscall(SYS_gettimeofday, now, zone);
    if (!status && offset) now->tv_sec += *offset;
    return status;
}

time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result) *result = now.tv_sec;
    return now.tv_sec;
}
"""


class WallClock:
    """The wall clock of processes with this environment."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "clock"
        self._file.write_bytes(bytes(8))

    def environment(self) -> dict[str, str]:
        """The variables for a process."""
        return {**os.environ, "LD_PRELOAD": str(_library()), "STEPPED_CLOCK": str(self._file)}

    def step(self, seconds: int) -> None:
        """Step it, for all of them at once."""
        with self._file.open("r+b") as file:
            file.write(struct.pack("l", seconds))


@cache
def _library() -> Path:
    folder = Path(mkdtemp(prefix="fadelab-clock-"))
    (folder / "clock.c").write_text(_SOURCE)
    library = folder / "clock.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-o", str(library), str(folder / "clock.c")], check=True)
    return library
