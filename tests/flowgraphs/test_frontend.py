"""Front ends on a virtual USRP: what they set, and what they say when it cannot be."""

import fcntl
import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flowgraphs.air import Air
from flowgraphs.frontend import FrontEndError, FrontEndOptions, RadioSettings, Receiver, Transmitter
from testbed.cli.doctor.usrp import probe
from tests.harness.invented_usrp import Board, Half
from tests.harness.radios import CARRIER_HZ, RATE_SPS, needs_vusrp, on, quiet_air

# no flowgraph runs, so nothing can be late
pytestmark = [needs_vusrp, pytest.mark.patient]

HALVES = pytest.mark.parametrize("half", [Receiver, Transmitter])
NAN = float("nan")
CABLED = FrontEndOptions(cabled=True)
Make = Callable[[RadioSettings], Receiver | Transmitter]


@pytest.fixture
def air() -> Iterator[Air]:
    with quiet_air() as air:
        yield air


def refused(half: Make, settings: RadioSettings) -> str:
    """The one line with which it is."""
    with pytest.raises(FrontEndError) as caught:
        half(settings)
    assert "\n" not in str(caught.value)
    assert repr(settings.args) in str(caught.value)
    return str(caught.value)


def test_both_halves_are_set_up(air: Air) -> None:
    settings = on(air, "V1", tx_hz=2.4e9, rx_hz=915e6, tx_gain_db=12.5, rx_gain_db=41.0)
    transmitter, receiver = Transmitter(settings), Receiver(settings)
    assert (transmitter.gain_db, receiver.gain_db) == (12.5, 41.0)
    assert transmitter.block.get_samp_rate() == receiver.block.get_samp_rate() == RATE_SPS
    [device] = air.devices()
    assert [(tuning.freq_hz, tuning.gain_db) for tuning in (device.tx[0], device.rx[0])] == [(2.4e9, 12.5), (915e6, 41)]


@pytest.mark.parametrize(("rate_sps", "lot"), [(100e3, 256), (1e6, 2048), (2.5e6, 4096), (10e6, 16384)])
def test_a_receiver_gives_two_milliseconds_of_samples_at_a_time(air: Air, rate_sps: float, lot: int) -> None:
    assert Receiver(on(air, "V1", rate_sps=rate_sps)).block.max_noutput_items() == lot


@HALVES
def test_without_a_gain_it_is_the_middle_of_the_range(air: Air, half: Make) -> None:
    front_end = half(on(air, "V1"))
    gains = front_end.block.get_gain_range()
    assert front_end.gain_db == (gains.start() + gains.stop()) / 2 == front_end.block.get_gain()


def test_a_gain_set_later_is_what_the_device_made_of_it(air: Air) -> None:
    receiver = Receiver(on(air, "V1"))
    for asked_db in (0.0, 33.3, 60.0):
        receiver.set_gain(asked_db)
        assert receiver.gain_db == receiver.block.get_gain()
        assert receiver.gain_db == pytest.approx(asked_db, abs=0.5)
    assert receiver.gain_range_db == (0.0, 60.0)


def test_another_channel_is_another_tuning(air: Air) -> None:
    receiver = Receiver(on(air, "V1", rx_hz=915e6, rx_gain_db=7.0, options=FrontEndOptions(channel=1)))
    [device] = air.devices()
    assert (device.rx[1].freq_hz, device.rx[1].gain_db) == (915e6, 7.0)
    assert device.rx[0].freq_hz != 915e6
    del receiver


@HALVES
@pytest.mark.parametrize("rate_sps", [0.0, -1e6, 1.0, 3e6, 1e9, NAN])
def test_a_rate_it_has_not_got_is_refused_and_the_nearest_named(air: Air, half: Make, rate_sps: float) -> None:
    said = refused(half, on(air, "V1", rate_sps=rate_sps))
    assert f"has no sample rate of {rate_sps:.10g}, the nearest is " in said
    [nearest_sps] = re.findall(r"the nearest is (\S+): set the rate to that$", said)
    if not math.isnan(rate_sps):
        advised = half(on(air, "V1", rate_sps=float(nearest_sps)))
        assert advised.block.get_samp_rate() == pytest.approx(float(nearest_sps), rel=1e-6)


@HALVES
@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        *(("hz", hz, f"cannot be tuned to {hz / 1e6:g} MHz: choose from 0 to 6080 MHz") for hz in (-1e6, 7e9, NAN)),
        *(("gain_db", gain, f"has no gain of {gain:g} dB: choose from 0 to 60") for gain in (-0.5, 60.5, NAN)),
    ],
)
def test_what_is_out_of_range_is_refused(air: Air, half: Make, option: str, value: float, says: str) -> None:
    assert says in refused(half, on(air, "V1", **{f"rx_{option}": value, f"tx_{option}": value}))


@HALVES
@pytest.mark.parametrize(
    ("args", "says"),
    [
        ("type=nonesuch", "no USRP answers to 'type=nonesuch': check its cable and power, and `uhd_find_devices"),
        ("type=vusrp,serial=V 1", "'V 1' cannot be a serial number"),
    ],
)
def test_arguments_that_name_no_device_are_refused(half: Make, args: str, says: str) -> None:
    assert says in refused(half, RadioSettings(args, RATE_SPS, CARRIER_HZ, CARRIER_HZ, options=CABLED))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"channel": 2}, "multi_usrp: RX channel 2 out of range for configured RX frontends"),
        ({"rx_antenna": "horn"}, "vusrp has no antenna horn there"),
    ],
)
def test_a_port_it_has_not_got_is_refused(air: Air, changes: dict[str, Any], says: str) -> None:
    # of the receiver alone: gr-uhd's sink leaves a thread behind that uses what is no more
    assert refused(Receiver, on(air, "V1", options=FrontEndOptions(**changes))).endswith(says)


def test_gnu_radio_that_is_missing_says_how_to_get_it(air: Air, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden: Any = None
    monkeypatch.setitem(sys.modules, "gnuradio", hidden)
    with pytest.raises(FrontEndError, match="apt-get install gnuradio"):
        Receiver(on(air, "V1"))


# -- devices of real families --------------------------------------------------------------------------------

#: master clock at 2.5 Msps
FAMILIES = {"b200": 40e6, "b210": 40e6, "n210-sbx": 100e6, "x310-ubx": 200e6, "n310": 125e6}


@pytest.mark.parametrize("profile", FAMILIES)
def test_device_of_a_family_is_set_up_for_the_default_radio(air: Air, profile: str) -> None:
    args = f"type=vusrp,profile={profile},air={air.name},serial=V1"
    settings = RadioSettings(args, 2.5e6, 2.46e9, 2.41e9, options=FrontEndOptions(clock_source="external"))
    halves = transmitter, receiver = both(settings)
    for half, hz in zip(halves, (2.46e9, 2.41e9), strict=True):
        about = half.about()
        assert (about["rate_sps"], about["master_clock_hz"]) == (2.5e6, FAMILIES[profile])
        assert about["carrier_hz"] == pytest.approx(hz, abs=1.0)
        assert about["gain_db"] == half.gain_db
        assert about["clock_source"] == "external"
        assert about["mboard_serial"] == "V1"
    assert receiver.gain_range_db[0] == 0
    assert transmitter.gain_db > 0


# -- an invented device, with faults that no virtual one has -------------------------------------------------

B200 = RadioSettings("type=b200,serial=31A1", 2.5e6, 2.45e9, 2.41e9, options=CABLED)
MOVED = "USRP 'type=b200,serial=31A1': its other half moved the transmitter"


def both(settings: RadioSettings = B200) -> tuple[Transmitter, Receiver]:
    """Both halves of a device, as a station opens them."""
    transmitter, receiver = Transmitter(settings), Receiver(settings)
    transmitter.check()
    return transmitter, receiver


def with_options(args: str = B200.args, **options: Any) -> RadioSettings:
    return replace(B200, args=args, options=replace(CABLED, **options))


@pytest.mark.parametrize("rate_sps", [2.5e6, 5e6, 7.68e6, 30.72e6])
def test_rate_that_a_b200_gets_by_a_new_master_clock_is_set(monkeypatch: pytest.MonkeyPatch, rate_sps: float) -> None:
    board = Board().install(monkeypatch)
    assert rate_sps not in board.host_rates().values
    both(replace(B200, rate_sps=rate_sps))
    assert board.rates == {"tx": rate_sps, "rx": rate_sps}


def test_rate_that_a_fixed_master_clock_excludes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    board = Board().install(monkeypatch)
    with pytest.raises(FrontEndError, match=r"has no sample rate of 2500000, the nearest is 2507755.102: set the"):
        both(with_options(master_clock_hz=61.44e6 * 2))
    assert [args for _, args, _ in board.opened] == ["type=b200,serial=31A1,master_clock_rate=122880000"]
    both(with_options(master_clock_hz=50e6))
    assert board.tick_hz == 50e6


def test_master_clock_that_a_device_has_not_got_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    board = Board().install(monkeypatch)
    monkeypatch.setattr(Half, "get_clock_rate", lambda half, _board: 100e6)
    for settings in (with_options(master_clock_hz=40e6), with_options("type=usrp2,master_clock_rate=40e6")):
        with pytest.raises(FrontEndError, match="has no master clock of 40 MHz but one of 100 MHz"):
            Receiver(settings)
    assert len(board.opened) == 2


def test_half_that_moves_the_other_ones_rate_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    Board(selfish=True).install(monkeypatch)
    transmitter = Transmitter(replace(B200, rate_sps=30e6))
    transmitter.check()
    Receiver(replace(B200, rate_sps=7.68e6))
    with pytest.raises(FrontEndError, match=f"{MOVED}'s sample rate to 30720000: set radio.master_clock_hz"):
        transmitter.check()


def test_half_that_moves_the_other_ones_carrier_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    Board().install(monkeypatch)
    transmitter, _ = both()
    transmitter.block.set_center_freq(2.41e9)
    with pytest.raises(FrontEndError, match=f"{MOVED} to 2410.000000 MHz: choose other carriers"):
        transmitter.check()


@HALVES
@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ({"off_hz": 25.0}, r"cannot be tuned to 24\d0\.000000 MHz, but to 24\d0\.000025 MHz: choose that"),
        ({"off_db": -6.0}, "was given a gain of 38 dB and has one of 32 dB: set the gain to that"),
        ({"oscillator_locks": False}, "its oscillator does not lock at 24[0-9]0 MHz: choose another carrier"),
    ],
)
def test_setting_that_reads_back_otherwise_is_refused(
    monkeypatch: pytest.MonkeyPatch, half: Make, fault: dict[str, Any], says: str
) -> None:
    monkeypatch.setattr("flowgraphs.frontend._LOCK_S", 0.1)
    Board(**fault).install(monkeypatch)
    with pytest.raises(FrontEndError, match=says):
        half(B200)


def test_small_steps_of_a_device_are_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    Board(off_hz=2.0, off_db=0.5).install(monkeypatch)
    transmitter, _ = both(replace(B200, tx_gain_db=12.25))
    assert transmitter.gain_db == 12.5


@pytest.mark.parametrize(
    "settings", [with_options(clock_source="external"), with_options(f"{B200.args}, clock_source=external")]
)
def test_external_reference_is_set_by_a_call_and_must_be_there(
    monkeypatch: pytest.MonkeyPatch, settings: RadioSettings
) -> None:
    monkeypatch.setattr("flowgraphs.frontend._LOCK_S", 0.1)
    Board().install(monkeypatch)
    with pytest.raises(FrontEndError, match="does not lock to its external reference: check that 10 MHz arrive"):
        both(settings)
    board = Board(present=("external",)).install(monkeypatch)
    transmitter, receiver = both(settings)
    assert board.clock_source == "external"
    # once: to set it again would restart the clocks of the other half
    assert [("set_clock_source", "external") in half.block.calls for half in (transmitter, receiver)] == [True, False]


def test_sources_that_nobody_named_are_the_devices_own(monkeypatch: pytest.MonkeyPatch) -> None:
    board = Board(clock_source="gpsdo", time_source="gpsdo").install(monkeypatch)
    both()
    assert (board.clock_source, board.time_source) == ("gpsdo", "gpsdo")
    both(with_options(time_source="external"))
    assert (board.clock_source, board.time_source) == ("gpsdo", "external")


def test_every_option_reaches_its_half(monkeypatch: pytest.MonkeyPatch) -> None:
    board = Board().install(monkeypatch)
    transmitter, receiver = both(
        with_options(
            channel=1,
            tx_subdevice="A:A",
            rx_subdevice="A:B",
            tx_antenna="TX/RX",
            rx_antenna="RX2",
            lo_offset_hz=3e6,
            bandwidth_hz=4e6,
            stream_args="spp=200",
        )
    )
    for half, name, subdevice, antenna, hz in (
        (transmitter, "tx", "A:A", "TX/RX", B200.tx_hz),
        (receiver, "rx", "A:B", "RX2", B200.rx_hz),
    ):
        [stream] = [stream for opened, _, stream in board.opened if opened == name]
        assert (stream.channels, stream.args) == ([1], "spp=200")
        assert ("set_subdev_spec", subdevice, 0) in half.block.calls
        assert ("set_antenna", antenna) in half.block.calls
        assert ("set_center_freq", SimpleNamespace(hz=hz, offset_hz=3e6)) in half.block.calls
        assert half.block.get_bandwidth() == 4e6
    with pytest.raises(FrontEndError, match=r"has no analog bandwidth of 0\.1 MHz but one of 0\.2 MHz"):
        both(with_options(bandwidth_hz=100e3))


def test_one_program_at_a_time_looks_for_devices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("flowgraphs.frontend._USB_DEVICES", tmp_path)
    inside, most = [], []

    def claim() -> None:
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.05)
        inside.pop()

    Board(on_open=claim).install(monkeypatch)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: Receiver(B200), range(4)))
    assert most == [1] * 4


def test_the_doctor_keeps_others_from_looking_for_devices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("flowgraphs.frontend._USB_DEVICES", tmp_path)
    free = []

    def find(args: str) -> list[str]:
        folder = os.open(tmp_path, os.O_RDONLY)
        with suppress(BlockingIOError):
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free.append(args)
        os.close(folder)
        return []

    def make(args: str) -> None:
        find(args)
        raise RuntimeError("No devices found")

    monkeypatch.setitem(sys.modules, "uhd", SimpleNamespace(find=find, usrp=SimpleNamespace(MultiUSRP=make)))
    assert probe._open("type=b200", None) == {"fits": [], "fault": "no USRP answers"}
    assert free == []
    find("type=b200")
    assert free == ["type=b200"]


@pytest.mark.parametrize(
    ("args", "options", "guard"),
    [
        ("type=vusrp,serial=V1", {}, (0, 0)),
        ("type=vusrp,profile=ideal", {}, (0, 0)),
        ("type=vusrp,profile=b200", {}, (25, 25 + 32)),
        ("type=b200", {}, (25, 25 + 32)),
        ("addr=192.168.10.2", {"head_us": 100.0, "tail_us": 0.0}, (250, 0)),
        ("type=vusrp,serial=V1", {"tail_us": 3.0}, (0, 8)),
    ],
)
def test_bursts_have_the_silence_that_their_device_needs(
    args: str, options: dict[str, Any], guard: tuple[int, int]
) -> None:
    settings = RadioSettings(args, 2.5e6, tx_hz=1e9, rx_hz=1e9, options=FrontEndOptions(**options))
    assert settings.guard() == guard
