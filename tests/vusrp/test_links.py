"""What the link between computer and device does to samples: wire formats (rx_dsp_core_3000.cpp:setup) and limits."""

import numpy as np
import pytest

from tests.vusrp.conftest import Bench, noise_like


@pytest.mark.parametrize(
    ("wire", "args", "step", "largest"),
    [
        ("sc16", "", 1 / 32767, 1.0),
        ("sc12", "", 16 / 32767, 2047 * 16 / 32767),
        ("sc8", "", 256 / 32767, 127 * 256 / 32767),
        ("sc8", "peak=0.25", 64 / 32767, 127 * 64 / 32767),
        ("fc32", "", 0.0, 1.0),
    ],
)
@pytest.mark.parametrize("direction", ["rx", "tx"])
def test_samples_are_quantised_to_the_wire_format(
    bench: Bench, direction: str, wire: str, args: str, step: float, largest: float
) -> None:
    """A device sends to an ideal one, or hears it: both leave amplitudes as they are."""
    family, ideal = bench.family("b210"), bench.family("ideal", serial="V2")
    sender, receiver = (family, ideal) if direction == "tx" else (ideal, family)
    bench.air.set_link("V1" if direction == "tx" else "V2", "V2" if direction == "tx" else "V1", gain_db=-30.0)
    for radio, end in ((sender, "tx"), (receiver, "rx")):
        radio.call(f"set_{end}_rate", 1e6)
        radio.tune(end, 2e9)
        radio.open(end, wire=wire if radio is family else "sc16", args=args if radio is family else "")
    sender.gain("tx", 59.75 if direction == "tx" else 20.0)  # -20 dBm
    receiver.gain("rx", 40.0)  # full at -50 dBm
    sent = noise_like(20_000, seed=4)
    sent[-1] = 1 + 1j
    sender.send(sent, at=4_000)
    # the oscillators differ by up to 2.4 Hz and the DSP by a fraction of one: the samples have not turned
    heard = receiver.listen(20_000, at=4_000)[0]
    if step == 0.0:
        assert heard == pytest.approx(sent, abs=1e-4)
        return
    whole = heard[:-1].view(np.float32) / step
    if direction == "rx":
        assert whole == pytest.approx(np.round(whole), abs=0.01)
    fits = np.abs(sent.view(np.float32)[:-2]) <= largest
    error = (heard.view(np.float32)[:-2] - sent.view(np.float32)[:-2])[fits]
    assert np.abs(error).max() < 0.55 * step + 1e-4
    assert np.std(error) == pytest.approx(step / np.sqrt(12), rel=0.1, abs=3e-5)
    assert heard[-1] == pytest.approx(largest * (1 + 1j), abs=1e-4)


def test_a_link_that_is_too_slow_loses_what_it_cannot_carry(bench: Bench) -> None:
    """USB 2 has 53.248 MB/s (b200_impl.hpp); 20 Msps of four octets are 80."""
    radio = bench.family("b210", args=",link=usb2")
    radio.call("set_rx_rate", 20e6, 0)
    radio.start()
    received, overflows, first, last = 0, 0, None, 0
    while overflows < 12:
        _, piece = radio.recv(2_040)
        overflows += piece.error == "overflow"
        assert piece.error in ("none", "overflow")
        if piece.error == "none":
            first = piece.at if first is None else first
            last = piece.at  # in microseconds
            received += piece.n
    assert first is not None
    assert received / (last - first) / 20 == pytest.approx(53.248 / 80, rel=0.1)
    radio.close()
    assert "O" in radio.said


def test_a_link_that_is_fast_enough_loses_nothing(bench: Bench) -> None:
    radio = bench.family("b210", args=",link=usb2")
    radio.call("set_rx_rate", 10e6, 0)
    radio.start()
    assert {radio.recv(2_040)[1].error for _ in range(300)} == {"none"}


@pytest.mark.realtime
def test_a_burst_that_the_link_cannot_carry_runs_dry(live_bench: Bench) -> None:
    radio = live_bench.family("b210", args=",link=usb2")
    radio.call("set_tx_rate", 20e6, 0)
    radio.send(np.full(2_000_000, 0.5, np.complex64))
    message = radio.message()
    assert message is not None
    assert message.event == "underflow_in_packet"
