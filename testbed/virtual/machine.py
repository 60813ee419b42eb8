"""A machine in virtual time: boots the kernel, runs one command in it, and leaves nothing.

Read first: docs/virtual-time.md; `init.py`, the machine's first process. `Machine` is what all machines have in common;
that of this file is Linux in user mode, and `qemu.py` has the other one.

Rules kept
- Time in the machine is a function of the command, its files and the seed. Nothing of the host reaches it while it
  runs: what it says goes through files, which it never waits for.
- However the machine or this process ends, no process, file or mount of it stays: its first process ends it when the
  pipe to this process closes.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from typing_extensions import override

from testbed.errors import FadelabError
from testbed.virtual import kernel

#: takes what the command has written
Take = Callable[[bytes], None]

#: 2025-01-01: every machine begins then
_BEGIN_NS = 1_735_689_600 * 10**9
_ENTROPY_BYTES = 64
_MEMORY = 3 << 30
#: output is looked for so often
_POLL_S = 0.02
#: a command that has had Ctrl-C has this time to end
_GRACE_S = 10.0
#: linux/ptrace.h
_PTRACE_TRACEME = 0
#: the first process of every machine
INIT = Path(__file__).with_name("init.py")
_PYTHON = "/usr/bin/python3"


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a machine is to do."""

    command: Sequence[str]
    seed: int
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    cwd: Path = field(default_factory=Path.cwd)
    #: folders of the host that the command writes, by where it sees them; what it writes elsewhere is gone with the
    #: machine
    folders: Mapping[str, Path] = field(default_factory=dict)
    #: files of the host that the command reads beside those of every run, for a machine that does not see the host's
    files: Sequence[Path] = ()


def run(order: Order, out: Take, err: Take) -> int:
    """Boot a machine, run the command, and return its exit status; a Ctrl-C is passed on first.

    Raises FadelabError when the machine does not boot or ends before its command.
    """
    with place() as folder:
        return _UserMode(order, folder, out, err).run()


@contextmanager
def place() -> Iterator[Path]:
    """Make the folder of one machine, and remove it. Raises FadelabError."""
    with tempfile.TemporaryDirectory(prefix=f"{kernel.PREFIX}{os.getpid()}-", dir=room()) as name:
        yield Path(name)


def abandoned() -> list[Path]:
    """Return the folders of machines whose processes were killed."""
    return [
        path
        for folder in _rooms()
        for path in sorted(folder.glob(f"{kernel.PREFIX}*"))
        if not Path("/proc", path.name.removeprefix(kernel.PREFIX).partition("-")[0]).exists()
    ]


def check() -> None:
    """Raise FadelabError where no machine can be."""
    if not may_trace():
        raise FadelabError("virtual time needs ptrace, which is forbidden here: `fadelab doctor` says how to allow it")
    room()


def may_trace() -> bool:
    """Whether processes may be traced, as the machine's kernel does with its own."""
    code = f"import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace({_PTRACE_TRACEME}, 0, 0, 0) != 0)"
    return subprocess.run([_PYTHON, "-ISc", code], check=False, stdin=subprocess.DEVNULL).returncode == 0


def room() -> Path:
    """Return the folder with room for a machine's memory, one in memory if possible. Raises FadelabError."""
    for folder in _rooms():
        if os.access(folder, os.W_OK) and shutil.disk_usage(folder).free >= _MEMORY:
            return folder
    places = " or ".join(map(str, _rooms()))
    raise FadelabError(f"a machine in virtual time needs {_MEMORY / 2**30:.0f} GB of room in {places}")


def _rooms() -> list[Path]:
    return [folder for folder in (Path("/dev/shm"), Path(tempfile.gettempdir())) if folder.is_dir()]


class Machine(ABC):
    """One command in one machine; `place` is a folder of its own."""

    def __init__(self, order: Order, place: Path, out: Take, err: Take) -> None:
        self._order, self._place = order, place
        self._takes = {place / "out": out, place / "err": err}
        self._taken = dict.fromkeys(self._takes, 0)
        #: descriptors that the machine inherits
        self._inherited: tuple[int, ...] = ()

    def run(self) -> int:
        """Boot, and return the command's exit status; a Ctrl-C is passed on. Raises FadelabError."""
        place, order = self._place, self._order
        for path in self._takes:
            path.touch()
        self._prepare(
            {
                "command": list(order.command),
                "environment": dict(order.environment),
                "cwd": str(order.cwd),
                "entropy": Random(order.seed).randbytes(_ENTROPY_BYTES).hex(),
            }
        )
        with (place / "kernel.log").open("wb") as log:
            child = subprocess.Popen(
                self._command(),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=place,
                env={"HOME": str(place), "TMPDIR": str(place), "PATH": "/usr/bin:/bin"},
                start_new_session=True,
                pass_fds=self._inherited,
            )
        try:
            self._watch(child)
        except BaseException:
            self._interrupt(child)
            raise
        finally:
            self._end(child)
            self._collect()
        return self._status()

    @abstractmethod
    def _prepare(self, words: dict[str, Any]) -> None:
        """Give `init.py` its order: these words, and others that only this machine has."""

    @abstractmethod
    def _command(self) -> Sequence[str]:
        """Return the host's program that is the machine. Its standard streams are the machine's console."""

    @abstractmethod
    def _collect(self) -> None:
        """Write what a machine that has ended has not written itself into the order's folders, and its status."""

    def _watch(self, child: "subprocess.Popen[bytes]") -> None:
        while child.poll() is None:
            self._pass_on()
            time.sleep(_POLL_S)
        self._pass_on()

    def _interrupt(self, child: "subprocess.Popen[bytes]") -> None:
        """Send the command SIGINT, and wait until it has ended."""
        assert child.stdin is not None
        try:
            child.stdin.write(b"%d\n" % signal.SIGINT)
            child.stdin.flush()
        except BrokenPipeError:
            return
        deadline = time.monotonic() + _GRACE_S
        while child.poll() is None and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        self._pass_on()

    def _end(self, child: "subprocess.Popen[bytes]") -> None:
        assert child.stdin is not None
        if child.poll() is None:
            # its processes end with it
            child.kill()
            child.wait()
        child.stdin.close()

    def _pass_on(self) -> None:
        for path, take in self._takes.items():
            with path.open("rb") as file:
                file.seek(self._taken[path])
                octets = file.read()
            self._taken[path] += len(octets)
            if octets:
                take(octets)

    def _status(self) -> int:
        try:
            return int((self._place / "status").read_text())
        except (OSError, ValueError):
            lines = (self._place / "kernel.log").read_text(errors="replace").split("\n")
            said = next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
            raise FadelabError(f"the machine in virtual time ended before its command: {said}") from None


class _UserMode(Machine):
    @override
    def _prepare(self, words: dict[str, Any]) -> None:
        words["folders"] = {place: str(folder) for place, folder in self._order.folders.items()}
        (self._place / "order.json").write_text(json.dumps(words))
        shutil.copy(INIT, self._place / "init")
        (self._place / "init").chmod(0o755)

    @override
    def _command(self) -> list[str]:
        return [
            # the layout of its memory is no chance
            *("setarch", "-R", str(kernel.program())),
            f"mem={_MEMORY >> 20}M",
            *("time-travel=inf-cpu", f"time-travel-start={_BEGIN_NS}"),
            *("rootfstype=hostfs", "rootflags=/", "ro", "panic=-1", "noreboot"),
            # the kernel keeps its pid in the folder .uml of HOME
            *("umid=machine", "con=null", "con0=fd:0,fd:1", "ssl=null", "init=/proc/self/cwd/init"),
        ]

    @override
    def _collect(self) -> None:
        # its kernel writes them as it runs
        pass
