"""Control groups of ours: version 2, one per run.

Read first: cgroups(7); fsopen(2), fsmount(2).

Rules kept
- The hierarchy is mounted for this process's own use, nowhere in the machine's tree: it need not be mounted before, and
  no mount is left behind.
- Groups limit nothing: they only say whose sockets a program is for.
"""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from hosts.errors import HostError
from hosts.kernel.namespaces import PREFIX

_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432  # the same on all architectures but alpha
_FSOPEN_CLOEXEC = _FSMOUNT_CLOEXEC = 1  # linux/mount.h
_FSCONFIG_CMD_CREATE = 6


class Cgroup:
    """The group of one run, from `make` to `remove`."""

    def __init__(self, run: str) -> None:
        self._name = PREFIX + run
        with _hierarchy() as root:
            try:
                os.mkdir(self._name, dir_fd=root)
                self.fd = os.open(self._name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=root)
            except OSError as error:
                raise HostError(f"cannot make control group {self._name}: {error.strerror}") from None

    def add(self, pid: int) -> None:
        """Move a process into the group; sockets it opens from now on belong to the group. Raises HostError."""
        try:
            procs = os.open("cgroup.procs", os.O_WRONLY | os.O_CLOEXEC, dir_fd=self.fd)
            try:
                os.write(procs, str(pid).encode())
            finally:
                os.close(procs)
        except OSError as error:
            raise HostError(f"cannot move process {pid} into control group {self._name}: {error.strerror}") from None

    def remove(self) -> None:
        """Remove it; its processes must have ended."""
        os.close(self.fd)
        remove(self._name)


def names() -> dict[str, bool]:
    """The groups of all runs, and whether a process is in them; none where there are no rights to look."""
    try:
        with _hierarchy() as root:
            # the descriptor from mounting is a path for openat, but cannot be read
            readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=root)
            try:
                entries = os.listdir(readable)  # noqa: PTH208 - a descriptor
            finally:
                os.close(readable)
            return {entry: _populated(root, entry) for entry in sorted(entries) if entry.startswith(PREFIX)}
    except HostError:
        return {}


def remove(name: str) -> None:
    """Remove a group in which no process is; idempotent. Raises HostError."""
    with _hierarchy() as root:
        try:
            with suppress(FileNotFoundError):
                os.rmdir(name, dir_fd=root)
        except OSError as error:
            raise HostError(f"cannot remove control group {name}: {error.strerror}") from None


def _populated(root: int, name: str) -> bool:
    try:
        with os.fdopen(os.open(f"{name}/cgroup.events", os.O_RDONLY | os.O_CLOEXEC, dir_fd=root)) as events:
            return "populated 1" in events.read()
    except OSError:
        # it goes just now
        return True


@contextmanager
def _hierarchy() -> Iterator[int]:
    """A descriptor of the hierarchy's root. Raises HostError."""
    libc = ctypes.CDLL(None, use_errno=True)

    def call(*arguments: object) -> int:
        done = libc.syscall(*arguments)
        if done < 0:
            reason = os.strerror(ctypes.get_errno())
            raise HostError(f"cannot use control groups (cgroup2): {reason}; run with sudo or as root")
        return int(done)

    context = call(_FSOPEN, b"cgroup2", _FSOPEN_CLOEXEC)
    try:
        call(_FSCONFIG, context, _FSCONFIG_CMD_CREATE, None, None, 0)
        root = call(_FSMOUNT, context, _FSMOUNT_CLOEXEC, 0)
    finally:
        os.close(context)
    try:
        yield root
    finally:
        os.close(root)
