"""What arrives of what was sent: levels, delays, frequencies, moments; on lockstep airs, where each sample is known."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.vusrp.conftest import Bench, noise_like

Samples = NDArray[np.complex64]

RATE = 1e6
CARRIER = 1e9


def tone(n: int, cycles_per_sample: float, level: float = 0.5) -> Samples:
    return (level * np.exp(2j * np.pi * cycles_per_sample * np.arange(n))).astype(np.complex64)


def level_db(samples: Samples) -> float:
    return float(10 * np.log10(np.mean(np.abs(samples.astype(complex)) ** 2)))


def frequency_hz(samples: Samples) -> float:
    """Return the frequency of a lone tone, by the slope of its phase."""
    phase = np.unwrap(np.angle(samples.astype(complex)))
    return float(np.polyfit(np.arange(len(phase)), phase, 1)[0] / (2 * np.pi) * RATE)


@pytest.mark.parametrize(
    ("tx_gain", "path_gain", "rx_gain"),
    [(60.0, -60.0, 20.0), (40.0, -60.0, 40.0), (0.25, -30.0, 59.75), (30.0, -75.5, 50.0)],
)
def test_a_level_is_what_the_power_model_says(bench: Bench, tx_gain: float, path_gain: float, rx_gain: float) -> None:
    bench.air.set_link("V1", "V2", gain_db=path_gain)
    tx, rx = bench.radio("V1", tx_gain=tx_gain), bench.radio("V2", rx_gain=rx_gain)
    tx.send(tone(20_000, 0.1), at=1_000)
    heard = rx.listen(20_000)[0][2_000:]
    sent_dbm = tx_gain - 40 + 20 * np.log10(0.5)
    assert level_db(heard) == pytest.approx(sent_dbm + path_gain - (-10 - rx_gain), abs=0.1)


def test_samples_beyond_full_scale_clip_at_both_ends(bench: Bench) -> None:
    tx, rx = bench.radio("V1", tx_gain=40.0), bench.radio("V2", rx_gain=50.0)  # full scale arrives at full scale
    tx.send(np.array([3 + 0j, 0.5 - 7j, -0.25 + 0.25j] * 100, np.complex64), at=1_000)
    heard = rx.listen(2_000)[0][1_000:1_300].reshape(-1, 3)
    assert heard == pytest.approx(np.tile(np.array([1, 0.5 - 1j, -0.25 + 0.25j]), (100, 1)), abs=1e-6)
    rx.gain("rx", 60.0)
    tx.send(tone(1_000, 0.0, 0.5), at=6_000)
    assert rx.listen(10_000)[0].real.max() == 1.0


def test_noise_has_the_density_that_is_set(bench: Bench) -> None:
    bench.air.set_receiver("V2", noise_dbm_hz=-168.0)
    bench.air.set_receiver("V2:1", noise_dbm_hz=-158.0)
    rx = bench.radio("V2", rx_gain=50.0)
    rx.open("rx", (0, 1))
    n = 400_000
    rx.start(n, at=100)
    heard = rx.collect(n)
    expected_db = np.array([-168.0, -158.0]) + 10 * np.log10(RATE) - (-60.0)
    # The mean of n exponential powers is off by 1/sqrt(n); five sigma, 6e-7 two-sided.
    off = [10 ** ((level_db(row) - level) / 10) - 1 for row, level in zip(heard, expected_db, strict=True)]
    assert np.abs(off).max() < 5 / np.sqrt(n)
    assert abs(np.vdot(heard[0], heard[1])) / np.linalg.norm(heard[0]) / np.linalg.norm(heard[1]) < 5 / np.sqrt(n)


def test_a_burst_arrives_on_its_sample_and_after_its_delay(bench: Bench) -> None:
    bench.air.set_link("V1", "V2", gain_db=-50, delay_ns=7_000)
    tx, rx = bench.radio("V1"), bench.radio("V2", rx_gain=40.0)
    sent = noise_like(3_000, seed=1)
    assert tx.send(sent, at=5_000) == 3_000
    heard = rx.listen(10_000)[0]
    first = 5_000 + 7
    assert not heard[:first].any()
    assert heard[first : first + 3_000] == pytest.approx(sent, abs=1e-6)
    assert not heard[first + 3_000 :].any()


def test_tuning_apart_rotates_by_the_difference(bench: Bench) -> None:
    bench.air.set_link("V1", "V2", cfo_hz=250.0)
    tx, rx = bench.radio("V1"), bench.radio("V2")
    assert tx.tune("tx", CARRIER + 2_321.5) == CARRIER + 2_321.5
    assert rx.tune("rx", CARRIER - 1_099.25) == CARRIER - 1_099.25
    tx.send(tone(20_000, 0.0), at=1_500)
    assert frequency_hz(rx.listen(20_000)[0][2_000:]) == pytest.approx(250 + 2_321.5 + 1_099.25, abs=0.01)


def test_a_clock_that_is_off_moves_the_carrier_and_the_samples(bench: Bench) -> None:
    bench.air.set_clock_offset("V1", 10.0)
    tx, rx = bench.radio("V1"), bench.radio("V2")
    n = 400_000
    tx.send(tone(n, 0.02), at=2_000)
    rx.start(n)
    heard = rx.collect(n)[0][3_000:]
    # carrier 1 GHz and tone 20 kHz, both 10 ppm high
    assert frequency_hz(heard) == pytest.approx(10_000 + 20_000.2, abs=0.01)
    locked = bench.radio("V3")
    locked.call("set_clock_source", "external")
    locked.send(tone(20_000, 0.0), at=n + 5_000)
    tx.close()
    assert frequency_hz(rx.listen(20_000, at=n + 3_000)[0][5_000:]) == pytest.approx(0.0, abs=0.01)


def test_a_clock_may_drift_while_it_runs(bench: Bench) -> None:
    tx, rx = bench.radio("V1"), bench.radio("V2", rx_gain=50.0)
    tx.send(tone(20_000, 0.0), at=2_000, end=False)
    rx.start(60_000)
    first = rx.collect(15_000)[0][3_000:]
    bench.air.set_clock_offset("V1", 20.0)
    tx.send(tone(30_000, 0.0), start=False)
    second = rx.collect(15_000)[0][8_000:]
    bench.air.set_clock_offset("V2", 50.0)
    rx.collect(2_040)  # the packet that has begun stays as it is
    third, piece = rx.recv(2_040)
    assert [frequency_hz(part) for part in (first, second)] == pytest.approx([0.0, 20_000.0], abs=0.01)
    assert frequency_hz(third[0]) == pytest.approx(20_000.0 - 50_000.0, abs=3.0)  # 50 ppm of it are the samples'
    assert abs(piece.at - 32_040) <= 1
    assert (piece.error, rx.recv(2_040)[1].at) == ("none", piece.at + 2_040)
    level = np.abs(np.concatenate([first, second, third[0]]))
    assert level == pytest.approx(0.5, abs=0.005)


def test_timed_commands_take_effect_on_their_sample(bench: Bench) -> None:
    tx, rx = bench.radio("V1", tx_gain=40.0), bench.radio("V2", rx_gain=40.0)
    tx.gain("tx", 50.0, at=4_000)
    rx.gain("rx", 30.0, at=6_000)
    rx.tune("rx", CARRIER - 1_000, at=8_000)
    tx.send(tone(10_000, 0.0, 0.1), at=1_000)
    heard = rx.listen(10_000)[0]
    expected = np.array([0.0, 0.1, 0.1 * 10**0.5, 0.1]) * 10 ** (-10 / 20)
    steps = np.repeat(expected, [1_000, 3_000, 2_000, 4_000])
    assert np.abs(heard) == pytest.approx(steps, abs=1e-6)
    assert np.angle(heard[7_999]) == pytest.approx(0.0, abs=1e-6)
    assert frequency_hz(heard[8_000:]) == pytest.approx(1_000.0, abs=0.01)


def test_gain_can_change_while_samples_wait_for_their_time(bench: Bench) -> None:
    tx, rx = bench.radio("V1", tx_gain=40.0), bench.radio("V2", rx_gain=50.0)
    tx.send(tone(30_000, 0.0, 0.1), at=1_000)
    rx.start(30_000)
    before = rx.collect(10_000)[0]
    tx.gain("tx", 46.0)
    after = rx.collect(20_000)[0]
    assert np.abs(before[2_000:]) == pytest.approx(0.1, abs=1e-6)
    assert np.abs(after[10_000:]) == pytest.approx(0.1 * 10 ** (6 / 20), abs=1e-6)


def test_two_channels_at_each_end(bench: Bench) -> None:
    bench.air.set_link("V1", "V2", gain_db=-300.0)
    bench.air.set_link("V1:0", "V2:1", gain_db=-50)
    bench.air.set_link("V1:1", "V2:0", gain_db=-56)
    tx, rx = bench.radio("V1"), bench.radio("V2")
    tx.open("tx", (0, 1))
    rx.open("rx", (0, 1))
    sent = np.vstack([noise_like(2_000, seed=2), noise_like(2_000, seed=3)])
    assert tx.send(sent, at=1_000) == 2_000
    heard = rx.listen(4_000, at=500)
    assert heard[1][500:2_500] == pytest.approx(sent[0], abs=1e-6)
    assert heard[0][500:2_500] == pytest.approx(sent[1] * 10 ** (-6 / 20), abs=1e-6)


@pytest.mark.parametrize(
    ("freq", "rate", "advice"),
    [(CARRIER + RATE, RATE, "tune both to one frequency"), (CARRIER, 2 * RATE, "set both to one rate")],
)
def test_radios_too_far_apart_do_not_hear_each_other_and_say_so_once(
    bench: Bench, freq: float, rate: float, advice: str
) -> None:
    tx, rx = bench.radio("V1", freq=freq, rate=rate), bench.radio("V2")
    tx.send(tone(16_000, 0.0), at=2_000)
    assert not rx.listen(8_000, chunk=500).any()
    rx.close()
    assert rx.said.count("V2:0 does not hear V1:0") == 1
    assert advice in rx.said


def test_interference_is_heard_over_and_over(bench: Bench, tmp_path: Path) -> None:
    recording = noise_like(1_000, seed=4)
    recording.tofile(tmp_path / "jammer.cf32")
    bench.air.set_interference("V2", tmp_path / "jammer.cf32", rate_sps=RATE, freq_hz=CARRIER, level_dbm=-56.0)
    rx = bench.radio("V2", rx_gain=40.0)
    heard = rx.listen(2_500)[0]
    assert heard == pytest.approx(np.tile(recording, 3)[:2_500] * 10 ** (-6 / 20), abs=1e-6)
    bench.air.set_interference("V2", None)
    assert not rx.listen(1_000).any()


def test_a_link_changes_while_it_runs(bench: Bench) -> None:
    bench.air.set_link("V1", "V2", gain_db=-50)
    tx, rx = bench.radio("V1"), bench.radio("V2", rx_gain=40.0)
    tx.send(tone(20_000, 0.0), at=1_000)
    rx.start(20_000)
    before = rx.collect(10_000)[0]
    bench.air.set_link("*", "V2", gain_db=-90)
    exact_stays = rx.collect(2_000)[0]
    bench.air.set_link("V1", "V2", gain_db=-56)
    after = rx.collect(8_000)[0]
    assert np.abs(before[1_000:]) == pytest.approx(0.5, abs=1e-6)
    assert np.abs(exact_stays) == pytest.approx(0.5, abs=1e-6)
    assert np.abs(after) == pytest.approx(0.5 * 10 ** (-6 / 20), abs=1e-6)


@pytest.mark.parametrize(("cpu", "largest"), [("sc16", 32_767), ("sc8", 127), ("fc64", 1)])
def test_host_formats_share_one_full_scale(bench: Bench, cpu: str, largest: int) -> None:
    """A device hears itself."""
    radio = bench.radio("V1", tx_gain=40.0, rx_gain=50.0)
    radio.open("rx", cpu=cpu)
    radio.send(np.full(1_000, 0.5 - 0.25j, np.complex64), at=1_500)
    heard = radio.listen(3_000)[0]
    if cpu != "fc64":
        heard = heard[0::2] + 1j * heard[1::2].astype(float)
    # both parts are rounded
    tolerance = 0.5 * 2**0.5 / largest if largest > 1 else 1e-6
    assert heard[1_500:2_500] / largest == pytest.approx(np.full(1_000, 0.5 - 0.25j), abs=tolerance)
