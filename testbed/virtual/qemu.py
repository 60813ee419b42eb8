"""A machine in virtual time in QEMU, with Debian's own kernel: for runs that need its compiler for BPF.

Read first: docs/virtual-time.md; `machine.py`, which has the rules; QEMU's docs/devel/tcg-icount.rst.

The processor is a program that counts its instructions, and each moves the clock by 1 ns. So, beside the rules of all
machines:

- Every device answers within the instruction that asks it: none has a thread of QEMU's.
- The processor never waits (`init.py`, `_keep_busy`), or QEMU's threads would race to move the clock.
"""

import json
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from typing_extensions import override

from testbed.errors import FadelabError
from testbed.virtual import machine, memory_files, stock_kernel

#: Debian's, which has PROGRAM
PACKAGE = "qemu-system-x86"
PROGRAM = "qemu-system-x86_64"
#: of the machine
PLACE, PYTHON = memory_files.PLACE, memory_files.PYTHON

_MEMORY = 2 << 30
#: without instructions that ask the host for entropy, and without those that copy octet by octet
_PROCESSOR = "max,-rdrand,-rdseed,-erms,-fsrm"
_KERNEL_OPTIONS = (
    *("console=ttyS0", "quiet", "panic=-1"),
    # no entropy but ours
    *("nokaslr", "random.trust_cpu=off", "random.trust_bootloader=off"),
    # the one clock, which counts nanoseconds
    *("clocksource=tsc", "tsc=reliable", "tsc_early_khz=1000000"),
    # it does not wait before `init.py` sees to that
    "idle=poll",
    # sessions share the processor as their processes' priorities say
    "noautogroup",
    # nobody attacks the machine
    *("mitigations=off", "apparmor=0", "selinux=0", "audit=0"),
)
#: the output of the machine that is files
_FILES = "files"


def run(order: machine.Order, out: machine.Take, err: machine.Take) -> int:
    """Boot a machine, run the command, and return its exit status; a Ctrl-C is passed on first.

    The command sees the files of `memory_files.py`, and the order's folders, whose files it gets as copies. What it
    writes there comes back when it has ended. Raises FadelabError or HostError as `machine.run` does.
    """
    # of a killed process nothing of this size may stay
    with machine.place() as folder, tempfile.TemporaryFile(dir=folder) as archive:
        return _Qemu(order, folder, out, err, archive).run()


def check() -> None:
    """Raise FadelabError where no machine can be."""
    if version() is None:
        raise FadelabError(
            f"TCP that needs BPF is in virtual time with QEMU: apt-get install --no-install-recommends {PACKAGE}"
        )
    machine.room()


def version() -> str | None:
    """Return QEMU's version, None without QEMU."""
    if shutil.which(PROGRAM) is None:
        return None
    command = [PROGRAM, "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    # QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)
    words = done.stdout.split()
    return words[3] if done.returncode == 0 and len(words) > 3 else None


def facts() -> Mapping[str, object]:
    """Return what a manifest says of the machine. Raises FadelabError when its kernel is gone."""
    kernel = stock_kernel.fetched()
    if kernel is None:
        raise FadelabError("the kernel of QEMU's machine is gone: start again")
    return {"kind": "qemu", "qemu": version(), **asdict(kernel)}


class _Qemu(machine.Machine):
    """`archive` is an empty file for the machine's files."""

    def __init__(
        self, order: machine.Order, place: Path, out: machine.Take, err: machine.Take, archive: BinaryIO
    ) -> None:
        super().__init__(order, place, out, err)
        self._archive = archive

    @override
    def _prepare(self, words: dict[str, Any]) -> None:
        words["folders"] = list(self._order.folders)
        file = self._archive
        with memory_files.archive() as base:
            shutil.copyfileobj(base, file, 1 << 24)
        archive = memory_files.Archive(file)
        archive.file("init", machine.INIT.read_bytes(), program=True)
        archive.file("run/machine/order.json", json.dumps(words).encode())
        for place, folder in self._order.folders.items():
            archive.folder(place)
            for path in sorted(path for path in folder.rglob("*") if path.is_file()):
                archive.file(place / path.relative_to(folder), path.read_bytes())
        for path in self._order.files:
            archive.file(path, path.read_bytes())
        archive.end()
        file.flush()
        self._inherited = (file.fileno(),)

    @override
    def _command(self) -> list[str]:
        ports = [
            option
            for name in ("out", "err", _FILES)
            for option in (
                "-chardev",
                f"file,id={name},path={name}",
                "-device",
                f"virtserialport,chardev={name},name={name}",
            )
        ]
        return [
            # ends with this process
            *("setpriv", "--pdeathsig", "KILL", PROGRAM),
            *("-M", "pc", "-accel", "tcg", "-cpu", _PROCESSOR, "-smp", "1", "-m", f"{_MEMORY >> 20}M"),
            *("-icount", "shift=0,sleep=off", "-rtc", "base=2025-01-01T00:00:00,clock=vm"),
            *("-seed", str(self._order.seed)),
            *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
            *("-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"),
            *("-device", "virtio-serial-pci,ioeventfd=off", *ports),
            *(
                "-kernel",
                str(stock_kernel.program()),
                "-initrd",
                f"/dev/fd/{self._archive.fileno()}",
                "-append",
                " ".join(_KERNEL_OPTIONS),
            ),
        ]

    @override
    def _collect(self) -> None:
        place = self._place / _FILES
        folders = {PurePosixPath(place): folder for place, folder in self._order.folders.items()}
        folders[PurePosixPath("/run/machine/status")] = self._place / "status"
        try:
            with tarfile.open(place, "r|") as archive:
                for member in archive:
                    self._take(archive, member, folders)
        except (OSError, tarfile.TarError):
            # the machine has ended before
            return

    def _take(self, archive: tarfile.TarFile, member: tarfile.TarInfo, folders: Mapping[PurePosixPath, Path]) -> None:
        place = "/" / PurePosixPath(member.name)
        content = archive.extractfile(member)
        for inside, outside in folders.items():
            if content is not None and place.is_relative_to(inside) and ".." not in place.parts:
                path = outside / place.relative_to(inside)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content.read())
