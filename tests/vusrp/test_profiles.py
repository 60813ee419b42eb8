"""Device families as an outsider sees them, through UHD.

The facts were typed from UHD 4.3's sources and manual, not from our profiles: each row names its places.
"""

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
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
    #: a frequency, the step of the receive oscillator there, whether the channels of a board share it
    oscillator: tuple[float, float]
    time_source: str = "internal"
    #: what the device arguments clock_source=external,time_source=external lead to
    from_arguments: tuple[str, str] = ("internal", "internal")
    product: str = ""
    refused: list[tuple[str, str]] = field(default_factory=list)


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
        # ad9361_device.cpp:_tune_helper: 80 MHz over 8388593, divided by 4 at 2.45 GHz
        oscillator=(2450.1 * MEGA, 80 * MEGA / 8388593 / 4),
        product=board,
        refused=[("clock", "gpsdo"), ("time", "gpsdo")],
    )


Gains = dict[str, tuple[float, float, float]]


def _daughterboard(antennas: list[str], gains: Gains, band: tuple[float, float], bandwidth: float, *names: str) -> Side:
    return Side(antennas, gains, band, (bandwidth, bandwidth), {"lo_locked"}, list(names))


PGA0 = {"PGA0": (0.0, 31.5, 0.5)}
RX, TX = ["TX/RX", "RX2", "CAL"], ["TX/RX", "CAL"]
SBX, UBX = (400 * MEGA, 4400 * MEGA), (10 * MEGA, 6000 * MEGA)

FAMILIES = {
    "b200": _b2xx("B200", "A:A", ["1"]),
    "b210": _b2xx("B210", "A:A A:B", ["2", "1"]),
    # usrp2_impl.cpp, rx_dsp_core_200.cpp, db_sbx_common.cpp; manual, "USRP2 and N2x0 Series": 100 MHz, over even
    # numbers for flat filters
    "n210-sbx": Family(
        device="USRP2 / N-Series Device",
        board="N210r4",
        subdevices="A:0",
        rx=_daughterboard(
            RX, PGA0 | {"ADC-digital": (0, 6, 0.5), "ADC-fine": (0, 0.5, 0.05)}, SBX, 40 * MEGA, "SBXv4 RX"
        ),
        tx=_daughterboard(TX, PGA0, SBX, 40 * MEGA, "SBXv4 TX"),
        clocks=["internal", "external", "mimo"],
        times=["none", "external", "_external_", "mimo"],
        board_sensors={"ref_locked", "mimo_locked"},
        master_clock=100 * MEGA,
        rates=(100 * MEGA / 512, 50 * MEGA),
        coerced=[
            (2.5 * MEGA, 2.5 * MEGA, 100 * MEGA, False),
            (3 * MEGA, 100 * MEGA / 33, 100 * MEGA, True),
            (7.68 * MEGA, 100 * MEGA / 13, 100 * MEGA, True),
            (60 * MEGA, 50 * MEGA, 100 * MEGA, False),
            (0.3 * MEGA, 100 * MEGA / 332, 100 * MEGA, False),  # multiples of four from 256 on
        ],
        packets={"sc16": 363, "sc8": 726},
        link=125e6,
        # adf435x.hpp: 25 MHz over 4095
        oscillator=(2450.001 * MEGA, 25 * MEGA / 4095),
        time_source="none",
        from_arguments=("internal", "none"),
        refused=[("clock", "gpsdo"), ("time", "internal")],
    ),
    # x300_radio_control.cpp, ddc_block_control.cpp, db_ubx.cpp
    "x310-ubx": Family(
        device="X-Series Device",
        board="X310",
        subdevices="A:0 B:0",
        rx=_daughterboard(RX, PGA0 | {"ADC-digital": (0, 6, 0.5)}, UBX, 160 * MEGA, "UBX RX", "UBX RX"),
        tx=_daughterboard(TX, PGA0, UBX, 160 * MEGA, "UBX TX", "UBX TX"),
        clocks=["internal", "external", "gpsdo"],
        times=["internal", "external", "gpsdo"],
        board_sensors={"ref_locked"},
        master_clock=200 * MEGA,
        rates=(200 * MEGA / 1020, 200 * MEGA),
        coerced=[
            (2.5 * MEGA, 2.5 * MEGA, 200 * MEGA, False),
            (3 * MEGA, 200 * MEGA / 67, 200 * MEGA, True),
            (7.68 * MEGA, 200 * MEGA / 26, 200 * MEGA, False),
            (80 * MEGA, 100 * MEGA, 200 * MEGA, False),  # halfway between two factors: the lower one
            (0.1 * MEGA, 200 * MEGA / 1020, 200 * MEGA, False),
        ],
        packets={"sc16": 1996},
        link=10e9 / 8,
        # max287x.hpp: 50 MHz over 4095
        oscillator=(2450.001 * MEGA, 50 * MEGA / 4095),
        from_arguments=("external", "external"),
        product="X310",
        refused=[("clock", "gpsdo"), ("time", "gpsdo")],
    ),
    # magnesium_constants.hpp, magnesium_radio_control.cpp, n3xx.py
    "n310": Family(
        device="N300-Series Device",
        board="ni-n3xx-V1",
        subdevices="A:0 A:1 B:0 B:1",
        rx=Side(
            ["TX/RX", "RX2", "CAL", "LOCAL"],
            {"all": (0, 75, 0.5)},
            (1 * MEGA, 6000 * MEGA),
            (20 * MEGA, 100 * MEGA),
            {"lo_locked", "lowband_lo_locked", "ad9371_lo_locked"},
            ["Magnesium"] * 4,
        ),
        tx=Side(
            ["TX/RX"],
            {"all": (0, 65, 0.5)},
            (1 * MEGA, 6000 * MEGA),
            (20 * MEGA, 100 * MEGA),
            {"lo_locked", "lowband_lo_locked", "ad9371_lo_locked"},
            ["Magnesium"] * 4,
        ),
        clocks=["external", "internal", "gpsdo"],
        times=["internal", "external", "gpsdo", "sfp0"],
        board_sensors={"ref_locked", "gps_locked", "temp", "fan"},
        master_clock=125 * MEGA,
        rates=(125 * MEGA / 1020, 125 * MEGA),
        coerced=[
            (2.5 * MEGA, 2.5 * MEGA, 125 * MEGA, False),
            (3 * MEGA, 125 * MEGA / 42, 125 * MEGA, False),
            (5 * MEGA, 5 * MEGA, 125 * MEGA, True),
            (7.68 * MEGA, 125 * MEGA / 16, 125 * MEGA, False),
        ],
        packets={"sc16": 2000},
        link=10e9 / 8,
        oscillator=(2450_100_000.7, 1.0),  # ad937x_device.cpp:tune, whole Hz
        from_arguments=("external", "external"),
        product="n310",
        refused=[("time", "sfp0")],
    ),
}


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
    assert device.evaluate("[usrp.get_clock_source(0), usrp.get_time_source(0)]") == ["internal", family.time_source]
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


def test_rates_become_those_that_the_family_has(name: str, device: RadioProcess) -> None:
    coerced = FAMILIES[name].coerced
    for asked, got, clock, _ in coerced:
        device.call("set_rx_rate", asked, 0)
        assert device.call("get_rx_rate") == pytest.approx(got, rel=1e-12)
        assert device.call("get_master_clock_rate") == pytest.approx(clock, rel=1e-12)
    device.close()
    assert device.said.count("is odd") == sum(warns for *_, warns in coerced)
    warnings = device.said.count("does not support the requested RX sample rate")
    assert warnings == sum(abs(got - asked) > 1 for asked, got, *_ in coerced)


TUNED = "(lambda r: [r.actual_rf_freq, r.actual_dsp_freq])(usrp.set_{}_freq(uhd.types.TuneRequest({}), {}))"


def test_the_oscillator_tunes_in_steps_and_the_dsp_takes_the_rest(name: str, device: RadioProcess) -> None:
    family = FAMILIES[name]
    wanted, step = family.oscillator
    last = len(family.rx.names) - 1
    before = device.evaluate(f"usrp.get_rx_freq({last})")
    oscillator, dsp = device.evaluate(TUNED.format("rx", wanted, 0))
    assert 0 < abs(wanted - oscillator) < step
    assert oscillator / step == pytest.approx(round(oscillator / step), abs=1e-3)
    assert oscillator - dsp == pytest.approx(wanted, abs=family.master_clock / 2**24)
    oscillator, dsp = device.evaluate(TUNED.format("tx", wanted, 0))
    assert oscillator + dsp == pytest.approx(wanted, abs=family.master_clock / 2**24)
    # AD936x and AD9371 have one oscillator for both channels of a direction; daughterboards have their own
    if last:
        after = device.evaluate(f"usrp.get_rx_freq({last})")
        assert after == (pytest.approx(wanted, abs=3) if name == "b210" else before)
    if name == "n310":
        assert device.evaluate("usrp.get_rx_freq(1)") == pytest.approx(wanted, abs=1)


def test_sources_in_the_arguments_are_heeded_where_the_family_does(name: str, bench: Bench) -> None:
    with closing(bench.family(name, args=",clock_source=external,time_source=external")) as radio:
        sources = radio.evaluate("[usrp.get_clock_source(0), usrp.get_time_source(0)]")
        assert tuple(sources) == FAMILIES[name].from_arguments


def test_packets_hold_what_a_frame_of_the_link_does(name: str, device: RadioProcess) -> None:
    for wire, samples in FAMILIES[name].packets.items():
        args = f"uhd.usrp.StreamArgs('fc32', '{wire}')"
        assert device.evaluate(f"usrp.get_rx_stream({args}).get_max_num_samps()") == samples


def test_sources_that_are_not_there_are_refused(name: str, device: RadioProcess) -> None:
    for kind, source in FAMILIES[name].refused:
        with pytest.raises(RuntimeError, match=f"vusrp has no .*{source}"):
            device.call(f"set_{kind}_source", source)
    with pytest.raises(RuntimeError, match="no clock source"):
        device.call("set_clock_source", "atomic")


def test_find_and_probe_name_the_product(name: str, programs: Programs) -> None:
    family = FAMILIES[name]
    found = programs.run("uhd_find_devices", "--args", f"{programs.args},profile={name}")
    assert re.findall(r"product: (\S+)", found) == [family.product] * 2 * bool(family.product)
    assert re.findall(r"profile: (\S+)", found) == [name] * 2
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


@pytest.mark.parametrize("profile", ["b210", "x310-ubx"])
def test_an_external_reference_that_is_absent_is_not_locked_to(profile: str, bench: Bench) -> None:
    with closing(bench.family(profile, args=",reference=absent")) as radio:
        locked = "usrp.get_mboard_sensor('ref_locked', 0).to_bool()"
        assert radio.evaluate(locked)
        radio.call("set_clock_source", "external")
        assert not radio.evaluate(locked)
    with pytest.raises(RuntimeError, match="reference=gone is neither present nor absent"):
        bench.family(profile, serial="V2", args=",reference=gone")


def test_clock_source_can_be_set_where_the_arguments_do_nothing(bench: Bench) -> None:
    with closing(bench.family("b210")) as radio:
        radio.call("set_clock_source", "external")
        assert radio.evaluate("usrp.get_clock_source(0)") == "external"


def test_usb_2_is_a_slower_link(bench: Bench) -> None:
    with closing(bench.family("b210", args=",link=usb2")) as radio:
        radio.call("set_rx_rate", 20e6)
        radio.open("rx")
    assert "exceeds the maximum capacity of the connection" in radio.said
    with pytest.raises(RuntimeError, match="no link wifi: take one of usb3, usb2"):
        bench.family("b210", serial="V2", args=",link=wifi")


# -- Ethernet --


def test_the_master_clocks_of_the_ethernet_families(bench: Bench) -> None:
    with closing(bench.family("x310-ubx", args=",master_clock_rate=184.32e6")) as radio:
        radio.call("set_rx_rate", 7.68e6)
        assert (radio.call("get_rx_rate"), radio.call("get_master_clock_rate")) == (7.68e6, 184.32e6)
        radio.call("set_master_clock_rate", 200e6)
        assert radio.call("get_master_clock_rate") == 184.32e6
    with closing(bench.family("n310", serial="V2")) as radio:
        radio.call("set_master_clock_rate", 153.6e6)
        radio.call("set_rx_rate", 3.84e6)
        assert (radio.call("get_rx_rate"), radio.call("get_master_clock_rate")) == (3.84e6, 153.6e6)
    with closing(bench.family("n210-sbx", serial="V3", args=",master_clock_rate=52e6")) as radio:
        assert radio.call("get_master_clock_rate") == 100e6
    with pytest.raises(RuntimeError, match=r"master_clock_rate of profile x310-ubx must be one of 184\.32e6, 200e6"):
        bench.family("x310-ubx", serial="V4", args=",master_clock_rate=100e6")


def test_an_n210_counts_the_gains_of_board_and_converter(bench: Bench) -> None:
    with closing(bench.family("n210-sbx")) as radio:
        assert range_of(radio, "get_rx_gain_range(0)") == (0, 38)
        assert radio.evaluate("[usrp.set_rx_gain(36.5, 0), usrp.get_rx_gain(0)][1]") == pytest.approx(36.5)
        [device] = bench.air.devices()
        assert device.rx[0].gain_db == pytest.approx(36.5)


def test_gigabit_ethernet_has_smaller_packets(bench: Bench) -> None:
    with closing(bench.family("x310-ubx", args=",link=1gbe")) as radio:
        assert radio.open("rx") == 364


def test_families_hear_each_other_at_the_levels_of_their_gains(bench: Bench) -> None:
    """+10 dBm of a B210 at full gain, -60 dB, into an X310 that is full at -20 dBm with 20 dB."""
    sender, receiver = bench.family("b210"), bench.family("x310-ubx", serial="V2")
    for radio, direction in ((sender, "tx"), (receiver, "rx")):
        radio.call(f"set_{direction}_rate", 1e6)
        radio.tune(direction, 2e9)
    sender.gain("tx", 69.75)  # -10 dBm
    receiver.gain("rx", 20.0)
    bench.air.set_link("V1", "V2", gain_db=-20)
    sender.open("tx")
    sender.send(np.full(5_000, 0.5, np.complex64), at=4_000)
    heard = receiver.listen(5_000, at=4_000)[0]
    assert np.abs(heard[1_000:4_000]) == pytest.approx(np.full(3_000, 0.5 * 10 ** (-10 / 20)), rel=1e-3)
