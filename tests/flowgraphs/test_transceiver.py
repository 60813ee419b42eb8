"""What a station's flowgraph leaves behind when it is closed: nothing."""

import os
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
