"""Runs tests against faults: each in a copy of the tracked files, several at a time.

A run is a fork of this process, which has imported pytest and the other large libraries already, but nothing of the
program.
"""

import ctypes
import importlib
import os
import re
import resource
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import pytest
from typing_extensions import override

T = TypeVar("T")

#: pytest's exit statuses (pytest.ExitCode)
_PASSED, _FAILED = 0, 1
#: address space of one run: a loop that a fault made endless must not take the machine's memory
_MEMORY_BYTES = 4 << 30
#: pytest's short summary: the test ends where the reason begins
_BLAMED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
#: libraries without threads of their own
_LARGE = ("hypothesis.strategies", "numpy", "pydantic", "yaml", "xdist", "pytest_timeout", "pytest_rerunfailures")
_PR_SET_PDEATHSIG = 1

KILLED, SURVIVED, ERROR = "killed", "survived", "error"
#: exit status of a run that could not make its fault without an import
IMPORT = 98


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one fault, or of the tests without any."""

    verdict: str
    seconds: float
    #: the test that has failed, or what went wrong
    by: str


@dataclass(frozen=True, slots=True)
class Job(Generic[T]):
    """Tests to be run with a file changed; `what` is the caller's."""

    what: T
    #: changed file and its text; None: no change
    file: str | None
    text: str
    #: pytest's arguments
    tests: Sequence[str]
    #: processor time and wall clock after which the run has hung
    cpu_s: int
    wall_s: float
    #: recorded processor time of each test
    seconds: Sequence[float] = ()
    #: plugins for pytest
    plugins: Sequence[object] = ()


class Place:
    """Where one run at a time writes its output."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()

    def put(self, file: str | None, text: str) -> None:
        """Make ready for a run with this file changed."""


class _Copy(Place):
    """The tracked files in a folder of their own, with one of them changed at a time."""

    def __init__(self, root: Path, path: Path) -> None:
        super().__init__(path)
        self._root = root
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True, text=True)
        files = [name for name in listed.stdout.split("\0") if name and (root / name).is_file()]
        subprocess.run(["cp", "--parents", "--no-dereference", *files, str(path)], cwd=root, check=True)
        built = root / ".build"
        for name in ("native", "vusrp"):
            if (built / name).exists():
                (path / ".build").mkdir(exist_ok=True)
                (path / ".build" / name).symlink_to((built / name).resolve())
        self._changed: str | None = None
        self._changes = 0

    @override
    def put(self, file: str | None, text: str) -> None:
        # the last change is undone
        for name, content in ((self._changed, None), (file, text)):
            if name is not None:
                path = self.path / name
                path.write_text(
                    (self._root / name).read_text(encoding="utf-8") if content is None else content, "utf-8"
                )
                # bytecode belongs to a time of change, in seconds
                self._changes += 1
                os.utime(path, (self._changes, self._changes))
        self._changed = file


class Bench:
    """Runs jobs, `workers` at a time, in copies below `folder`; `stop` by leaving the generator."""

    def __init__(self, root: Path, folder: Path, workers: int) -> None:
        self._root = root
        self._places: Sequence[Place] = [_Copy(root, folder / str(number)) for number in range(workers)]
        for name in _LARGE:
            importlib.import_module(name)

    def work(self, path: Path, job: Job[T]) -> int:
        """Do a job in a process of its own; return its exit status."""
        return _pytest(path, self._root, job)

    def run(self, jobs: Iterator[Job[T]]) -> Iterator[tuple[Job[T], Outcome]]:
        """Yield each job with its outcome, as they end."""
        running: dict[int, tuple[Place, Job[T], int, float]] = {}
        free = list(self._places)
        try:
            while True:
                while free and (job := next(jobs, None)) is not None:
                    place = free.pop()
                    place.put(job.file, job.text)
                    pid = _fork(lambda place=place, job=job: self.work(place.path, job))  # type: ignore[misc]
                    running[os.pidfd_open(pid)] = place, job, pid, time.monotonic()
                if not running:
                    return
                ended, _, _ = select.select(list(running), [], [], 1.0)
                for handle, (place, job, pid, began) in list(running.items()):
                    seconds = time.monotonic() - began
                    if handle not in ended and seconds < job.wall_s:
                        continue
                    status = _end(pid)
                    os.close(handle)
                    del running[handle]
                    free.append(place)
                    output = (place.path / "pytest.out").read_text(errors="replace")
                    yield job, judge(status if handle in ended else -signal.SIGKILL, output, seconds)
        finally:
            for handle, (_, _, pid, _) in running.items():
                _end(pid)
                os.close(handle)


def _fork(call: Callable[[], int]) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        os._exit(call())
    except BaseException:
        traceback.print_exc()
        os._exit(99)


def become_run(folder: Path, memory_bytes: int = _MEMORY_BYTES) -> None:
    """Make this process, a new one, a session of its own with its output in a folder, which ends with its parent."""
    os.setsid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with (folder / "pytest.out").open("wb") as output, Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
        for stream in (1, 2):
            os.dup2(output.fileno(), stream)
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))


def _pytest(copy: Path, root: Path, job: Job[T]) -> int:
    """Run pytest in this process, a new one; return its exit status."""
    become_run(copy)
    os.chdir(copy)
    resource.setrlimit(resource.RLIMIT_CPU, (job.cpu_s, job.cpu_s))
    bytecode = str(copy / ".build" / "pycache")
    sys.pycache_prefix = bytecode
    os.environ |= {"PYTHONPATH": str(copy), "FADELAB_ROOT": str(copy), "PYTHONPYCACHEPREFIX": bytecode}
    os.environ["FADELAB_PURE"] = "1"
    sys.path[:] = [str(copy), *(each for each in sys.path if each not in ("", str(root)))]
    for name in [each for each in sys.modules if each.partition(".")[0] == "tests"]:
        del sys.modules[name]
    # pytest cannot rewrite the assertions of plugins that are imported already
    options = ["-x", "-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    status = pytest.main([*options, *job.tests], plugins=list(job.plugins))
    sys.stdout.flush()
    return int(status)


def _end(pid: int) -> int:
    """Kill a run that has not ended, and what it has left behind; return its exit status, below 0 for a signal."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def judge(status: int, output: str, seconds: float) -> Outcome:
    """Say what a run's exit status and pytest's output mean."""
    if status == _PASSED:
        return Outcome(SURVIVED, seconds, "")
    if status == _FAILED:
        blamed = _BLAMED.search(output)
        return Outcome(KILLED, seconds, blamed[1] if blamed else "a test pytest does not name")
    if status in (-signal.SIGKILL, -signal.SIGXCPU):
        return Outcome(KILLED, seconds, "no end in time")
    if status == IMPORT:
        return Outcome(ERROR, seconds, "import")
    last = output.strip().rsplit("\n", 1)[-1]
    return Outcome(ERROR, seconds, f"pytest ended with {status}: {last}")
