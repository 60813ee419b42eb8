"""A timer as a file descriptor, to wait for a deadline and for input in one epoll.

epoll's own timeout counts milliseconds, which is a whole frame at 10 Mbps; a timerfd counts nanoseconds. Python
offers it from 3.13 on (os.timerfd_create); until then this is the C library's (timerfd_create(2)).
"""

import ctypes
import os
import time

_CLOEXEC, _NONBLOCK, _ABSTIME = 0o2000000, 0o4000, 1


class _Timespec(ctypes.Structure):
    _fields_ = (("sec", ctypes.c_long), ("nsec", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


_libc = ctypes.CDLL(None, use_errno=True)


class TimerFd:
    """One timer on CLOCK_MONOTONIC. Register it edge-triggered: then nothing need be read from it."""

    def __init__(self) -> None:
        fd: int = _libc.timerfd_create(time.CLOCK_MONOTONIC, _CLOEXEC | _NONBLOCK)
        if fd < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        self._fd = fd
        self._spec = _Itimerspec()
        self._at: int | None = None

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._fd

    def set(self, at: int | None) -> None:
        """Fire at `at` (CLOCK_MONOTONIC, ns; at once when past), or never."""
        if at == self._at:
            return
        self._at = at
        value = self._spec.value
        # a value of zero disarms; one nanosecond is as past as any
        value.sec, value.nsec = divmod(max(at, 1), 1_000_000_000) if at is not None else (0, 0)
        if _libc.timerfd_settime(self._fd, _ABSTIME, ctypes.byref(self._spec), None) < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._fd)
