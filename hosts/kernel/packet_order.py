"""Keeps the packets of a flow in order on their way between namespaces.

A veth hands a packet to the processor that its sender happens to run on. TCP sends from its program and from the
interrupts that bring acknowledgements, so that two processors may hold packets of one flow, and the one that is less
busy delivers first. On an idle machine of two processors 54 of 80 transfers of 400 segments had some in disorder,
which TCP takes for losses that no scenario asked for. Receive packet steering (RPS) chooses the processor by the flow.

Read first: the kernel's Documentation/networking/scaling.rst, "RPS"; fsopen and fsmount in fs/fsopen.c.

Left out: TAPs, which one process reads and writes, and which have one queue.
"""

import ctypes
import errno
import os
from pathlib import Path

from hosts.errors import HostError

#: include/uapi/asm-generic/unistd.h; the same for all processors
_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432
#: include/uapi/linux/mount.h
_CLOEXEC, _CREATE = 1, 6
_GROUP_BITS = 32


def keep_order(interface: str) -> None:
    """Let one processor receive all packets of a flow from this interface of the current network namespace.

    It is one of those that this process may use; where there is only one, there is nothing to do. Raises HostError.
    """
    processors = os.sched_getaffinity(0)
    if os.sysconf("SC_NPROCESSORS_ONLN") == 1:
        return
    try:
        sysfs = _sysfs_here()
        try:
            Path(f"/proc/self/fd/{sysfs}/class/net/{interface}/queues/rx-0/rps_cpus").write_text(_mask(processors))
        finally:
            os.close(sysfs)
    except OSError as error:
        remedy = "; a container needs --privileged for it" if error.errno == errno.EPERM else ""
        raise HostError(
            f"cannot keep packets of {interface} in order by receive packet steering: sysfs: {error.strerror}{remedy}"
        ) from None


def _mask(processors: set[int]) -> str:
    """The processors as bits, in hexadecimal groups of 32 (lib/bitmap.c)."""
    bits = sum(1 << processor for processor in processors)
    digits = f"{bits:x}"
    width = _GROUP_BITS // 4
    digits = digits.zfill(-(-len(digits) // width) * width)
    return ",".join(digits[start : start + width] for start in range(0, len(digits), width))


def _sysfs_here() -> int:
    """A descriptor of sysfs as the current network namespace has it, mounted nowhere; /sys is the machine's own."""
    context = _syscall(_FSOPEN, b"sysfs", _CLOEXEC)
    try:
        _syscall(_FSCONFIG, context, _CREATE, None, None, 0)
        return _syscall(_FSMOUNT, context, _CLOEXEC, 0)
    finally:
        os.close(context)


def _syscall(number: int, *arguments: bytes | int | None) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    result: int = libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
