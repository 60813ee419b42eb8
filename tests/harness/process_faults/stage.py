"""What the cases share: a folder, a seeded generator, runs of the command line, and a look at what they have left."""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any, Final, TypeVar

from dashboard.store import Store
from hosts.errors import HostError
from hosts.kernel.ownership import Registry
from telemetry.parquet import read_records
from testbed.cli import app
from testbed.scenario.schema import Scenario
from tests.harness.checked import RuleBrokenError
from tests.harness.live_runs import crossed_bytes, left_behind, records_of, running, start
from tests.harness.scenarios import scenario, written

T = TypeVar("T")
#: the processes of a run, in the order in which it starts them
CHILDREN: Final = ("host h1", "host h2", "split", "station st", "station bas")
#: seconds: what comes, comes before; and what a run takes from its last fault to its end at the most
PATIENCE_S, END_S = 120.0, 150.0
#: schemes and TCPs that cases draw from
SCHEMES: Final = ("none", "slacp", "arq", "snoop", "slacp-adaptive")
TCPS: Final = ("cubic", "reno", "user:sack", "user:bbr3")


@dataclass(frozen=True)
class Case:
    """One fault, and the statement that must hold; `live` raises RuleBrokenError where it does not."""

    name: str
    statement: str
    live: "Callable[[Stage], None]"


class BusyError(Exception):
    """The run did not come to its fault, because this machine was too busy to start it in time."""


def require(holds: object, what: object) -> None:
    if not holds:
        raise RuleBrokenError(" ".join(str(what).split()))


def wait_for(what: Callable[[], T | None], explain: str, seconds: float = PATIENCE_S) -> T:
    """What `what()` gives once it gives something."""
    give_up_at = time.monotonic() + seconds
    while not (found := what()):
        require(time.monotonic() < give_up_at, f"not within {seconds:.0f} s: {explain}")
        time.sleep(0.02)
    return found


@dataclass(frozen=True)
class End:
    """How a command has ended."""

    status: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """Its last line of error."""
        return self.err.strip().rpartition("\n")[2]

    def __str__(self) -> str:
        return f"status {self.status}: {self.out} {self.err}"


@dataclass
class Command:
    """A command under way."""

    process: "subprocess.Popen[str]"
    began: float = field(default_factory=time.monotonic)

    @property
    def pid(self) -> int:
        return self.process.pid

    def require_under_way(self) -> None:
        """Raise BusyError or RuleBrokenError when it has ended."""
        if self.process.poll() is not None:
            end = self.end()
            if "not ready after" in end.err:
                raise BusyError(end.complaint)
            raise RuleBrokenError(f"ended early: {end}")

    def children(self, count: int) -> list[int]:
        """The pids of the run's processes, in the order of `CHILDREN`, once all are on record."""

        def up() -> list[int]:
            self.require_under_way()
            pids = [child["pid"] for record in records_of(self.pid) for child in record["children"]]
            return pids if len(pids) >= count else []

        return wait_for(up, "the processes of the run")

    def wait_crossed(self, octets: int) -> None:
        """Wait until so much has crossed the link."""

        def crossed() -> bool:
            self.require_under_way()
            # its namespaces go when it ends
            with suppress(HostError):
                return crossed_bytes(self.process) > octets
            return False

        wait_for(crossed, f"{octets} octets crossed")

    def end(self, seconds: float = END_S) -> End:
        """Wait for its end."""
        try:
            out, err = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            _, err = self.process.communicate()
            raise RuleBrokenError(f"not at its end after {seconds:.0f} s: {err}") from None
        return End(self.process.returncode, out, err)


class Stage:
    """A case's surroundings: `folder` is its own, `rng` its only source of chance."""

    def __init__(self, folder: Path, rng: Random) -> None:
        self.folder, self.rng = folder, rng
        self.runs = folder / "runs"
        self.stack = ExitStack()
        self._commands: list[Command] = []
        self._children: set[int] = set()
        self._shared = set(Path("/dev/shm").iterdir())

    def scenario(self, **changes: Any) -> Scenario:
        """A live scenario of a lossy link; `changes` as in `tests.harness.scenarios`."""
        values: dict[str, Any] = {
            "tier": "emulated",
            "seed": self.rng.randrange(1, 1000),
            "tcp": self.rng.choice(TCPS),
            "link": {"scheme": self.rng.choice(SCHEMES)},
            "channel": {"rate_bps": 2_000_000, "delay_ms": 10, "per": 0.02},
            "workloads": [{"kind": "bulk", "bytes": 500_000}],
            "limit_s": 60,
        }
        return scenario(**{**values, **changes})

    def endless(self, **changes: Any) -> Scenario:
        """One whose transfer ends by its fault only."""
        return self.scenario(**{"workloads": [{"kind": "bulk", "duration_s": 600}], "limit_s": 600, **changes})

    def run(self, made: Scenario, *args: str | Path, out: Path | None = None, **options: Any) -> Command:
        """Start `fadelab run` of a scenario, which may be late, in a session of its own."""
        path = written(self.folder / f"scenario-{len(self._commands)}.yaml", made)
        return self.command("run", path, "--allow-late", "--json", "--out", out or self.runs, *args, **options)

    def command(self, *args: str | Path, **options: Any) -> Command:
        """Start a command of `fadelab`."""
        command = Command(start(*args, start_new_session=True, **options))
        self._commands.append(command)
        return command

    def note(self, pids: list[int]) -> list[int]:
        """Take processes that must not outlive the case; returns them."""
        self._children.update(pids)
        return pids

    def folders(self) -> list[Path]:
        """The folders of the runs so far."""
        return sorted(path for path in self.runs.glob("*") if path.is_dir() and not path.name.startswith("."))

    @property
    def only(self) -> Path:
        """The folder of the one run."""
        [folder] = self.folders()
        return folder

    def clean(self, owner: int) -> None:
        """Remove what the killed runs of a process have left, as `fadelab clean` does for all."""
        registry = Registry()
        for left in registry.leftovers():
            if left.run.startswith(f"{owner}-"):
                registry.clean(left.run)

    def left(self) -> list[str]:
        """What the commands have left: namespaces, records, control groups, processes, shared memory."""
        owners = [command.pid for command in self._commands]
        found = [name for owner in owners for name in left_behind(owner)]
        found += [str(left) for left in Registry().leftovers() if left.run.partition("-")[0] in map(str, owners)]
        found += [f"process {pid}" for pid in running(sorted(self._children))]
        new = set(Path("/dev/shm").iterdir()) - self._shared
        return found + [str(path) for path in new if any(str(owner) in path.name for owner in owners)]

    def close(self) -> None:
        """End what is still running, and remove what is left."""
        self.stack.close()
        for command in self._commands:
            if command.process.poll() is None:
                os.killpg(command.pid, signal.SIGKILL)
                command.process.communicate()
            self.clean(command.pid)


def named(pids: list[int]) -> dict[str, int]:
    """The pids of a run's processes by name; `split` is among them where there is one more than without."""
    names = [name for name in CHILDREN if name != "split" or len(pids) == len(CHILDREN)]
    return dict(zip(names, pids, strict=True))


def outcome(case: Case, folder: Path, seed: int) -> str:
    """Live through a case; return what was wrong, empty when nothing was. Raises BusyError when it did not begin."""
    stage = Stage(folder, Random(f"{case.name} {seed}"))
    try:
        case.live(stage)
        # a process that was killed is gone a moment later
        wait_for(lambda: not stage.left(), "nothing left", 5.0)
    except RuleBrokenError as error:
        return f"{error} (left: {', '.join(stage.left()) or 'nothing'})"
    finally:
        stage.close()
    return ""


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Stop a process, and let it go on at the end."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


# -- what must hold ------------------------------------------------------------------------------------------


def require_whole(end: End, folder: Path) -> dict[str, Any]:
    """A run that has ended well: its transfers arrived as they were sent, and its records are there. Returns it."""
    if "not ready after" in end.err:
        raise BusyError(end.complaint)
    require(end.status == 0, end)
    result: dict[str, Any] = json.loads(end.out)
    require(result["finished"] and result["intact"], f"finished {result['finished']}, intact {result['intact']}")
    require(json.loads((folder / "summary.json").read_text())["goodput_bps"] == result["goodput_bps"], "summary.json")
    require_records(folder)
    return result


def require_records(folder: Path) -> None:
    """The records of both sides of the link and of the senders are readable, and in order of time."""
    for measurement, key, values in (("link", "link", ("up", "down")), ("station", "station", ("st", "bas"))):
        for value in values:
            times = [row["time_ns"] for row in read_records(folder, measurement) if row[key] == value]
            require(times and times == sorted(times), f"records of {measurement} {value}: {len(times)}")


def require_failed(end: End, line: str) -> None:
    """A command that ends with status 2 and one line of this pattern, after lines of progress at most."""
    require(end.status == 2 and not end.out, end)
    lines = [line for line in end.err.splitlines() if not re.match(r"sample \S+ seed \d+: |warning: ", line)]
    require(len(lines) == 1 and re.fullmatch(f"fadelab: {line}", lines[0]), end)


def require_reported(folder: Path) -> None:
    """A run without a result says so: in the list of runs, and to those who ask for its lost packets."""
    require(not (folder / "summary.json").exists(), "a run that failed has a result")
    [row] = [row for row in Store([folder.parent]).rows() if row.name == folder.name]
    require(row.problem, f"{folder.name} is listed without a problem")
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()) as said:
        status = app.main(["explain", str(folder), "--json"])
    require(status in (0, 2) and "internal error" not in said.getvalue(), said.getvalue())
