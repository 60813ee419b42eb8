"""Programs of others as processes in the current namespace.

Read first: `hosts/engine/programs.py`; pid_namespaces(7); prctl(2) for PR_SET_PDEATHSIG.

Rules kept

- Each program is the first process of a namespace of process ids. When it ends, the kernel ends all that it has
  started, in sessions of their own, too. The kernel kills it when the agent dies without `close`.
- It is signalled only while it has not been reaped: its number is nobody else's.
- What a program writes never blocks it: pipes are read as long as it lives. Of a server the end of it is kept.
- Nothing waits for a program but the start of a server: that it has ended is an event of the loop.
- A program gets the usual reactions to signals, which the agent ignores, and C as its language.
- It has an ordinary priority. In a machine in virtual time the processes of the run come before it: iperf3 polls its
  sockets at the end of a test, and with their priority would poll for ever.
"""

import ctypes
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from io import FileIO
from pathlib import Path
from typing import IO, Final

from typing_extensions import override

from hosts.engine.programs import Client, Programs, Task
from hosts.errors import HostError
from hosts.kernel.namespaces import own_process_ids
from hosts.loop import READ, Loop

_PR_SET_PDEATHSIG: Final = 1
#: how long a server may take until it listens
READY_S: Final = 10.0
#: how much of a server's output is kept
KEPT_BYTES: Final = 65_536
_READ_BYTES: Final = 65_536
_LINE_CHARS: Final = 300
_PRCTL: Final = ctypes.CDLL(None).prctl


def _prepare() -> None:
    """Run in the child, before the program."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    _PRCTL(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


class _Output:
    """What a process writes into one pipe, or the last `kept` octets of it."""

    def __init__(self, pipe: IO[bytes], kept: int | None) -> None:
        self.pipe = pipe
        self._kept = kept
        self._data = bytearray()

    def read(self) -> bool:
        """Take what is there; return False at the end."""
        data = os.read(self.pipe.fileno(), _READ_BYTES)
        self._data += data
        if self._kept is not None:
            del self._data[: -self._kept]
        return bool(data)

    def text(self) -> str:
        return self._data.decode(errors="replace")


class _Process:
    """A program with its folder, and what it writes: with `kept` to one pipe, of which that much is kept."""

    def __init__(self, task: Task, *, kept: int | None = None) -> None:
        self.task = task
        self.program = task.command.words[0]
        path = _path_of(task)
        # closed by `kill`
        self._folder = self._make_folder()
        try:
            with own_process_ids():
                self._process = subprocess.Popen(
                    [path, *task.command.words[1:]],
                    cwd=self._folder.name,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE if kept is None else subprocess.STDOUT,
                    start_new_session=True,
                    preexec_fn=_prepare,
                    env={**os.environ, "LC_ALL": "C"},
                )
            # readable once the process, and so its namespace, has ended
            self._life = FileIO(os.pidfd_open(self._process.pid))
        # ValueError: a zero octet in a word; SubprocessError: `_prepare` failed
        except (HostError, OSError, subprocess.SubprocessError, ValueError) as error:
            self._folder.cleanup()
            raise HostError(f"flow {task.flow}: {self.program} cannot be started: {_reason(error)}") from None
        pipes = (self._process.stdout, self._process.stderr)
        self._outputs = [_Output(pipe, kept) for pipe in pipes if pipe is not None]
        self.stdout = self._outputs[0]
        #: what has not ended
        self._open: set[IO[bytes] | FileIO] = {self._life, *(output.pipe for output in self._outputs)}
        self._over = False

    def watch(self, loop: Loop, ended: Callable[[int], None], wrote: Callable[[], None] = lambda: None) -> None:
        """Read on `loop`: `wrote` follows each reading, and `ended` gets the status, once all has been read."""

        def end(source: IO[bytes] | FileIO) -> None:
            loop.forget(source)
            self._open.remove(source)
            if not self._open:
                ended(self._process.wait())

        def read(output: _Output) -> None:
            if output.read():
                wrote()
            else:
                end(output.pipe)

        for output in self._outputs:
            if output.pipe in self._open:
                loop.watch(output.pipe, READ, partial(read, output))
        if self._life in self._open:
            loop.watch(self._life, READ, partial(end, self._life))

    def kill(self, loop: Loop) -> None:
        """End it and all that it has started, and forget its pipes; idempotent."""
        if self._over:
            return
        self._over = True
        # sends nothing when it has been reaped
        self._process.kill()
        self._process.wait()
        for source in (self._life, *(output.pipe for output in self._outputs)):
            loop.forget(source)
            source.close()
        self._folder.cleanup()

    def failure(self, what: str, *, stdout: bool = True) -> HostError:
        """Return the error of a program that has failed, with the last line of words that it has written.

        Without `stdout`, only on stderr.
        """
        lines = (self._outputs[-1].text() or (self.stdout.text() if stdout else "")).splitlines()
        last = next((line for line in reversed(lines) if any(map(str.isalnum, line))), None)
        told = "" if last is None else f": {last.strip()[:_LINE_CHARS]}"
        return HostError(f"flow {self.task.flow}: {self.program}{what}{told}")

    def _make_folder(self) -> tempfile.TemporaryDirectory[str]:
        folder = None
        try:
            folder = tempfile.TemporaryDirectory(prefix="fadelab-program-")
            for name, content in self.task.command.files:
                (Path(folder.name) / name).write_bytes(content)
        except OSError as error:
            where = "a folder" if folder is None else folder.name
            if folder is not None:
                folder.cleanup()
            line = f"flow {self.task.flow}: {where} for {self.program} cannot be written: {_reason(error)}"
            raise HostError(line) from None
        return folder


def _path_of(task: Task) -> str:
    program = task.command.words[0]
    path = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if path is None:
        raise HostError(f"flow {task.flow} needs {program}, which is not installed: apt-get install {task.package}")
    return path


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _status(status: int) -> str:
    return f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"


class KernelPrograms(Programs):
    """The programs of the current namespace, on the agent's loop."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._running: list[_Process] = []

    @override
    def require(self, task: Task) -> None:
        _path_of(task)

    @override
    def serve(self, task: Task, ready: str) -> None:
        process = _Process(task, kept=KEPT_BYTES)
        self._running.append(process)
        pattern = re.compile(ready, re.MULTILINE)
        start = Loop()

        def end(status: int) -> None:
            raise process.failure(f" {_status(status)}")

        def end_during_run(status: int) -> None:
            raise process.failure(f", the server, {_status(status)}")

        def look() -> None:
            if pattern.search(process.stdout.text()):
                start.stop()

        def end_late(_: object) -> None:
            raise process.failure(f" does not listen after {READY_S:g} s")

        start.at(start.now + int(READY_S * 1e9), end_late)
        process.watch(start, end, look)
        start.run()
        process.watch(self._loop, end_during_run)

    @override
    def start(self, task: Task, until: int, done: Callable[[str], None]) -> Client:
        process = _Process(task)
        self._running.append(process)
        client = _Client(self._loop, process, done)
        self._loop.at(until, client.end_late)
        return client

    @override
    def close(self) -> None:
        while self._running:
            self._running.pop().kill(self._loop)


class _Client(Client):
    def __init__(self, loop: Loop, process: _Process, done: Callable[[str], None]) -> None:
        self._loop, self._process, self._done = loop, process, done
        self._over = False
        process.watch(loop, self._ended)

    @override
    def kill(self) -> None:
        self._over = True
        self._process.kill(self._loop)

    def end_late(self, _: object) -> None:
        """Its time is over."""
        if not self._over:
            raise self._process.failure(" has not ended in time, and was killed (patience_s)")

    def _ended(self, status: int) -> None:
        self._over = True
        if status:
            raise self._process.failure(f" {_status(status)}")
        try:
            self._done(self._process.stdout.text())
        except (ValueError, KeyError, TypeError, IndexError) as error:
            what = f" told no result ({type(error).__name__}: {error})"
            raise self._process.failure(what, stdout=False) from None
