"""Machines in virtual time: time, entropy, files, ends."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testbed.errors import FadelabError
from testbed.virtual import kernel, machine
from tests.harness.live_runs import start
from tests.harness.uhd_programs import EXAMPLES
from tests.harness.waiting import wait_for
from tests.testbed.virtual.conftest import needs_kernel

pytestmark = needs_kernel

PYTHON = "/usr/bin/python3"


def ran(*command: str, seed: int = 1, folders: tuple[Path, ...] = (), **order: Any) -> tuple[int, str, str]:
    """The status, output and error output of a command in a machine."""
    out, err = bytearray(), bytearray()
    places = {str(folder): folder for folder in folders}
    status = machine.run(machine.Order(command=command, seed=seed, folders=places, **order), out.extend, err.extend)
    return status, out.decode(), err.decode()


def places() -> set[str]:
    """Folders of this process's machines: other tests may have some at the same time."""
    return {path.name for folder in machine._rooms() for path in folder.glob(f"{kernel.PREFIX}{os.getpid()}-*")}


@pytest.mark.parametrize(
    ("command", "status"),
    [("exit 0", 0), ("exit 7", 7), ("kill -SEGV $$", 128 + signal.SIGSEGV), ("no-such-program", 127)],
)
def test_status_is_the_commands(command: str, status: int) -> None:
    assert ran("sh", "-c", command)[0] == status


def test_output_and_errors_are_apart() -> None:
    assert ran("sh", "-c", "echo out; echo err >&2") == (0, "out\n", "err\n")


def test_missing_program_is_named() -> None:
    assert ran("/no/such/program") == (127, "", "fadelab: /no/such/program: No such file or directory\n")


def test_hour_of_sleep_takes_no_hour() -> None:
    began = time.monotonic()
    status, out, _ = ran(PYTHON, "-ISc", "import time; a = time.time(); time.sleep(3600); print(time.time() - a)")
    assert status == 0
    assert 3600 <= float(out) < 3600.01
    assert time.monotonic() - began < 60


def test_computing_takes_no_time() -> None:
    code = "import time; a = time.monotonic_ns(); sum(range(1_000_000)); print(time.monotonic_ns() - a)"
    _, out, _ = ran(PYTHON, "-ISc", code)
    assert int(out) < 100_000


ENTROPY = "import os, time; print(os.urandom(16).hex(), os.getpid(), time.time_ns(), hash('a'), id(object()))"


def test_seed_decides_everything_that_varies_elsewhere() -> None:
    first, again, other = (ran(PYTHON, "-Ic", ENTROPY, seed=seed) for seed in (5, 5, 6))
    assert first == again
    assert first[1].split()[0] != other[1].split()[0]


def test_writes_reach_folders_to_keep_alone(tmp_path: Path) -> None:
    kept, lost = tmp_path / "kept", tmp_path / "lost"
    kept.mkdir()
    lost.mkdir()
    (lost / "seen").write_text("of the host\n")
    script = f"cat {lost}/seen && echo one > {kept}/one && echo two > {lost}/two && echo > /etc/three && cat {lost}/two"
    assert ran("sh", "-c", script, folders=(kept,)) == (0, "of the host\ntwo\n", "")
    assert (kept / "one").read_text() == "one\n"
    assert {path.name for path in lost.iterdir()} == {"seen"}
    assert not Path("/etc/three").exists()


@pytest.mark.skipif("avx" not in Path("/proc/cpuinfo").read_text().split(), reason="a processor without AVX")
def test_threads_keep_their_vector_registers(tmp_path: Path) -> None:
    program, source = tmp_path / "vector_registers", Path(__file__).with_name("vector_registers.c")
    subprocess.run(["gcc", "-O2", "-mavx", "-pthread", "-o", str(program), str(source)], check=True)
    assert ran(str(program)) == (0, "", "")


def test_command_is_root_of_namespaces_and_devices() -> None:
    code = "ip link add name left type veth peer name right && ip tuntap add tap9 mode tap && unshare -n ip -br link"
    status, out, err = ran("sh", "-c", code)
    assert (status, err) == (0, "")
    assert out.split()[0] == "lo"


def test_ctrl_c_reaches_the_command() -> None:
    code = "trap 'echo ended; exit 3' INT; echo begun; while :; do sleep 1; done"
    child = start("virtual", "--", "bash", "-c", code)
    assert child.stdout is not None
    assert child.stdout.readline() == "begun\n"
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (130, "ended\n")
    assert err.strip() == "fadelab: interrupted"


def test_machine_ends_with_its_killed_host(tmp_path: Path) -> None:
    child = start("virtual", "--", "bash", "-c", "echo begun; while :; do sleep 1; done")
    assert child.stdout is not None
    assert child.stdout.readline() == "begun\n"
    child.kill()
    child.communicate()

    def alone() -> bool:
        mine = f"{kernel.PREFIX}{child.pid}-"
        return subprocess.run(["pgrep", "-f", re.escape(mine)], stdout=subprocess.DEVNULL, check=False).returncode == 1

    wait_for(alone)
    assert [path for path in machine.abandoned() if f"-{child.pid}-" in path.name]
    subprocess.run([sys.executable, "-m", "testbed", "clean"], check=True, stdout=subprocess.DEVNULL)
    assert not [path for path in machine.abandoned() if f"-{child.pid}-" in path.name]


def test_machine_leaves_nothing() -> None:
    ran("true")
    assert not places()


def test_machine_that_does_not_boot_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "init.py").write_text("#!/no/such/interpreter\n")
    monkeypatch.setattr(machine, "INIT", tmp_path / "init.py")
    with pytest.raises(FadelabError, match=r"^the machine in virtual time ended before its command: "):
        ran("true")
    assert not places()


# -- programs over UHD -------------------------------------------------------------------------------------------


def with_radios(command: str, **order: Any) -> str:
    """The output of a command that finds the virtual USRPs.

    It sees nothing that other tests make meanwhile: no places of bytecode, and no `~/.gnuradio`, which GNU Radio makes
    at its first use.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    status, out, err = ran("bash", "-c", command, environment=environment | {"HOME": "/run"}, **order)
    assert status == 0, err
    return out


def test_two_programs_of_gnu_radio_make_the_same_recording(tmp_path: Path) -> None:
    program = shlex.join([PYTHON, str(Path(__file__).with_name("two_programs.py"))])
    recordings = []
    for name in "ab":
        path = tmp_path / name / "recording.fc32"
        path.parent.mkdir()
        with_radios(f"{program} send & {program} record 200000 {path} && kill $!", folders=(path.parent,))
        recordings.append(path.read_bytes())
    samples = np.frombuffer(recordings[0], dtype=np.complex64)
    assert len(samples) == 200_000
    powers = (np.abs(samples) ** 2).reshape(-1, 500).mean(axis=1)
    # 2 ms of every 20
    assert 0.06 < (powers > 1000 * powers.min()).mean() < 0.14
    assert recordings[0] == recordings[1]


def test_uhds_benchmark_is_never_late() -> None:
    rates = "--rx_rate 25e6 --tx_rate 25e6 --duration 0.5"
    said = with_radios(f"{EXAMPLES / 'benchmark_rate'} --args type=vusrp,air=fast {rates}")
    counts = {name.strip(): int(count) for name, count in re.findall(r"^ *(Num [^:]+): *(\d+)$", said, re.MULTILINE)}
    moved = {name: counts.pop(f"Num {name} samples") for name in ("received", "transmitted")}
    assert min(moved.values()) > 12_000_000
    assert len(counts) == 8
    assert not any(counts.values()), said
