"""Programs of others: what starts, ends, fails and hangs, with shells as programs."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hosts.engine.programs import Command, ProgramEnd, Task
from hosts.engine.results import Told
from hosts.errors import HostError
from hosts.kernel.programs import KernelPrograms
from hosts.loop import Loop
from hosts.workloads.programs.curl import PROGRAM as CURL
from hosts.workloads.programs.iperf3 import PROGRAM as IPERF3
from hosts.workloads.programs.irtt import PROGRAM as IRTT
from tests.harness.waiting import PATIENCE_S, wait_for


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
        ("kill -9 $$", "a flow: sh was killed by SIGKILL$"),
    ],
)
def test_a_crash_of_a_client_is_one_line(script: str, line: str) -> None:
    with pytest.raises(HostError, match=line):
        run(shell(script))


def test_a_client_that_hangs_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    with pytest.raises(HostError, match=r"a flow: sh has not ended in time, and was killed \(patience_s\)$"):
        run(shell(f"sleep 1000 & echo $$ $! > {pids}; wait"), patience_s=1)
    started = [int(pid) for pid in pids.read_text().split()]
    assert len(started) == 2
    assert wait_for(lambda: not any(map(is_running, started)))


def test_a_missing_program_is_one_line() -> None:
    task = Task(flow="a flow", command=Command(words=("no-such-program",)), package="no-such-package")
    line = "^flow a flow needs no-such-program, which is not installed: apt-get install no-such-package$"
    with programs() as (_, made):
        with pytest.raises(HostError, match=line):
            made.require(task)
        with pytest.raises(HostError, match=line):
            made.serve(task, "ready")


def test_a_server_is_awaited_until_its_line_and_ends_with_its_children(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    with programs() as (_, made):
        began = time.monotonic()
        made.serve(
            shell(f"echo $$ > {pids}; sleep 0.5; echo it listens; sleep 1000 & echo $! >> {pids}; wait"), "listens$"
        )
        assert time.monotonic() - began >= 0.5
        assert wait_for(lambda: len(pids.read_text().split()) == 2)
        started = [int(pid) for pid in pids.read_text().split()]
        assert all(map(is_running, started))
    assert wait_for(lambda: not any(map(is_running, started)))


def test_a_server_that_ends_before_it_listens_is_one_line() -> None:
    with programs() as (_, made), pytest.raises(HostError, match=r"flow a flow: sh ended with status 4: no port$"):
        made.serve(shell("echo no port; exit 4"), "listens")


def test_a_server_that_ends_during_the_run_is_one_line() -> None:
    with programs() as (loop, made):
        made.serve(shell("echo listens; exit 5"), "listens")
        with pytest.raises(HostError, match=r"flow a flow: sh, the server, ended with status 5$"):
            loop.run()


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


def test_results_of_iperf3_are_those_of_the_receiver() -> None:
    """The fields as iperf3 3.12 writes them with --json."""
    output = """{"end": {"streams": [{"sender": {"mean_rtt": 52000}}],
        "sum_sent": {"bytes": 1100, "seconds": 10.0, "retransmits": 7},
        "sum_received": {"bytes": 1000, "seconds": 10.5}}}"""
    assert IPERF3.parse(output) == Told(bytes=1000, duration_s=10.5, retransmissions=7, delay_ms=52.0)


def test_results_of_curl_and_irtt_are_read() -> None:
    """The words of curl's -w, and the fields of irtt 0.9.0; its times are ns."""
    assert CURL.parse('{"bytes": 500, "s": 2.5, "connect_s": 0.05}') == Told(bytes=500, duration_s=2.5, delay_ms=50.0)
    output = """{"stats": {"bytes_received": 1600, "duration": 2000000000, "rtt": {"mean": 51000000},
        "packets_sent": 12, "packets_received": 10}}"""
    assert IRTT.parse(output) == Told(bytes=1600, duration_s=2.0, delay_ms=51.0, lost=2)
