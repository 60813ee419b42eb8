"""Enters network namespaces, and makes those of process ids, for the other modules of this folder.

Read first: setns(2), network_namespaces(7), ip-netns(8) (for the `/run/netns` convention); pid_namespaces(7).

Rules kept
- Cheap to import (ctypes only): every station and agent process comes by here when it starts.
- `run_in` never moves the caller: a network namespace belongs to a thread, not to a process, so the work runs
  in a thread that enters the namespace and then ends.

Left out: creating and removing namespaces (`hosts/kernel/network.py`), and other types of namespaces.
"""

import ctypes
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from hosts.errors import HostError

#: the folder of ip-netns(8), so that `ip netns` shows our namespaces, too
NETNS_DIR = Path("/run/netns")
#: all our namespaces have the name `fadelab-<run>-<role>`
PREFIX = "fadelab-"
_CLONE_NEWNET, _CLONE_NEWPID = 0x40000000, 0x20000000  # linux/sched.h
_RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,47}")

T = TypeVar("T")


def namespace_name(run: str, role: str) -> str:
    """Return the name of one host's namespace.

    Raises HostError when the run's name is not valid in a file name.
    """
    if not _RUN_NAME.fullmatch(run):
        raise HostError(f"run name {run!r} must be 1 to 48 letters, digits, '_', '.' or '-'")
    return f"{PREFIX}{run}-{role}"


def enter(name: str) -> None:
    """Move the calling thread into the named namespace for good; in a process of one thread, the process.

    Raises HostError when the namespace does not exist or rights are missing.
    """
    try:
        descriptor = os.open(NETNS_DIR / name, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise HostError(f"no network namespace {name}: start its run first ({error.strerror})") from None
    try:
        # os.setns arrived in Python 3.12.
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(descriptor, _CLONE_NEWNET) != 0:
            reason = os.strerror(ctypes.get_errno())
            raise HostError(f"cannot enter network namespace {name}: {reason}; run with sudo or as root")
    finally:
        os.close(descriptor)


def run_in(name: str, work: Callable[[], T]) -> T:
    """Run `work` inside the named namespace and return its value; the caller stays in its own.

    Inside `work`, `/proc/self/net` still shows the caller's namespace; use `/proc/thread-self/net`.
    Raises what `work` raises, and HostError when the namespace cannot be entered.
    """
    from concurrent.futures import ThreadPoolExecutor  # slow to import

    def body() -> T:
        enter(name)
        return work()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(body).result()


@contextmanager
def own_process_ids() -> Iterator[None]:
    """Let the one process that is started meanwhile be the first of a namespace of process ids.

    When it ends, the kernel ends all processes of the namespace; `wait` for it returns after them. The calling thread
    can start no thread meanwhile; other threads, and whatever is started later, stay in the present namespace.

    Raises HostError.
    """
    libc = ctypes.CDLL(None, use_errno=True)

    def refuse() -> HostError:
        reason = os.strerror(ctypes.get_errno())
        return HostError(f"cannot make a namespace of process ids: {reason}; run with sudo or as root")

    ours = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    try:
        # of children only: a process never changes its own
        if libc.unshare(_CLONE_NEWPID) != 0:
            raise refuse()
        try:
            yield
        finally:
            if libc.setns(ours, _CLONE_NEWPID) != 0:
                raise refuse()
    finally:
        os.close(ours)
