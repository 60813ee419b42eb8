"""The cable check's burst: what was done to it is what is measured."""

import numpy as np
import pytest

from flowgraphs.cable_signal import AMPLITUDE, Measured, Samples, burst, level_dbfs, measure

RATE_SPS = 2.5e6
RNG = np.random.default_rng(7)


def noise(n: int, dbfs: float) -> Samples:
    parts = RNG.normal(size=(2, n)) * 10 ** (dbfs / 20) / np.sqrt(2)
    return (parts[0] + 1j * parts[1]).astype(np.complex64)


def received(
    *, gain_db: float = 0.0, cfo_hz: float = 0.0, noise_dbfs: float = -60.0, image_db: float = -200, dc: complex = 0
) -> Measured:
    """One burst through a channel of two taps with the receiver's faults, amid silence."""
    sent: Samples = np.pad(burst(), (3000, 5000))
    clean = (0.995 * sent + 0.0999j * np.roll(sent, 1)) * 10 ** (gain_db / 20)
    turned = clean * np.exp(2j * np.pi * cfo_hz / RATE_SPS * np.arange(len(clean)))
    heard = turned + 10 ** (image_db / 20) * np.conj(turned) + dc + noise(len(sent), noise_dbfs)
    found = measure(heard.astype(np.complex64), RATE_SPS, noise(20_000, noise_dbfs))
    assert found is not None
    return found


@pytest.mark.parametrize("gain_db", [0.0, -20.0])
@pytest.mark.parametrize("cfo_hz", [0.0, -12_345.0, 30_000.0])
def test_level_snr_and_offset_are_measured(gain_db: float, cfo_hz: float) -> None:
    found = received(gain_db=gain_db, cfo_hz=cfo_hz)
    level_dbfs = 20 * np.log10(AMPLITUDE) + gain_db
    # the two taps add up to 1.07 at the tone
    assert found.level_dbfs == pytest.approx(level_dbfs, abs=0.7)
    assert found.snr_db == pytest.approx(found.level_dbfs + 60, abs=0.3)
    assert found.cfo_hz == pytest.approx(cfo_hz, abs=5)
    assert found.evm_db == pytest.approx(-(level_dbfs + 60), abs=0.5)


@pytest.mark.parametrize("image_db", [-20.0, -30.0, -40.0])
def test_image_is_measured(image_db: float) -> None:
    assert received(image_db=image_db, cfo_hz=2000).image_dbc == pytest.approx(image_db, abs=0.5)
    assert received(image_db=image_db).dc_dbc < -55


@pytest.mark.parametrize("dc_dbc", [-20.0, -40.0])
def test_rest_of_carrier_is_measured(dc_dbc: float) -> None:
    dc = AMPLITUDE * 10 ** (dc_dbc / 20)
    assert received(dc=dc, cfo_hz=2000).dc_dbc == pytest.approx(dc_dbc, abs=0.7)


def test_clipping_spoils_the_error_vector_not_the_tone() -> None:
    sent: Samples = np.pad(burst() * 2.5, (3000, 5000))
    clipped = np.clip(sent.real, -0.6, 0.6) + 1j * np.clip(sent.imag, -0.6, 0.6) + noise(len(sent), -70)
    found = measure(clipped.astype(np.complex64), RATE_SPS, noise(20_000, -70))
    assert found is not None
    assert -30 < found.evm_db < -12
    assert found.snr_db > 60


def test_no_burst_is_found_in_noise() -> None:
    assert measure(noise(100_000, -30), RATE_SPS, noise(20_000, -30)) is None


@pytest.mark.parametrize("cut", [1_000, 12_000, 20_000])
def test_no_burst_is_found_in_a_part_of_one(cut: int) -> None:
    for part in (np.pad(burst()[cut:], (0, 100_000)), np.pad(burst()[:-cut], (100_000, 0))):
        assert measure(part + noise(len(part), -50), RATE_SPS, noise(20_000, -50)) is None


def test_level_is_that_of_a_tone() -> None:
    assert level_dbfs(np.full(100, 0.1j, np.complex64)) == pytest.approx(-20)
