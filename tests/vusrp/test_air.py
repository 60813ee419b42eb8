"""Airs and who is on them: settings, names, claims, and what killed processes leave."""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest

from channel.delay_profiles import Kind, Tap
from flowgraphs.air import Air, AirError, Link, _checked, _ffi, _library
from flowgraphs.series import write_series
from tests.harness.radio_process import MODULES, RadioProcess
from tests.vusrp.conftest import LEAD, Bench


def test_what_is_set_is_what_holds(air_name: str) -> None:
    with Air.create(air_name, clock="lockstep", seed=9) as air:
        assert (air.clock, air.seed, air.devices()) == ("lockstep", 9, [])
        assert air.link("V1:0", "V2:0") == Link()
        taps = (
            Tap(kind=Kind.RICIAN, k_db=6.0, doppler_hz=5.0, los_doppler_hz=1.0, phase_rad=0.5),
            Tap(delay_ns=800.0, power_db=-3.0),
        )
        link = air.set_link(
            "V1", "V2", gain_db=-70.5, delay_ns=1e3, cfo_hz=-40.0, taps=taps, normalise=False, seed_salt=4
        )
        assert air.link("V1:1", "V2:0") == link == Link(-70.5, 1e3, -40.0, taps, normalise=False, seed_salt=4)
        assert air.set_link("V1", "V2", gain_db=-60) == Link(-60.0, 1e3, -40.0, taps, normalise=False, seed_salt=4)
        assert air.noise_dbm_hz("V2:0") == -168.0
        air.set_receiver("*", noise_dbm_hz=-150.0)
        assert air.noise_dbm_hz("V2:0") == -150.0
        air.set_clock_offset("V7", -2.5)
        assert (air.clock_offset_ppm("V7"), air.clock_offset_ppm("V1")) == (-2.5, 0.0)


def test_the_most_exact_setting_holds_and_among_equals_the_newest(air_name: str) -> None:
    with Air.create(air_name) as air:
        for gain_db, (tx, rx) in enumerate(
            [("V1:0", "V2:0"), ("V1", "V2"), ("*", "V2:0"), ("V1", "*"), ("*", "*")], -50
        ):
            air.set_link(tx, rx, gain_db=gain_db)
        assert air.link("V1:0", "V2:0").gain_db == -50
        assert air.link("V1:1", "V2:0").gain_db == -48  # "*" -> "V2:0" is as exact as "V1" -> "V2", and newer
        assert air.link("V1:1", "V2:1").gain_db == -49
        assert air.link("V1:1", "V3:0").gain_db == -47
        assert air.link("V3:0", "V10:0").gain_db == -46
        assert air.link("V10:0", "V3:0").gain_db == -46


def test_links_follow_profiles_and_series(air_name: str, tmp_path: Path) -> None:
    with Air.create(air_name) as air:
        eva = air.set_profile("*", "*", "EVA", doppler_hz=70.0)
        assert (len(eva.taps), eva.taps[-1].delay_ns) == (9, 2510.0)
        write_series(tmp_path / "gains", 1e6, [0.0], np.array([[1.0], [0.5]]))
        following = air.set_link("*", "*", series=tmp_path / "gains")
        assert following == Link(series=tmp_path / "gains") == air.link("V1:0", "V2:0")
        assert air.set_link("*", "*", taps=()) == Link()


def unterminated(air: Air) -> None:
    """Give an interferer whose path has no end, as a program in C can."""
    wanted = _ffi.new("fadelab_interferer *", {"path": b"/" * 256, "rate_sps": 1e6})
    _checked(_library().fadelab_air_set_interferer(air._open(), b"V1", wanted))


def test_what_cannot_be_is_refused_in_one_line(air_name: str, tmp_path: Path) -> None:
    with Air.create(air_name, seed=1) as air:
        (tmp_path / "odd").write_bytes(b"12345")
        for name, gain in (("no-number", np.nan), ("loud", 2e10)):
            write_series(tmp_path / name, 1e6, [0.0, 1e3], np.ones((3, 2)))
            with (tmp_path / name).open("r+b") as file:
                file.seek(-np.complex64().nbytes, os.SEEK_END)
                file.write(np.complex64(gain).tobytes())
        refused: list[tuple[Callable[[], object], str]] = [
            (lambda: air.set_link("V1", "V2", gain_db=float("nan")), "link V1 -> V2: gain_db must be a finite number"),
            (lambda: air.set_link("V1:4", "V2"), "port 'V1:4': its channel must be 0 to 3"),
            (lambda: air.set_link("V 1", "V2"), "'V 1' cannot be a serial number"),
            (lambda: air.set_link("*", "*", series=tmp_path / "none"), r"link \* -> \*: .*none"),
            (lambda: air.set_link("*", "*", series=tmp_path / "no-number"), "gain of tap 1 in row 2 is no number"),
            (lambda: air.set_link("*", "*", series=tmp_path / "loud"), "gain of tap 1 in row 2 is no number"),
            (lambda: air.set_link("*", "*", taps=[Tap()] * 25), "up to 24 taps"),
            (lambda: air.set_profile("*", "*", "EXA", doppler_hz=1.0), "no profile 'EXA'"),
            (lambda: air.set_receiver("*", noise_dbm_hz=float("nan")), "noise density"),
            (lambda: air.set_interference("V1", tmp_path / "odd", rate_sps=1e6), "interference: .*odd"),
            (lambda: unterminated(air), "interference: its path is longer than 255 bytes"),
            (lambda: air.set_clock_offset("V1", 1e4), "within 1000 ppm"),
            (lambda: Air.create(air_name, seed=2), "has seed=1, not seed=2"),
            (lambda: Air.create(air_name, clock="lockstep"), "has clock realtime, not lockstep"),
            (lambda: Air.create("a/b"), "'a/b' cannot be the name of an air"),
            (lambda: Air.create(air_name, clock="sundial"), "'sundial' is neither"),
            (lambda: Air.open(f"{air_name}-none"), "there is no air"),
        ]
        for action, says in refused:
            with pytest.raises(AirError, match=says) as caught:
                action()
            assert "\n" not in str(caught.value)
    with pytest.raises(AirError, match="has been closed"):
        air.devices()


def test_an_air_goes_when_nothing_keeps_it(air_name: str) -> None:
    with Air.create(air_name) as first:
        with Air.open(air_name) as second:
            second.set_link("*", "*", gain_db=-10)
        assert air_name in Air.names()
        assert first.link("V1:0", "V2:0").gain_db == -10
    assert air_name not in Air.names()
    Air.create(air_name, keep=True).close()
    with Air.open(air_name):
        pass
    assert air_name in Air.names()
    assert Air.remove(air_name)
    assert not Air.remove(air_name)
    assert air_name not in Air.names()


def test_a_device_has_one_owner_named_in_the_error(live_bench: Bench) -> None:
    owner = live_bench.radio("V1")
    with pytest.raises(
        RuntimeError, match=f"device V1 of air '{live_bench.air.name}' is in use by process {owner.pid}$"
    ):
        live_bench.radio("V1")
    devices = live_bench.air.devices()
    assert [(device.serial, device.pid) for device in devices] == [("V1", owner.pid)]
    owner.gain("rx", 12.0, channel=1)
    owner.tune("tx", 2.4e9)
    (device,) = live_bench.air.devices()
    assert (device.rx[1].gain_db, device.rx[1].full_scale_dbm) == (12.0, -22.0)
    assert device.tx[0].freq_hz == 2.4e9


def test_programs_that_name_no_serial_get_the_next_free_device(live_bench: Bench, tmp_path: Path) -> None:
    radios = [RadioProcess(tmp_path, f"type=vusrp,air={live_bench.air.name}") for _ in range(3)]
    assert [device.serial for device in live_bench.air.devices()] == ["V1", "V2", "V3"]
    radios[1].close()
    again = RadioProcess(tmp_path, f"type=vusrp,air={live_bench.air.name}")
    assert [device.serial for device in live_bench.air.devices()] == ["V1", "V2", "V3"]
    for radio in (*radios, again):
        radio.close()


def test_an_air_has_room_for_eight_devices(live_bench: Bench) -> None:
    script = """if 1:
        import sys, uhd
        held = [uhd.usrp.MultiUSRP(f"type=vusrp,air={sys.argv[1]},serial=N{i}") for i in range(8)]
        try:
            uhd.usrp.MultiUSRP(f"type=vusrp,air={sys.argv[1]},serial=N8")
        except RuntimeError as error:
            print(error)
    """
    command = [sys.executable, "-c", script, live_bench.air.name]
    environment = {**os.environ, "UHD_MODULE_PATH": os.fspath(MODULES)}
    said = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True).stdout
    assert "has its 8 devices: take another air" in said


@pytest.mark.usefixtures("uhd_modules")
def test_arguments_that_cannot_be_are_refused_in_one_line(air_name: str, tmp_path: Path) -> None:
    for args, says in [
        ("air_clock=sundial", "air_clock=sundial is neither realtime nor lockstep"),
        ("clock=gpsdo", "clock=gpsdo is no clock source: take internal or external; the air's clock is air_clock"),
        ("serial=V/1", "'V/1' cannot be a serial number"),
        ("master_clock_rate=1", "master_clock_rate must lie within"),
        ("seed=many", "cannot cast seed = many"),
    ]:
        with pytest.raises(RuntimeError, match=says):
            RadioProcess(tmp_path, f"type=vusrp,air={air_name},{args}")
        assert air_name not in Air.names()


@pytest.mark.usefixtures("uhd_modules")
@pytest.mark.parametrize(
    ("args", "clock", "source"),
    [
        ("air_clock=lockstep", "lockstep", "internal"),
        ("air_clock=realtime", "realtime", "internal"),
        # the old name
        ("clock=lockstep", "lockstep", "internal"),
        ("clock=realtime", "realtime", "internal"),
        ("clock=realtime,air_clock=lockstep", "lockstep", "internal"),
        # as programs name the clock source
        ("clock=internal", "realtime", "internal"),
        ("clock=external", "realtime", "external"),
        ("clock=external,air_clock=lockstep", "lockstep", "external"),
    ],
)
def test_the_airs_clock_and_the_clock_source_are_two_arguments(
    air_name: str, tmp_path: Path, args: str, clock: str, source: str
) -> None:
    radio = RadioProcess(tmp_path, f"type=vusrp,air={air_name},{args}")
    with Air.open(air_name) as air:
        assert air.clock == clock
    assert radio.call("get_clock_source", 0) == source
    radio.close()


def test_a_killed_owner_leaves_its_serial_number_and_the_air_usable(live_bench: Bench) -> None:
    killed = live_bench.radio("V1")
    killed.send(np.zeros(100_000, np.complex64), end=False)
    killed.kill()
    assert live_bench.air.devices() == []
    live_bench.air.set_link("*", "*", gain_db=-50)
    tx, rx = live_bench.radio("V1"), live_bench.radio("V2", rx_gain=40.0)
    rx.open("rx")
    tx.open("tx")
    start = rx.now() + LEAD
    rx.start(2_000, at=start)
    tx.send(np.full(1_000, 0.5, np.complex64), at=start + 500)
    heard = np.abs(rx.collect(2_000)[0])
    assert heard == pytest.approx(np.repeat([0.0, 0.5, 0.0], [500, 1_000, 500]), abs=1e-6)


def test_what_a_killed_owner_would_still_have_sent_is_not_heard_after_its_successor(live_bench: Bench) -> None:
    live_bench.air.set_link("*", "*", gain_db=-50)
    rx = live_bench.radio("V2", rx_gain=40.0)
    rx.open("rx")
    for lead in (4 * LEAD, 16 * LEAD, 64 * LEAD):
        killed = live_bench.radio("V1")
        killed.open("tx")
        at = killed.now() + lead
        killed.send(np.full(200_000, 0.9, np.complex64), at=at)
        killed.kill()
        successor = live_bench.radio("V1")
        if rx.now() < at:
            break
        # a busy machine took longer to start a program: there is nothing left to be heard
        successor.close()
    rx.start(200_000, at=at)
    assert not rx.collect(200_000).any()


@pytest.mark.usefixtures("uhd_modules")
def test_an_air_whose_processes_were_all_killed_makes_room_for_a_new_one(air_name: str, tmp_path: Path) -> None:
    killed = RadioProcess(tmp_path, f"type=vusrp,air={air_name},serial=V1,seed=3")
    killed.kill()
    assert air_name in Air.names()
    fresh = RadioProcess(tmp_path, f"type=vusrp,air={air_name},serial=V1,air_clock=lockstep")
    with Air.open(air_name) as air:
        assert (air.clock, air.seed) == ("lockstep", 1)
    fresh.close()
    assert air_name not in Air.names()


def test_an_air_of_another_version_is_abandoned_once_nobody_has_it(air_name: str) -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=_set_links_for_ever, args=(air_name, theirs), daemon=True)
    with Air.create(air_name):
        child.start()
        assert ours.recv() == "begun"
        with Path(f"/dev/shm/fadelab-air-{air_name}").open("r+b") as file:
            file.seek(8)
            version = file.read(4)
            file.seek(8)
            file.write(b"\xff\xff\xff\x7f")
            file.flush()
            assert air_name not in Air.abandoned()
            assert child.pid is not None
            os.kill(child.pid, signal.SIGKILL)
            child.join()
            assert air_name in Air.abandoned()
            file.seek(8)
            file.write(version)


def test_a_process_killed_while_it_sets_links_leaves_the_air_whole(air_name: str) -> None:
    context = multiprocessing.get_context("spawn")
    rng = random.Random(7)
    with Air.create(air_name) as air:
        air.set_link("V1", "V2", gain_db=-40, delay_ns=40)
        for _ in range(12):
            ours, theirs = context.Pipe()
            child = context.Process(target=_set_links_for_ever, args=(air_name, theirs), daemon=True)
            child.start()
            assert ours.recv() == "begun"
            time.sleep(rng.uniform(0.0, 0.02))
            assert child.pid is not None
            os.kill(child.pid, signal.SIGKILL)
            child.join()
            link = air.link("V1:0", "V2:0")
            assert link.gain_db == -link.delay_ns  # of one call, not of two
            air.set_link("V1", "V2", gain_db=-40, delay_ns=40)
            assert air.link("V1:0", "V2:0").gain_db == -40


def _set_links_for_ever(name: str, ready: Connection) -> None:
    with Air.open(name) as air:
        ready.send("begun")
        gain = 1
        while True:
            gain = gain % 90 + 1
            air.set_link("V1", "V2", gain_db=-gain, delay_ns=gain)
