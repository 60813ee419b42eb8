"""Programs of others as processes in the current namespace.

Read first: `hosts/engine/programs.py`; pid_namespaces(7); prctl(2) for PR_SET_PDEATHSIG.

Rules kept

- Each program is the first process of a namespace of process ids. When it ends, the kernel ends all that it has
  started, in sessions of their own, too. The kernel kills it when the agent dies without `close`.
- It is signalled only while it has not been reaped: its number is nobody else's.
- What a program writes never blocks it: pipes are read as long as it lives. Of a server the last line is kept.
- A program gets the usual reactions to signals, which the agent ignores, and C as its language.
- It has an ordinary priority. In a machine in virtual time the processes of the run come before it: iperf3 polls its
  sockets at the end of a test, and with their priority would poll for ever.
"""

import ctypes
import os
import re
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from typing_extensions import override

from hosts.engine.programs import Client, Programs, Task
from hosts.errors import HostError
from hosts.kernel.namespaces import own_process_ids
from hosts.loop import READ, Loop

_PR_SET_PDEATHSIG: Final = 1
#: how long a server may take until it listens
_READY_S: Final = 10.0
_READ_BYTES: Final = 65_536
_LINE_CHARS: Final = 300
_PRCTL: Final = ctypes.CDLL(None).prctl


def _prepare() -> None:
    """Run in the child, before the program."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    _PRCTL(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


class _Process:
    """A program with its folder; stdout, and stderr behind it where `apart` is false."""

    def __init__(self, task: Task, *, apart: bool) -> None:
        self.task = task
        self.program = task.command.words[0]
        path = _path_of(task)
        # closed by `kill`
        self._folder = tempfile.TemporaryDirectory(prefix="fadelab-program-")
        for name, content in task.command.files:
            (Path(self._folder.name) / name).write_bytes(content)
        try:
            with own_process_ids():
                self._process = subprocess.Popen(
                    [path, *task.command.words[1:]],
                    cwd=self._folder.name,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE if apart else subprocess.STDOUT,
                    start_new_session=True,
                    preexec_fn=_prepare,
                    env={**os.environ, "LC_ALL": "C"},
                )
        except OSError as error:
            self._folder.cleanup()
            raise HostError(f"flow {task.flow}: {self.program} cannot be started: {error.strerror}") from None
        assert self._process.stdout is not None
        self.stdout = self._process.stdout
        self.stderr = self._process.stderr
        self.over = False

    def wait(self) -> int:
        """Return the status of a process whose output has ended."""
        try:
            return self._process.wait(_READY_S)
        except subprocess.TimeoutExpired:
            # it has closed its output and goes on
            self._process.kill()
            return self._process.wait()

    def kill(self, loop: Loop) -> None:
        """End it and all that it has started, and forget its pipes; idempotent."""
        if self.over:
            return
        self.over = True
        # sends nothing when it has been reaped
        self._process.kill()
        self._process.wait()
        for pipe in (self.stdout, self.stderr):
            if pipe is not None:
                loop.forget(pipe)
                pipe.close()
        self._folder.cleanup()

    def failure(self, what: str, output: bytes) -> HostError:
        """Return the error of a program that has failed."""
        lines = output.decode(errors="replace").strip().splitlines()
        last = f": {lines[-1].strip()[:_LINE_CHARS]}" if lines else ""
        return HostError(f"flow {self.task.flow}: {self.program}{what}{last}")


def _path_of(task: Task) -> str:
    program = task.command.words[0]
    path = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if path is None:
        raise HostError(f"flow {task.flow} needs {program}, which is not installed: apt-get install {task.package}")
    return path


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
        process = _Process(task, apart=False)
        self._running.append(process)
        pattern, output = re.compile(ready, re.MULTILINE), b""
        deadline = time.monotonic() + _READY_S
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while pattern.search(output.decode(errors="replace")) is None:
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    raise process.failure(f" does not listen after {_READY_S:g} s", output)
                if not selector.select(left_s):
                    continue
                data = os.read(process.stdout.fileno(), _READ_BYTES)
                if not data:
                    raise process.failure(f" {_status(process.wait())}", output)
                output += data
        self._loop.watch(process.stdout, READ, lambda: self._drain(process))

    @override
    def start(self, task: Task, until: int, done: Callable[[str], None]) -> Client:
        process = _Process(task, apart=True)
        self._running.append(process)
        client = _Client(self._loop, process, done)
        self._loop.at(until, client.end_late)
        return client

    @override
    def close(self) -> None:
        while self._running:
            self._running.pop().kill(self._loop)

    def _drain(self, process: _Process) -> None:
        data = os.read(process.stdout.fileno(), _READ_BYTES)
        if not data:
            self._loop.forget(process.stdout)
            raise process.failure(f", the server, {_status(process.wait())}", b"")


class _Client(Client):
    def __init__(self, loop: Loop, process: _Process, done: Callable[[str], None]) -> None:
        self._loop, self._process, self._done = loop, process, done
        self._output = self._errors = b""
        assert process.stderr is not None
        #: pipes that have not ended
        self._open = 2
        self._over = False
        loop.watch(process.stdout, READ, self._read_output)
        loop.watch(process.stderr, READ, self._read_errors)

    @override
    def kill(self) -> None:
        self._over = True
        self._process.kill(self._loop)

    def end_late(self, _: object) -> None:
        """Its time is over."""
        if not self._over:
            raise self._process.failure(" has not ended in time, and was killed (patience_s)", self._errors)

    def _read_output(self) -> None:
        data = os.read(self._process.stdout.fileno(), _READ_BYTES)
        self._output += data
        if not data:
            self._loop.forget(self._process.stdout)
            self._ended()

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        data = os.read(self._process.stderr.fileno(), _READ_BYTES)
        self._errors += data
        if not data:
            self._loop.forget(self._process.stderr)
            self._ended()

    def _ended(self) -> None:
        self._open -= 1
        if self._open:
            return
        status = self._process.wait()
        self._over = True
        if status:
            raise self._process.failure(f" {_status(status)}", self._errors or self._output)
        try:
            self._done(self._output.decode(errors="replace"))
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise self._process.failure(f" told no result ({type(error).__name__}: {error})", self._errors) from None
