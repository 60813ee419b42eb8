"""A station's flowgraph on a virtual USRP: its silence, its gaps, and what it leaves behind when closed: nothing."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import pytest

from flowgraphs.frontend import FrontEndOptions, RadioSettings
from flowgraphs.phys import make_phy
from flowgraphs.transceiver import Transceiver
from tests.harness.radios import RATE_SPS, needs_vusrp, on, quiet_air
from tests.harness.waiting import wait_for

pytestmark = needs_vusrp


def threads() -> set[int]:
    return {int(task.name) for task in Path("/proc/self/task").iterdir()}


def running_transceiver(settings: RadioSettings) -> Transceiver:
    """A transceiver that receives and has transmitted."""
    phy = make_phy("ofdm", rate_sps=RATE_SPS)
    transceiver = Transceiver(settings, phy)
    transceiver.start()
    transceiver.send(b"frame")
    wait_for(lambda: transceiver.tx.block.nitems_read(0) and len(transceiver._meter.newest))
    return transceiver


def test_closed_transceiver_leaves_no_thread_and_no_device_while_it_is_referenced() -> None:
    # libraries start threads of their own with the first one
    with quiet_air() as air:
        running_transceiver(on(air, "A")).close()
    with quiet_air() as air:
        before = threads()
        transceiver = running_transceiver(on(air, "A"))
        assert threads() > before
        assert [device.serial for device in air.devices()] == ["A"]
        transceiver.close()
        # at once: a thread of gr-uhd's sink that outlives the interpreter ends the process by a signal
        assert threads() <= before
        assert air.devices() == []
        assert transceiver.counters().underflows == 0


def test_silence_around_bursts_goes_on_the_air_and_counts() -> None:
    with quiet_air() as air:
        settings = replace(on(air, "A"), options=FrontEndOptions(head_us=40.0, tail_us=60.0))
        transceiver = running_transceiver(settings)
        try:
            samples = make_phy("ofdm", rate_sps=RATE_SPS).frame_samples(5) + round(100e-6 * RATE_SPS)
            wait_for(lambda: transceiver.tx.block.nitems_read(0) >= samples)
            wait_for(lambda: transceiver.acknowledged() == 1)
            assert transceiver.tx.block.nitems_read(0) == samples
            assert transceiver.airtime_ns(5) == round(samples * 1e9 / RATE_SPS)
            assert transceiver.counters().underflows == 0
        finally:
            transceiver.close()


#: a transceiver that tells when it receives, and at the end of its input what it has received and lost, in seconds
_RECEIVING = """
import sys, time
from flowgraphs.frontend import RadioSettings
from flowgraphs.phys import make_phy
from flowgraphs.transceiver import Transceiver
transceiver = Transceiver(RadioSettings(sys.argv[1], 1e6, tx_hz=1e9, rx_hz=1e9), make_phy("ofdm", rate_sps=1e6))
transceiver.start()
while not transceiver.rx.block.nitems_written(0):
    time.sleep(0.01)
began = time.monotonic()
print("receiving", flush=True)
sys.stdin.read()
counters = transceiver.counters()
received = transceiver.rx.block.nitems_written(0)
print("told", received / 1e6, time.monotonic() - began, counters.lost_ns / 1e9, counters.overflows)
transceiver.close()
"""


@pytest.mark.slow
def test_length_of_an_overflow_is_known() -> None:
    """A process that was stopped for longer than the device waits for it."""
    with quiet_air() as air:
        command = [sys.executable, "-c", _RECEIVING, f"type=vusrp,air={air.name},serial=A"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as receiving:
            assert receiving.stdout is not None
            while receiving.stdout.readline() != "receiving\n":
                pass
            receiving.send_signal(signal.SIGSTOP)
            time.sleep(1.4)
            receiving.send_signal(signal.SIGCONT)
            time.sleep(0.5)
            told, _ = receiving.communicate()
    # GNU Radio logs there, too
    [line] = (line for line in told.splitlines() if line.startswith("told "))
    received_s, elapsed_s, lost_s, overflows = map(float, line.split()[1:])
    assert overflows >= 1
    assert lost_s > 1.2
    assert received_s + lost_s == pytest.approx(elapsed_s, abs=0.3)


def test_only_threads_that_the_device_waits_for_run_in_real_time(monkeypatch: pytest.MonkeyPatch) -> None:
    listed, stop = Path.iterdir, Event()

    def with_one_that_has_ended(folder: Path) -> Iterator[Path]:
        yield from listed(folder)
        if folder == Path("/proc/self/task"):
            yield folder / "4194305"

    with quiet_air() as air:
        # libraries start threads of their own with the first one
        running_transceiver(on(air, "A")).close()
        others = Thread(target=stop.wait)
        others.start()
        before = threads()
        transceiver = running_transceiver(on(air, "A"))
        monkeypatch.setattr(Path, "iterdir", with_one_that_has_ended)
        try:
            transceiver.run_in_real_time(1)
            policies: dict[str, set[int]] = {}
            for task in threads() - before - {4194305}:
                name = Path(f"/proc/self/task/{task}/comm").read_text().strip().rstrip("0123456789")
                policies.setdefault(name, set()).add(os.sched_getscheduler(task))
            assert {os.sched_getscheduler(task) for task in before} == {os.SCHED_OTHER}
        finally:
            stop.set()
            transceiver.close()
    # a thread that UHD or gr-uhd has made has the name of the process
    own = Path("/proc/self/comm").read_text().strip()
    in_real_time = {"ofdm tx", "usrp_sink", "usrp_source", own}
    assert {name for name, used in policies.items() if used == {os.SCHED_RR}} == in_real_time
    assert policies["ofdm rx"] == {os.SCHED_OTHER}
