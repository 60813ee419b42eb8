"""The spectrum: power is where it belongs, and all of it."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from flowgraphs.spectrum import FLOOR_DB, spectrum_db

BINS = 64


def power_db(spectrum: NDArray[np.floating[Any]]) -> float:
    return float(10 * np.log10(np.sum(10 ** (spectrum / 10))))


@pytest.mark.parametrize("number", [-20, -1, 0, 7, 31])
def test_a_tone_is_in_its_bin(number: int) -> None:
    tone = 0.5 * np.exp(2j * np.pi * number / BINS * np.arange(BINS * 10)).astype(np.complex64)
    spectrum = spectrum_db(tone.astype(np.complex64), BINS)
    assert np.argmax(spectrum) == number + BINS // 2
    assert power_db(spectrum) == pytest.approx(20 * np.log10(0.5), abs=0.01)


def test_noise_is_flat_and_its_power_is_kept() -> None:
    rng = np.random.default_rng(1)
    noise = (rng.normal(size=BINS * 4000) + 1j * rng.normal(size=BINS * 4000)).astype(np.complex64) * 0.1
    spectrum = spectrum_db(noise, BINS)
    assert power_db(spectrum) == pytest.approx(10 * np.log10(0.02), abs=0.05)
    assert np.ptp(spectrum) < 1.0


def test_silence_has_a_floor_and_too_few_samples_are_refused() -> None:
    assert set(spectrum_db(np.zeros(BINS, np.complex64), BINS)) == {FLOOR_DB}
    with pytest.raises(ValueError, match="63 samples are too few for 64 bins"):
        spectrum_db(np.zeros(BINS - 1, np.complex64), BINS)
