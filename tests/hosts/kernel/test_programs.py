"""Programs of others: what starts, ends, fails and hangs, with shells as programs."""

import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from hosts.engine.programs import Command, ProgramEnd, Task
from hosts.engine.results import Told
from hosts.errors import HostError
from hosts.kernel import programs as kernel_programs
from hosts.kernel.programs import KEPT_BYTES, KernelPrograms
from hosts.loop import Loop
from hosts.workloads.programs import Place
from hosts.workloads.programs.curl import PROGRAM as CURL
from hosts.workloads.programs.iperf3 import PROGRAM as IPERF3
from tests.harness.influxd import free_port
from tests.harness.waiting import PATIENCE_S, wait_for
from tests.hosts.harness import needs_network

# the kernel gives namespaces to root only
pytestmark = needs_network


def shell(script: str, **files: bytes) -> Task:
    command = Command(words=("sh", "-c", script), files=tuple(files.items()))
    return Task(flow="a flow", command=command, package="dash")


@contextmanager
def programs() -> Iterator[tuple[Loop, KernelPrograms]]:
    loop = Loop()
    made = KernelPrograms(loop)
    try:
        yield loop, made
    finally:
        made.close()


def run(task: Task, patience_s: float = PATIENCE_S) -> list[str]:
    """The outputs that a client's run tells."""
    told: list[str] = []
    with programs() as (loop, made):

        def done(output: str) -> None:
            told.append(output)
            loop.stop()

        made.start(task, loop.refresh() + int(patience_s * 1e9), done)
        loop.run()
    return told


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def lingering(folder: Path, then: str = "wait") -> str:
    """A script with a child, and one that has left its session; all are in `folder`."""
    return f"cd {folder}; sleep 1000 & setsid sleep 1000 & {then}"


def inside(folder: Path) -> list[int]:
    """The processes whose working directory is `folder`."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cwd").readlink() == folder:
                found.append(int(process.name))
    return found


def all_inside(folder: Path, scripts: int = 1) -> list[int]:
    """The processes of `lingering` once all have begun."""
    found = inside(folder)
    return found if sum(is_a(pid, "sleep") for pid in found) == 2 * scripts else []


def is_a(pid: int, program: str) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() == program
    except OSError:
        return False


def test_a_client_tells_its_output_and_has_its_files() -> None:
    assert run(shell("cat greeting; echo noise >&2", greeting=b"hello\n")) == ["hello\n"]


def test_a_long_output_blocks_nothing() -> None:
    [output] = run(shell("head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2"))
    assert len(output) == 1_000_000


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ("echo first; echo broken >&2; exit 3", "a flow: sh ended with status 3: broken$"),
        ("echo told on stdout; exit 1", "a flow: sh ended with status 1: told on stdout$"),
    ],
)
def test_a_crash_of_a_client_is_one_line(script: str, line: str) -> None:
    with pytest.raises(HostError, match=line):
        run(shell(script))


def test_a_client_that_is_killed_is_one_line(tmp_path: Path) -> None:
    with programs() as (loop, made):
        task = shell(f"cd {tmp_path}; exec sleep 1000")
        made.start(task, loop.refresh() + int(PATIENCE_S * 1e9), lambda output: None)
        [pid] = wait_for(lambda: [pid for pid in inside(tmp_path) if is_a(pid, "sleep")])
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(HostError, match=r"a flow: sh was killed by SIGKILL$"):
            loop.run()


def test_a_client_that_hangs_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    with programs() as (loop, made):
        made.start(shell(lingering(tmp_path)), loop.refresh() + int(1e9), lambda output: None)
        found = wait_for(lambda: all_inside(tmp_path))
        line = r"a flow: sh has not ended in time, and was killed \(patience_s\)$"
        with pytest.raises(HostError, match=line):
            loop.run()
    assert not any(map(is_running, found))


def test_a_client_that_ends_leaves_nothing(tmp_path: Path) -> None:
    with programs() as (loop, made):
        task = shell(lingering(tmp_path, "echo told"))
        made.start(task, loop.refresh() + int(PATIENCE_S * 1e9), lambda output: loop.stop())
        loop.run()
        assert not inside(tmp_path)


def test_a_killed_agent_leaves_no_process(tmp_path: Path) -> None:
    agent = f"""
from hosts.kernel.programs import KernelPrograms
from hosts.loop import Loop
from tests.hosts.kernel.test_programs import shell
loop = Loop()
programs = KernelPrograms(loop)
programs.serve(shell({"echo listens; " + lingering(tmp_path)!r}), "listens")
programs.start(shell({lingering(tmp_path)!r}), loop.refresh() + 10**12, print)
loop.run()
"""
    # it leaves the folders of its programs
    folders = tmp_path / "folders"
    folders.mkdir()
    with subprocess.Popen((sys.executable, "-c", agent), env={**os.environ, "TMPDIR": str(folders)}) as running:
        found = wait_for(lambda: all_inside(tmp_path, 2))
        running.kill()
    assert wait_for(lambda: not any(map(is_running, found)))


def test_what_the_agent_starts_later_is_in_its_own_namespace() -> None:
    with programs() as (_, made):
        made.serve(shell("echo listens; sleep 1000"), "listens")
        ours = Path("/proc/self/ns")
        assert (ours / "pid_for_children").readlink() == (ours / "pid").readlink()
        with subprocess.Popen(("sh", "-c", "echo $$"), stdout=subprocess.PIPE) as child:
            output, _ = child.communicate()
        assert int(output) == child.pid


def test_a_missing_program_is_one_line() -> None:
    task = Task(flow="a flow", command=Command(words=("no-such-program",)), package="no-such-package")
    line = "^flow a flow needs no-such-program, which is not installed: apt-get install no-such-package$"
    with programs() as (_, made):
        with pytest.raises(HostError, match=line):
            made.require(task)
        with pytest.raises(HostError, match=line):
            made.serve(task, "ready")


def test_a_server_is_awaited_until_its_line_and_ends_with_its_children(tmp_path: Path) -> None:
    with programs() as (_, made):
        began = time.monotonic()
        made.serve(shell("sleep 0.5; echo it listens; " + lingering(tmp_path)), "listens$")
        assert time.monotonic() - began >= 0.5
        found = wait_for(lambda: all_inside(tmp_path))
    assert not any(map(is_running, found))


def test_a_server_that_ends_before_it_listens_is_one_line() -> None:
    with programs() as (_, made), pytest.raises(HostError, match=r"flow a flow: sh ended with status 4: no port$"):
        made.serve(shell("echo no port; exit 4"), "listens")


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ("echo listens; exit 5", "ended with status 5: listens$"),
        # what it says during the run, and more of it than is kept
        (
            f"echo listens; head -c {2 * KEPT_BYTES} /dev/zero | tr '\\0' x; echo; echo no memory >&2; echo; exit 6",
            "ended with status 6: no memory$",
        ),
        # it closes its output, and goes on for a moment
        ("echo listens; exec >&- 2>&-; sleep 0.5; exit 7", "ended with status 7: listens$"),
    ],
    ids=["at once", "long output", "closed output"],
)
def test_a_server_that_ends_during_the_run_is_one_line(script: str, line: str) -> None:
    with programs() as (loop, made):
        made.serve(shell(script), "listens")
        with pytest.raises(HostError, match=f"^flow a flow: sh, the server, {line}"):
            loop.run()


def test_a_server_that_never_listens_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_programs, "READY_S", 0.5)
    line = r"^flow a flow: sh does not listen after 0\.5 s: still loading$"
    with programs() as (_, made), pytest.raises(HostError, match=line):
        # also when it has closed its output
        made.serve(shell("echo still loading; exec >&- 2>&-; exec sleep 1000"), "listens")


def test_a_client_that_closes_its_output_stops_nothing() -> None:
    """The loop goes on while it lives, and its status counts."""
    turns = []
    with programs() as (loop, made):

        def tick(_: object) -> None:
            turns.append(loop.now)
            loop.at(loop.now + 50_000_000, tick)

        task = shell("exec >&- 2>&-; sleep 1; exit 3")
        made.start(task, loop.refresh() + int(PATIENCE_S * 1e9), lambda output: None)
        tick(None)
        with pytest.raises(HostError, match=r"^flow a flow: sh ended with status 3$"):
            loop.run()
    # 20 in that second, fewer on a busy machine
    assert len(turns) >= 5


def test_a_disk_that_is_full_is_one_line() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with programs() as (_, made):
        # no file may be longer: as on a full disk, the kernel refuses the write
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
        try:
            with pytest.raises(HostError, match=r"^flow a flow: /\S+ for sh cannot be written: File too large$"):
                made.serve(shell("echo listens", file=bytes(1001)), "listens")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_no_place_for_a_folder_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    line = "^flow a flow: a folder for sh cannot be written: No such file or directory$"
    with programs() as (_, made), pytest.raises(HostError, match=line):
        made.serve(shell("echo listens"), "listens")


def test_a_failure_before_the_program_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise PermissionError

    monkeypatch.setattr(kernel_programs, "_prepare", fail)
    line = r"^flow a flow: sh cannot be started: Exception occurred in preexec_fn\.$"
    with programs() as (_, made), pytest.raises(HostError, match=line):
        made.serve(shell("echo listens"), "listens")


def test_a_word_that_no_command_line_can_have_is_one_line() -> None:
    line = "^flow a flow: sh cannot be started: embedded null byte$"
    with programs() as (_, made), pytest.raises(HostError, match=line):
        made.serve(shell("echo \0"), "listens")


def test_a_result_that_cannot_be_read_is_one_line() -> None:
    def parse(output: str) -> Told:
        return IPERF3.parse(output)

    with programs() as (loop, made):
        ProgramEnd(made, shell("echo nonsense"), loop.refresh() + int(PATIENCE_S * 1e9), parse, lambda *told: None)
        with pytest.raises(HostError, match=r"^flow a flow: sh told no result \(JSONDecodeError: ") as error:
            loop.run()
    assert "\n" not in str(error.value)


def test_an_aborted_client_reports_once(tmp_path: Path) -> None:
    told: list[tuple[Told | None, str | None]] = []
    with programs() as (loop, made):
        task = shell("sleep 1000")
        end = ProgramEnd(made, task, loop.refresh() + 1, IPERF3.parse, lambda *what: told.append(what))
        end.abort("stopped")
        end.abort("stopped")
        # as an agent does that ends
        made.close()
        made.close()
        loop.at(loop.refresh() + 1_000_000, lambda _: loop.stop())
        loop.run()
    assert told == [(None, "stopped")]


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl: apt-get install curl")
def test_curl_heeds_neither_the_users_file_nor_proxies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".curlrc").write_text("max-filesize = 1\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    # the port 1 of this machine, where nothing listens
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    port = free_port()
    place = Place(address="127.0.0.1", port=port, host="", namespace="", duration_s=1, bytes=1234, seed=1)
    words = ("python3", "-u", "-m", "http.server", "--bind", "127.0.0.1", f"{port}")
    told: list[str] = []
    with programs() as (loop, made):

        def done(output: str) -> None:
            told.append(output)
            loop.stop()

        made.serve(
            Task(flow="a flow", command=Command(words=words, files=(("file", bytes(1234)),)), package=""), "^Serving"
        )
        client = Task(flow="a flow", command=CURL.client(place), package="curl")
        made.start(client, loop.refresh() + int(PATIENCE_S * 1e9), done)
        loop.run()
    assert [CURL.parse(output).bytes for output in told] == [1234]
