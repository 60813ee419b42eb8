"""The flowgraphs for GNU Radio Companion compile, and run: without a radio, and on virtual USRPs."""

import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import pytest
import yaml

from flowgraphs.native import BUILD, native
from tests.harness.bursts import Mailbox
from tests.harness.live_runs import ROOT
from tests.harness.radios import MODULES, needs_vusrp, needs_wifi
from tests.harness.waiting import wait_for

pytestmark = pytest.mark.patient

FOLDER = ROOT / "flowgraphs" / "grc"
PATIENCE_S = 60
FRAME_BYTES = 1000


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every flowgraph, compiled: name to program."""
    if shutil.which("grcc") is None:
        pytest.skip("GNU Radio's grcc is not installed")
    folder = tmp_path_factory.mktemp("grc")
    blocks = os.pathsep.join(map(str, (FOLDER, ROOT / "flowgraphs" / "native" / "grc")))
    environment = {**os.environ, "GRC_BLOCKS_PATH": blocks, "PYTHONPATH": str(ROOT), "HOME": str(folder)}
    names = {}
    for source in sorted(FOLDER.glob("*.grc")):
        command = ["grcc", "-o", str(folder), str(source)]
        made = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S)
        said = made.stdout + made.stderr
        assert made.returncode == 0, said
        assert "Error" not in said, said
        assert "Warning" not in said, said
        name = source.stem.replace("-", "_")
        names[name] = folder / f"{name}.py"
    return names


def test_every_flowgraph_compiles(programs: dict[str, Path]) -> None:
    assert {"loopback", "transceiver", "wifi_transceiver", "recorder", "replayer", "retransmitter", "monitor"} <= set(
        programs
    )
    for program in programs.values():
        compile(program.read_text(), program, "exec")


@pytest.mark.parametrize("source", sorted(FOLDER.glob("*.grc")), ids=lambda path: path.stem)
def test_no_block_lies_on_another(source: Path) -> None:
    """Two blocks of one place cannot both be seen when the flowgraph is opened."""
    flowgraph = yaml.safe_load(source.read_text())
    places = [tuple(block["states"]["coordinate"]) for block in flowgraph["blocks"]]
    assert len(set(places)) == len(places)


@pytest.mark.parametrize(("modulation", "fec"), [("qpsk", "none"), ("qam16", "golay2412")])
def test_loopback_brings_frames_back(programs: dict[str, Path], modulation: str, fec: str) -> None:
    """The noise is another one on every run: a frame in 100 is measured wrongly, and five of nine once in 10^8 runs."""
    # tells Python where the module of the blocks is
    native()
    flowgraph = runpy.run_path(str(programs["loopback"]))["loopback"](
        modulation=modulation, fec=fec, snr_db=25.0, cfo_hz=500.0
    )
    flowgraph.frames.set_period(20)
    mailbox = Mailbox()
    flowgraph.msg_connect((flowgraph.receiver, "frames"), (mailbox, "in"))
    flowgraph.start()
    try:
        wait_for(lambda: len(mailbox.taken) >= 9)
    finally:
        flowgraph.stop()
        flowgraph.wait()
    heard = mailbox.heard
    assert all(frame.crc_ok and frame.payload == bytes(n & 255 for n in range(FRAME_BYTES)) for frame in heard)
    assert [frame.sequence for frame in heard] == list(range(len(heard)))
    assert median(frame.snr_db for frame in heard if frame.snr_db is not None) == pytest.approx(25, abs=2)
    assert median(frame.cfo_hz for frame in heard if frame.cfo_hz is not None) == pytest.approx(500, abs=100)


@needs_vusrp
@pytest.mark.parametrize("name", ["transceiver", pytest.param("wifi_transceiver", marks=needs_wifi)])
def test_two_transceivers_on_one_air_hear_each_other(programs: dict[str, Path], name: str, tmp_path: Path) -> None:
    air = f"type=vusrp,air=grc-{os.getpid()}"
    first = ("--device", f"{air},serial=V1", "--tx-hz", "2.45e9", "--rx-hz", "2.40e9")
    second = ("--device", f"{air},serial=V2", "--tx-hz", "2.40e9", "--rx-hz", "2.45e9")
    with (
        _running(programs[name], *first, said=tmp_path / "first") as one,
        _running(programs[name], *second, said=tmp_path / "second") as two,
    ):
        for program in (one, two):
            heard = program.heard(5)
            assert heard == sorted(set(heard))


@needs_vusrp
def test_a_recording_holds_the_frames_and_gives_them_back_on_the_air(programs: dict[str, Path], tmp_path: Path) -> None:
    air = f"type=vusrp,air=grc-{os.getpid()}"
    recording = tmp_path / "recording.cf32"
    away = ("--tx-hz", "2.5e9")
    transceiver = programs["transceiver"]
    with _running(transceiver, "--device", f"{air},serial=V1", "--rx-hz", "2.5e9", said=tmp_path / "sender") as sender:
        sender.ready()
        _run(programs["recorder"], "--device", f"{air},serial=V2", "--seconds", "1", "--file", recording)
    assert recording.stat().st_size == 8_000_000
    recorded = _heard(_run(programs["replayer"], "--file", recording))
    # ten frames a second, less what a busy machine did not keep up with
    assert 5 <= len(recorded) <= 11
    with _running(transceiver, "--device", f"{air},serial=V1", *away, said=tmp_path / "listener") as listener:
        listener.ready()
        again = ("--device", f"{air},serial=V2", "--file", recording, "--level-db", "20")
        _run(programs["retransmitter"], *again)
        heard = listener.heard(len(recorded) // 2)
        assert set(heard) <= set(recorded)


class Program:
    def __init__(self, process: subprocess.Popen[bytes], said: Path) -> None:
        self._process = process
        self._said = said

    def ready(self) -> None:
        self._wait(lambda text: "Press Enter" in text)

    def heard(self, count: int) -> list[int]:
        """Wait until it has printed so many undamaged frames; return the sequence numbers of all of them."""
        self._wait(lambda text: len(_heard(text)) >= count)
        return _heard(self._said.read_text())

    def _wait(self, done: Callable[[str], bool]) -> None:
        wait_for(lambda: self._process.poll() is not None or done(self._said.read_text()))
        assert self._process.poll() is None, self._said.read_text()


@contextmanager
def _running(program: Path, *options: str, said: Path) -> Iterator[Program]:
    with said.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-u", program, *options],
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    assert process.stdin is not None
    try:
        yield Program(process, said)
        process.stdin.write(b"\n")
        process.stdin.close()
        assert process.wait(PATIENCE_S) == 0, said.read_text()
    finally:
        process.kill()
        process.wait()


def _run(program: Path, *options: str | Path) -> str:
    command = [sys.executable, "-u", program, *options]
    done = subprocess.run(command, env=_environment(), capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _environment() -> dict[str, str]:
    # behind ours what the user has given: gr-ieee802-11 may be in a folder of its own
    path = os.pathsep.join(filter(None, (str(ROOT), str(BUILD / "python"), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "UHD_MODULE_PATH": str(MODULES), "PYTHONPATH": path}


def _heard(text: str) -> list[int]:
    return [int(sequence) for sequence in re.findall(r"\(sequence \. (\d+)\) \(crc_ok \. #t\)", text)]
