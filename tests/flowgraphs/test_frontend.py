"""Front ends on a virtual USRP: what they set, and what they say when it cannot be."""

import math
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from flowgraphs.air import Air
from flowgraphs.frontend import FrontEndError, RadioSettings, Receiver, Transmitter
from tests.harness.radios import CARRIER_HZ, RATE_SPS, needs_vusrp, on, quiet_air

# no flowgraph runs, so nothing can be late
pytestmark = [needs_vusrp, pytest.mark.patient]

HALVES = pytest.mark.parametrize("half", [Receiver, Transmitter])
NAN = float("nan")
Half = Callable[[RadioSettings], Receiver | Transmitter]


@pytest.fixture
def air() -> Iterator[Air]:
    with quiet_air() as air:
        yield air


def refused(half: Half, settings: RadioSettings) -> str:
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
def test_without_a_gain_it_is_the_middle_of_the_range(air: Air, half: Half) -> None:
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
    receiver = Receiver(on(air, "V1", rx_hz=915e6, rx_gain_db=7.0, channel=1))
    [device] = air.devices()
    assert (device.rx[1].freq_hz, device.rx[1].gain_db) == (915e6, 7.0)
    assert device.rx[0].freq_hz != 915e6
    del receiver


@HALVES
@pytest.mark.parametrize("rate_sps", [0.0, -1e6, 1.0, 3e6, 1e9, NAN])
def test_a_rate_it_has_not_got_is_refused_and_the_nearest_named(air: Air, half: Half, rate_sps: float) -> None:
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
def test_what_is_out_of_range_is_refused(air: Air, half: Half, option: str, value: float, says: str) -> None:
    assert says in refused(half, on(air, "V1", **{f"rx_{option}": value, f"tx_{option}": value}))


@HALVES
@pytest.mark.parametrize(
    ("args", "says"),
    [
        ("type=nonesuch", "no USRP answers to 'type=nonesuch': check its cable and power, and `uhd_find_devices"),
        ("type=vusrp,serial=V 1", "'V 1' cannot be a serial number"),
    ],
)
def test_arguments_that_name_no_device_are_refused(half: Half, args: str, says: str) -> None:
    assert says in refused(half, RadioSettings(args, RATE_SPS, CARRIER_HZ, CARRIER_HZ))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"channel": 2}, "multi_usrp: RX channel 2 out of range for configured RX frontends"),
        ({"antenna": "horn"}, "vusrp has no antenna horn there"),
    ],
)
def test_a_port_it_has_not_got_is_refused(air: Air, changes: dict[str, Any], says: str) -> None:
    # of the receiver alone: gr-uhd's sink leaves a thread behind that uses what is no more
    assert refused(Receiver, on(air, "V1", **changes)).endswith(says)


def test_gnu_radio_that_is_missing_says_how_to_get_it(air: Air, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden: Any = None
    monkeypatch.setitem(sys.modules, "gnuradio", hidden)
    with pytest.raises(FrontEndError, match="apt-get install gnuradio"):
        Receiver(on(air, "V1"))
