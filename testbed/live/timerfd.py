"""A timer as a file descriptor, to wait for a deadline and for input in one epoll.

The timeout of epoll counts milliseconds, and a frame at 10 Mbps takes about one; a timerfd counts nanoseconds. Python
has os.timerfd_create from 3.13 on; this module calls timerfd_create(2) of the C library.
"""

import ctypes
import os
import struct
import time

_CLOEXEC, _NONBLOCK, _ABSTIME = 0o2000000, 0o4000, 1
_libc = ctypes.CDLL(None, use_errno=True)


class TimerFd:
    """One timer on CLOCK_MONOTONIC. Register it edge-triggered, so that it need not be read."""

    def __init__(self) -> None:
        fd: int = _libc.timerfd_create(time.CLOCK_MONOTONIC, _CLOEXEC | _NONBLOCK)
        if fd < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        self._fd = fd
        self._at: int | None = None

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._fd

    def set(self, at: int | None) -> None:
        """Fire at `at` (CLOCK_MONOTONIC, ns; at once when past), or never."""
        if at == self._at:
            return
        self._at = at
        # zero would disarm the timer; 1 ns is in the past as well
        seconds_ns = divmod(max(at, 1), 1_000_000_000) if at is not None else (0, 0)
        # struct itimerspec: no interval, and the time
        if _libc.timerfd_settime(self._fd, _ABSTIME, struct.pack("4l", 0, 0, *seconds_ns), None) < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._fd)
