"""Device families as an outsider sees them, through UHD.

The facts were typed from UHD 4.3's sources and manual, not from our profiles: each row names its places.
"""

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.harness.radio_process import RadioProcess
from tests.vusrp.conftest import Bench, Programs

PROFILES = Path(__file__).resolve().parents[2] / "flowgraphs" / "vusrp" / "profiles"
MEGA = 1e6


@dataclass(frozen=True)
class Side:
    antennas: list[str]
    gains: dict[str, tuple[float, float, float]]
    frequencies: tuple[float, float]
    bandwidths: tuple[float, float]
    sensors: set[str]
    names: list[str]


@dataclass(frozen=True)
class Family:
    device: str
    board: str
    subdevices: str
    rx: Side
    tx: Side
    clocks: list[str]
    times: list[str]
    board_sensors: set[str]
    master_clock: float
    #: rates before any has been set: the lowest and the highest
    rates: tuple[float, float]
    #: asked for, got, with this master clock, and whether UHD warns of a filter
    coerced: list[tuple[float, float, float, bool]]
    #: samples of a packet by wire format
    packets: dict[str, int]
    link: float
    refused: dict[str, str] = field(default_factory=dict)


def _b2xx(board: str, subdevices: str, ends: list[str]) -> Family:
    # manual, "USRP B2x0 Series": 76 dB and 89.8 dB of gain, 50 MHz to 6 GHz, 200 kHz to 56 MHz; ad936x_manager.cpp,
    # rx_dsp_core_3000.cpp, b200_io_impl.cpp for the rest
    frequencies, bandwidths = (50 * MEGA, 6000 * MEGA), (0.2 * MEGA, 56 * MEGA)
    return Family(
        device="B-Series Device",
        board=board,
        subdevices=subdevices,
        rx=Side(
            ["TX/RX", "RX2"],
            {"PGA": (0, 76, 1)},
            frequencies,
            bandwidths,
            {"lo_locked", "temp", "rssi"},
            [f"FE-RX{end}" for end in ends],
        ),
        tx=Side(
            ["TX/RX"],
            {"PGA": (0, 89.75, 0.25)},
            frequencies,
            bandwidths,
            {"lo_locked", "temp"},
            [f"FE-TX{end}" for end in ends],
        ),
        clocks=["internal", "external", "gpsdo"],
        times=["none", "internal", "external", "gpsdo"],
        board_sensors={"ref_locked"},
        master_clock=16 * MEGA,
        rates=(16 * MEGA / 512, 16 * MEGA),
        # 61.44 MHz, the highest clock, over the rate, rounded down to a power of two: 16 for 2.5 Msps, 32 for 1 Msps,
        # 2 for 30.72 Msps, which is left at 1 by the manager's rule; 2 for 20 Msps likewise
        coerced=[
            (2.5 * MEGA, 2.5 * MEGA, 40 * MEGA, False),
            (1 * MEGA, 1 * MEGA, 32 * MEGA, False),
            (3 * MEGA, 3 * MEGA, 48 * MEGA, False),
            (20 * MEGA, 20 * MEGA, 20 * MEGA, False),
            (30.72 * MEGA, 30.72 * MEGA, 30.72 * MEGA, False),
            (7.68 * MEGA, 7.68 * MEGA, 61.44 * MEGA, False),
            (10_000.0, 40.96 * MEGA / 512, 40.96 * MEGA, False),
        ],
        packets={"sc16": 2040, "sc12": 2720, "sc8": 4080},
        link=500e6,
        refused={"gpsdo": "gpsdo"},
    )


FAMILIES = {"b200": _b2xx("B200", "A:A", ["1"]), "b210": _b2xx("B210", "A:A A:B", ["2", "1"])}


def test_every_profile_has_its_facts() -> None:
    assert {path.stem for path in PROFILES.glob("*.cpp")} - {"registry", "ideal"} == set(FAMILIES)


@pytest.fixture(params=FAMILIES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def device(name: str, bench: Bench) -> Iterator[RadioProcess]:
    with closing(bench.family(name)) as radio:
        yield radio


def range_of(radio: RadioProcess, call: str) -> tuple[float, float]:
    first, last = radio.evaluate(f"[usrp.{call}.start(), usrp.{call}.stop()]")
    return first, last


def test_names_and_ranges(name: str, device: RadioProcess) -> None:
    family = FAMILIES[name]
    info = device.evaluate("dict(usrp.get_usrp_rx_info())")
    assert (info["mboard_id"], info["mboard_serial"]) == (family.board, "V1")
    assert device.evaluate("usrp.get_clock_sources(0)") == family.clocks
    assert device.evaluate("usrp.get_time_sources(0)") == family.times
    assert set(device.evaluate("usrp.get_mboard_sensor_names(0)")) == family.board_sensors
    assert device.evaluate("usrp.get_mboard_sensor('ref_locked').to_bool()") is True
    for direction, side in (("rx", family.rx), ("tx", family.tx)):
        assert device.evaluate(f"usrp.get_{direction}_subdev_spec().to_string()") == family.subdevices
        assert device.evaluate(f"usrp.get_{direction}_num_channels()") == len(side.names)
        for channel, front_end in enumerate(side.names):
            assert device.evaluate(f"usrp.get_{direction}_subdev_name({channel})") == front_end
            assert device.evaluate(f"usrp.get_{direction}_antennas({channel})") == side.antennas
            assert set(device.evaluate(f"usrp.get_{direction}_gain_names({channel})")) == set(side.gains)
            for gain, (first, last, step) in side.gains.items():
                call = f"get_{direction}_gain_range('{gain}', {channel})"
                assert range_of(device, call) == (first, last)
                assert device.evaluate(f"usrp.{call}.step()") == step
            assert range_of(device, f"get_{direction}_freq_range({channel})")[0] <= side.frequencies[0]
            assert range_of(device, f"get_fe_{direction}_freq_range({channel})") == side.frequencies
            assert range_of(device, f"get_{direction}_bandwidth_range({channel})") == side.bandwidths
            assert set(device.evaluate(f"usrp.get_{direction}_sensor_names({channel})")) == side.sensors


def test_rates_before_and_after_they_are_set(name: str, device: RadioProcess) -> None:
    family = FAMILIES[name]
    assert device.call("get_master_clock_rate") == family.master_clock
    for direction in ("rx", "tx"):
        assert range_of(device, f"get_{direction}_rates(0)")[1] == family.rates[1]
    assert range_of(device, "get_rx_rates(0)")[0] == family.rates[0]


def test_rates_become_those_that_the_family_has(name: str, bench: Bench) -> None:
    for number, (asked, got, clock, warns) in enumerate(FAMILIES[name].coerced):
        with closing(bench.family(name, serial=f"C{number}")) as radio:
            radio.call("set_rx_rate", asked)
            assert radio.call("get_rx_rate") == pytest.approx(got, rel=1e-12)
            assert radio.call("get_master_clock_rate") == pytest.approx(clock, rel=1e-12)
        assert ("is odd" in radio.said) is warns
        assert ("does not support the requested RX sample rate" in radio.said) is (abs(got - asked) > 1)


def test_packets_hold_what_a_frame_of_the_link_does(name: str, device: RadioProcess) -> None:
    for wire, samples in FAMILIES[name].packets.items():
        args = f"uhd.usrp.StreamArgs('fc32', '{wire}')"
        assert device.evaluate(f"usrp.get_rx_stream({args}).get_max_num_samps()") == samples


def test_sources_that_are_not_fitted_are_refused(name: str, device: RadioProcess) -> None:
    for source, says in FAMILIES[name].refused.items():
        for kind in ("clock", "time"):
            with pytest.raises(RuntimeError, match=says):
                device.call(f"set_{kind}_source", source)
    with pytest.raises(RuntimeError, match="no clock source"):
        device.call("set_clock_source", "atomic")


def test_find_and_probe_name_the_product(name: str, programs: Programs) -> None:
    family = FAMILIES[name]
    found = programs.run("uhd_find_devices", "--args", f"{programs.args},profile={name}")
    assert re.findall(r"product: (\S+)", found) == [family.board] * 2
    shown = programs.run("uhd_usrp_probe", "--args", f"{programs.args},profile={name}")
    assert f"Device: {family.device}" in shown
    assert f"Mboard: {family.board}" in shown
    assert len(re.findall("RX Frontend: ", shown)) == len(family.rx.names)


def test_an_unknown_profile_is_refused_with_those_there_are(programs: Programs) -> None:
    said = programs.run("uhd_usrp_probe", "--args", f"{programs.args},profile=b211", code=255)
    assert "there is no profile b211: take one of b200, b210" in said


# -- B2xx: ad936x_manager.cpp:get_auto_tick_rate, b200_io_impl.cpp:set_auto_tick_rate --


def test_the_halves_of_a_b210_share_a_clock_that_serves_both(bench: Bench) -> None:
    with closing(bench.family("b210")) as radio:
        radio.call("set_rx_rate", 2.5e6)
        radio.call("set_tx_rate", 2.5e6)
        assert (radio.call("get_rx_rate"), radio.call("get_tx_rate")) == (2.5e6, 2.5e6)
        assert radio.call("get_master_clock_rate") == 40e6
        radio.call("set_tx_rate", 2e6)  # their least common multiple is 10 MHz
        assert (radio.call("get_rx_rate"), radio.call("get_tx_rate")) == (2.5e6, 2e6)
        assert radio.call("get_master_clock_rate") == 40e6
        radio.call("set_tx_rate", 3e6)  # 15 MHz, times 4
        assert (radio.call("get_rx_rate"), radio.call("get_tx_rate")) == (2.5e6, 3e6)
        assert radio.call("get_master_clock_rate") == 60e6


def test_a_b210_warns_when_no_clock_serves_both_rates(bench: Bench) -> None:
    with closing(bench.family("b210")) as radio:
        radio.call("set_rx_rate", 2.5e6)
        radio.call("set_tx_rate", 3.84e6)  # the least common multiple is 480 MHz
        assert radio.call("get_rx_rate") == 2.5e6
        assert radio.call("get_tx_rate") == 4e6  # 40 MHz over 10
    assert "no master clock fits" in radio.said
    with closing(bench.family("b210", serial="V2")) as radio, pytest.raises(RuntimeError, match="exceeds"):
        radio.call("set_rx_rate", 70e6)


def test_two_channels_halve_the_clock_of_a_b210(bench: Bench) -> None:
    with closing(bench.family("b210")) as radio:
        for channel in (0, 1):
            radio.call("set_rx_rate", 2.5e6, channel)
        assert radio.call("get_master_clock_rate") == 40e6
        radio.open("rx", (0, 1))
        assert radio.call("get_master_clock_rate") == 20e6
        assert radio.call("get_rx_rate", 1) == 2.5e6
        with pytest.raises(RuntimeError, match="two channels of one direction with one of the other"):
            radio.open("tx", (0,))


def test_a_master_clock_that_is_given_stays(bench: Bench) -> None:
    with closing(bench.family("b210", args=",master_clock_rate=30e6")) as radio:
        radio.call("set_rx_rate", 2.5e6)
        assert radio.call("get_master_clock_rate") == 30e6
        assert radio.call("get_rx_rate") == 2.5e6
        radio.call("set_rx_rate", 2e6)  # over 15, which no half-band filter takes
        radio.call("set_rx_rate", 11e6)
        assert radio.call("get_rx_rate") == 10e6
    assert "decimation of 15 is odd" in radio.said
    assert "does not support the requested RX sample rate" in radio.said


def test_an_ad9361_tunes_in_steps_and_the_dsp_takes_the_rest(bench: Bench) -> None:
    with closing(bench.family("b210")) as radio:
        radio.call("set_rx_rate", 2.5e6)
        radio.call("set_rx_rate", 2.5e6, 1)
        tuned = "(lambda r: [r.actual_rf_freq, r.actual_dsp_freq])(usrp.set_rx_freq(uhd.types.TuneRequest(2.4501e9)))"
        oscillator, dsp = radio.evaluate(tuned)
        step = 80e6 / 8388593 / 4  # at 2.45 GHz the synthesizer is divided by four
        assert 0 < 2.4501e9 - oscillator < step
        assert (oscillator / step) == pytest.approx(round(oscillator / step), abs=1e-3)
        assert oscillator - dsp == pytest.approx(2.4501e9, abs=40e6 / 2**32)
        # one oscillator for both receivers
        assert radio.evaluate("usrp.get_rx_freq(1)") == pytest.approx(oscillator, abs=1e-3)
        assert radio.evaluate("usrp.get_tx_freq(0)") == pytest.approx(100e6, abs=10)


def test_clock_source_in_the_arguments_of_a_b210_does_nothing(bench: Bench) -> None:
    with closing(bench.family("b210", args=",clock_source=external,time_source=external")) as radio:
        assert radio.evaluate("[usrp.get_clock_source(0), usrp.get_time_source(0)]") == ["internal", "internal"]
        radio.call("set_clock_source", "external")
        assert radio.evaluate("usrp.get_clock_source(0)") == "external"


def test_usb_2_is_a_slower_link(bench: Bench) -> None:
    with closing(bench.family("b210", args=",link=usb2")) as radio:
        radio.call("set_rx_rate", 20e6)
        radio.open("rx")
    assert "exceeds the maximum capacity of the connection" in radio.said
    with pytest.raises(RuntimeError, match="no link wifi: take one of usb3, usb2"):
        bench.family("b210", serial="V2", args=",link=wifi")
