"""Looks at what machines in virtual time need."""

import shutil

from testbed.cli.doctor.look import Look, Seen, apt
from testbed.errors import FadelabError
from testbed.paths import root
from testbed.virtual import kernel, machine, qemu, stock_kernel

_NEEDED_FOR = ("virtual", "run --clock virtual")
_ELN = ("run --clock virtual --tcp eln",)


def _ptrace() -> Seen:
    return Seen(True, "allowed") if machine.may_trace() else Seen(False, "forbidden")


def _kernel() -> Seen:
    built = kernel.built()
    if built is not None:
        return Seen(True, f"built of {kernel.PACKAGE} {built.version}")
    try:
        kernel.require()
    except FadelabError:
        short = shutil.disk_usage(root()).free < kernel.BUILD_BYTES
        room = f"free {kernel.BUILD_BYTES / 1e6:.0f} MB on the file system of {root()}"
        return Seen(False, "no room for its build", room) if short else Seen(False, "its sources are missing")
    return Seen(True, "the first use builds it")


def _qemu() -> Seen:
    version = qemu.version()
    return Seen(False, f"no {qemu.PROGRAM} on PATH") if version is None else Seen(True, version)


def _stock_kernel() -> Seen:
    fetched = stock_kernel.fetched()
    return Seen(True, "the first use fetches it" if fetched is None else f"Debian's {fetched.version}")


def _memory() -> Seen:
    try:
        return Seen(True, f"in {machine.room()}")
    except FadelabError as error:
        return Seen(False, str(error))


LOOKS = (
    Look(
        "ptrace",
        _ptrace,
        "start a container with --cap-add SYS_PTRACE; else `sysctl kernel.yama.ptrace_scope=1`",
        _NEEDED_FOR,
    ),
    Look("kernel of virtual time", _kernel, apt(*kernel.NEEDED.split()), _NEEDED_FOR),
    Look("QEMU", _qemu, apt("--no-install-recommends", qemu.PACKAGE), _ELN),
    Look("kernel of QEMU's machine", _stock_kernel, apt(stock_kernel.PACKAGE), _ELN),
    Look("memory of a machine in virtual time", _memory, "make room there, or set TMPDIR", _NEEDED_FOR),
)
