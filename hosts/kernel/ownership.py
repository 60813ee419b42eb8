"""Records of the owners of namespaces and control groups, to find the leftovers of killed runs.

Read first: proc_pid_stat(5) (field 22, starttime), pidfd_open(2), flock(2).

Rules kept
- A process is named by pid *and* start time, so a reused pid is never taken for the earlier process.
- A run's record is written atomically before its first namespace and removed after its last one: so a `fadelab-*`
  namespace without a record has no owner.
- While the owner of a run is alive, nothing of the run is changed.

Left out: unregistered child processes; they end when their stdin closes.
"""

import fcntl
import json
import os
import select
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from hosts.errors import HostError
from hosts.kernel.bpf import cgroups
from hosts.kernel.namespaces import NETNS_DIR, PREFIX

RUN_DIR = Path("/run/fadelab")
#: time that a leftover process may take to end after SIGTERM, and again after SIGKILL
END_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class Process:
    """Identifies a process: its pid and its start time (clock ticks since boot)."""

    pid: int
    started: int

    def alive(self) -> bool:
        """Whether this very process still runs; a zombie does not."""
        return start_time(self.pid) == self.started


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The content of `/run/fadelab/<run>.json`."""

    run: str
    owner: Process
    namespaces: tuple[str, ...]
    children: tuple[Process, ...] = ()

    def to_json(self) -> str:
        """Return the record as one JSON object."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "RunRecord":
        """Parse `to_json`'s text; raises ValueError for other text."""
        from pydantic import TypeAdapter  # slow to import

        return TypeAdapter(cls).validate_json(text)


@dataclass(frozen=True, slots=True)
class Leftover:
    """The leftovers of one dead run: namespaces, running processes, and control group."""

    run: str
    namespaces: tuple[str, ...]
    processes: tuple[Process, ...]
    group: str | None = None

    def __str__(self) -> str:
        """Describe the leftovers in one line."""
        parts = [f"network namespaces {', '.join(self.namespaces)}"] if self.namespaces else []
        if self.processes:
            parts.append(f"processes {', '.join(str(process.pid) for process in self.processes)}")
        if self.group is not None:
            parts.append(f"control group {self.group}")
        return f"run {self.run}: {'; '.join(parts) or 'its record'}"


def start_time(pid: int) -> int | None:
    """Return the start time of a process in clock ticks since boot; None for a zombie or a missing process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # the command name, in parentheses, may contain blanks and parentheses
    fields = stat[stat.rindex(")") + 2 :].split()
    return None if fields[0] in "ZX" else int(fields[19])


class Registry:
    """The records of all runs on this machine."""

    def __init__(self, run_dir: Path = RUN_DIR, netns_dir: Path = NETNS_DIR) -> None:
        self._run_dir = run_dir
        self._netns_dir = netns_dir

    def claim(self, run: str, namespaces: Iterable[str]) -> None:
        """Record that the calling process owns these namespaces, which must not exist yet.

        Raises HostError when the run or one of its namespaces exists already.
        """
        names = tuple(namespaces)
        started = start_time(os.getpid())
        assert started is not None, "the calling process exists"
        with self._locked():
            taken = [name for name in names if (self._netns_dir / name).exists()]
            if taken:
                raise HostError(
                    f"network namespace {taken[0]} exists already: run {run} is still up or was killed; "
                    "use another run name or `fadelab clean`"
                )
            if self._path(run).exists():
                raise HostError(f"run {run} exists already: use another run name or `fadelab clean`")
            self._write(RunRecord(run, Process(os.getpid(), started), names))

    def add_child(self, run: str, pid: int) -> None:
        """Record a process that must not outlive the run; one that has ended already is ignored."""
        started = start_time(pid)
        if started is None:
            return
        with self._locked():
            record = self._read(self._path(run))
            if record is None:
                raise HostError(f"run {run} is not up")
            self._write(replace(record, children=(*record.children, Process(pid, started))))

    def release(self, run: str) -> None:
        """Forget a run whose namespaces are gone; unknown runs are ignored."""
        with suppress(FileNotFoundError):
            self._path(run).unlink()

    def leftovers(self) -> list[Leftover]:
        """Return the leftovers of killed runs, by run name; changes nothing."""
        if not self._run_dir.exists() and not self._ours() and not cgroups.names():
            return []
        with self._locked():
            return self._find()

    def clean(self, run: str | None = None) -> list[Leftover]:
        """Remove the leftovers of one run or of all: processes, namespaces, records; return them.

        Raises HostError when the rights are missing or a process does not end.
        """
        if not self._run_dir.exists() and not self._ours() and not cgroups.names():
            return []
        with self._locked():
            found = [leftover for leftover in self._find() if run in (None, leftover.run)]
            end_processes(process for leftover in found for process in leftover.processes)
            for leftover in found:
                for name in leftover.namespaces:
                    self.remove_namespace(name)
                if leftover.group is not None:
                    cgroups.remove(leftover.group)
                self.release(leftover.run)
            return found

    def remove_namespace(self, name: str) -> None:
        """Delete one namespace's name, and with it (once no process is inside) all its links; idempotent."""
        path = self._netns_dir / name
        if not path.exists():
            return
        from pyroute2 import netns  # the import takes 200 ms

        try:
            netns.remove(str(path))
        except PermissionError:
            raise HostError(f"cannot remove network namespace {name}: run with sudo or as root") from None

    def _find(self) -> list[Leftover]:
        present = self._ours()
        known: set[str] = set()
        found: dict[str, Leftover] = {}
        for path in sorted(self._run_dir.glob("*.json")):
            run = path.stem
            record = self._read(path)
            if record is None:
                # records are written atomically, so this file is damaged: only its name is valid
                names = tuple(name for name in present if name.rpartition("-")[0] == PREFIX + run)
                found[run] = Leftover(run, names, ())
            else:
                names = tuple(name for name in record.namespaces if name in present)
                if not record.owner.alive():
                    children = tuple(child for child in record.children if child.alive())
                    found[run] = Leftover(run, names, children)
            known.update(names)
        for name in present:
            if name not in known:
                run = name.removeprefix(PREFIX).rpartition("-")[0]
                before = found.get(run, Leftover(run, (), ()))
                found[run] = replace(before, namespaces=(*before.namespaces, name))
        for name, populated in cgroups.names().items():
            run = name.removeprefix(PREFIX)
            # a host on its own has a group and no record
            if run in found or not (populated or self._path(run).exists()):
                found[run] = replace(found.get(run, Leftover(run, (), ())), group=name)
        return [found[run] for run in sorted(found)]

    def _ours(self) -> list[str]:
        if not self._netns_dir.exists():
            return []
        return sorted(path.name for path in self._netns_dir.iterdir() if path.name.startswith(PREFIX))

    def _path(self, run: str) -> Path:
        return self._run_dir / f"{run}.json"

    def _read(self, path: Path) -> RunRecord | None:
        try:
            return RunRecord.from_json(path.read_text())
        except (OSError, ValueError):
            return None

    def _write(self, record: RunRecord) -> None:
        path = self._path(record.run)
        # one for all, under the lock: that of a process which was killed here is written over
        draft = self._run_dir / ".draft"
        draft.write_text(record.to_json() + "\n")
        draft.replace(path)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self._run_dir.mkdir(parents=True, exist_ok=True)
            handle = (self._run_dir / ".lock").open("w")
        except OSError as error:
            raise HostError(f"cannot write {self._run_dir}: {error.strerror}; run with sudo or as root") from None
        with handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield


def end_processes(processes: Iterable[Process], timeout_s: float = END_TIMEOUT_S) -> None:
    """End processes by SIGTERM and, after the timeout, by SIGKILL.

    The pidfd is opened before the start time is compared, so a reused pid gets no signal.
    Raises HostError when rights are missing or a process does not end.
    """
    waiting: dict[int, Process] = {}
    try:
        for process in processes:
            try:
                pidfd = os.pidfd_open(process.pid)
            except ProcessLookupError:
                continue
            if process.alive():
                waiting[pidfd] = process
            else:
                os.close(pidfd)
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pidfd in waiting:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(pidfd, number)
            _wait_ended(waiting, timeout_s)
        if waiting:
            raise HostError(f"process {next(iter(waiting.values())).pid} does not end: end it by hand")
    except PermissionError:
        raise HostError("cannot end a leftover process: run with sudo or as root") from None
    finally:
        for pidfd in waiting:
            os.close(pidfd)


def _wait_ended(waiting: dict[int, Process], timeout_s: float) -> None:
    poller = select.poll()
    for pidfd in waiting:
        poller.register(pidfd, select.POLLIN)
    give_up_at = time.monotonic() + timeout_s
    while waiting and (left_s := give_up_at - time.monotonic()) > 0:
        for pidfd, _ in poller.poll(left_s * 1000):
            poller.unregister(pidfd)
            os.close(pidfd)
            del waiting[pidfd]
