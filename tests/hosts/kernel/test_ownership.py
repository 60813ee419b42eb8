"""Telling a killed run's leftovers from a live run, with made-up records and processes of our own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hosts.errors import HostError
from hosts.kernel.bpf import cgroups
from hosts.kernel.ownership import Leftover, Process, Registry, RunRecord, end_processes, start_time
from tests.hosts.harness import program

NOBODY = Process(pid=2**22 + 1, started=1)  # above the largest pid_max


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """A registry of its own whose namespaces are plain files, on a machine without control groups."""
    (tmp_path / "run").mkdir()
    (tmp_path / "netns").mkdir()

    def remove(self: Registry, name: str) -> None:
        (tmp_path / "netns" / name).unlink(missing_ok=True)

    monkeypatch.setattr(Registry, "remove_namespace", remove)
    monkeypatch.setattr(cgroups, "names", dict)
    return Registry(tmp_path / "run", tmp_path / "netns")


def put(tmp_path: Path, record: RunRecord) -> None:
    """A record with its namespaces."""
    (tmp_path / "run" / f"{record.run}.json").write_text(record.to_json())
    for name in record.namespaces:
        (tmp_path / "netns" / name).touch()


#: waits for the end of its stdin
WAITING = "import sys; print(flush=True); sys.stdin.read()"


def process(pid: int) -> Process:
    """A process that runs."""
    started = start_time(pid)
    assert started is not None
    return Process(pid, started)


def me() -> Process:
    return process(os.getpid())


def test_a_record_survives_json() -> None:
    record = RunRecord("a", Process(1, 2), ("fadelab-a-h1",), (Process(3, 4),))
    assert RunRecord.from_json(record.to_json()) == record


def test_a_process_is_more_than_its_pid() -> None:
    assert me().alive()
    assert not Process(os.getpid(), me().started + 1).alive()
    assert not NOBODY.alive()


def test_a_zombie_is_not_alive() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as zombie:
        assert os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT) is not None
        assert start_time(zombie.pid) is None


def test_a_live_run_is_no_leftover_and_is_not_cleaned(registry: Registry, tmp_path: Path) -> None:
    put(tmp_path, RunRecord("live", me(), ("fadelab-live-h1",)))
    assert registry.leftovers() == []
    assert registry.clean() == []
    assert (tmp_path / "netns" / "fadelab-live-h1").exists()


@pytest.mark.parametrize("owner", [NOBODY, Process(os.getpid(), 1)], ids=["dead", "pid reused"])
def test_a_dead_run_is_cleaned(registry: Registry, tmp_path: Path, owner: Process) -> None:
    put(tmp_path, RunRecord("dead", owner, ("fadelab-dead-h1", "fadelab-dead-st")))
    (tmp_path / "netns" / "somebody-elses").touch()
    expected = [Leftover("dead", ("fadelab-dead-h1", "fadelab-dead-st"), ())]
    assert registry.leftovers() == expected
    assert registry.clean() == expected
    assert [path.name for path in (tmp_path / "netns").iterdir()] == ["somebody-elses"]
    assert registry.leftovers() == []


def test_namespaces_without_a_record_are_found_by_name(registry: Registry, tmp_path: Path) -> None:
    (tmp_path / "netns" / "fadelab-my-run-h1").touch()
    (tmp_path / "netns" / "fadelab-my-run-st").touch()
    assert registry.leftovers() == [Leftover("my-run", ("fadelab-my-run-h1", "fadelab-my-run-st"), ())]


def test_cleaning_one_run_leaves_the_others(registry: Registry, tmp_path: Path) -> None:
    for run in ("a", "b"):
        put(tmp_path, RunRecord(run, NOBODY, (f"fadelab-{run}-h1",)))
    assert [leftover.run for leftover in registry.clean("a")] == ["a"]
    assert [leftover.run for leftover in registry.leftovers()] == ["b"]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"run": 1, "owner": {"pid": "x"}}'])
def test_a_damaged_record_is_a_leftover(registry: Registry, tmp_path: Path, text: str) -> None:
    (tmp_path / "run" / "odd.json").write_text(text)
    (tmp_path / "netns" / "fadelab-odd-h1").touch()
    assert registry.clean() == [Leftover("odd", ("fadelab-odd-h1",), ())]
    assert registry.leftovers() == []


def test_cleaning_ends_children_but_never_a_reused_pid(registry: Registry, tmp_path: Path) -> None:
    with program(WAITING) as (child, _), program(WAITING) as (bystander, _):
        known = process(child.pid)
        put(tmp_path, RunRecord("dead", NOBODY, (), (known, Process(bystander.pid, 1))))
        assert registry.clean() == [Leftover("dead", (), (known,))]
        assert child.wait(10) < 0
        assert bystander.poll() is None


def test_a_process_that_ignores_sigterm_is_killed() -> None:
    with program(f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {WAITING}") as (stubborn, _):
        end_processes([process(stubborn.pid)], timeout_s=0.1)
        assert stubborn.wait(10) == -9


def test_a_claimed_run_cannot_be_claimed_again(registry: Registry, tmp_path: Path) -> None:
    registry.claim("a", ["fadelab-a-h1"])
    with pytest.raises(HostError, match="run a exists already"):
        registry.claim("a", ["fadelab-a-h1"])
    registry.release("a")
    registry.release("a")
    (tmp_path / "netns" / "fadelab-a-h1").touch()
    with pytest.raises(HostError, match="namespace fadelab-a-h1 exists already"):
        registry.claim("a", ["fadelab-a-h1"])


def test_children_are_put_on_record(registry: Registry, tmp_path: Path) -> None:
    registry.claim("a", [])
    registry.add_child("a", os.getpid())
    registry.add_child("a", NOBODY.pid)
    raw = json.loads((tmp_path / "run" / "a.json").read_text())
    assert raw["children"] == [{"pid": me().pid, "started": me().started}]
    with pytest.raises(HostError, match="run b is not up"):
        registry.add_child("b", os.getpid())


#: a process that is killed while it writes a record
KILLED = """
import os, signal, sys
from pathlib import Path
from hosts.kernel.ownership import Registry

Path.replace = lambda self, target: os.kill(os.getpid(), signal.SIGKILL)
Registry(Path(sys.argv[1]), Path(sys.argv[2])).claim(sys.argv[3], ())
"""


def test_what_killed_processes_had_begun_to_write_does_not_add_up(registry: Registry, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    for run in ("a", "b"):
        command = [sys.executable, "-P", "-c", KILLED, str(folder), str(tmp_path / "netns"), run]
        assert subprocess.run(command, check=False).returncode == -9
    assert len([path for path in folder.iterdir() if path.name != ".lock"]) == 1
    # and is in nobody's way
    registry.claim("a", ())
    registry.release("a")
    assert [path.name for path in folder.iterdir()] == [".lock"]
