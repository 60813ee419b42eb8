"""The spectrum: power is where it belongs, and all of it."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from flowgraphs.native import native

BINS = 64
#: of an empty bin
FLOOR_DB = -200


def spectrum_db(samples: NDArray[np.complex64], bins: int) -> NDArray[np.float64]:
    levels: NDArray[np.float32] = native().spectrum_db(samples, bins)
    return levels.astype(np.float64)


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


def test_silence_has_a_floor_and_too_few_samples_and_bins_are_refused() -> None:
    assert set(spectrum_db(np.zeros(BINS, np.complex64), BINS)) == {FLOOR_DB}
    for count, bins, said in (
        (BINS - 1, BINS, "63 samples are too few for 64 bins"),
        (BINS, 1, "bins is 1: must be 2"),
    ):
        with pytest.raises(ValueError, match=said):
            spectrum_db(np.zeros(count, np.complex64), bins)


@pytest.mark.parametrize("bins", [BINS, 100, 512])
def test_levels_are_those_of_numpy(bins: int) -> None:
    """Welch's method without overlap, Hann window, the mean power of a bin."""
    rng = np.random.default_rng(2)
    samples = (rng.normal(size=5000) + 1j * rng.normal(size=5000)).astype(np.complex64)
    segments = samples[: len(samples) // bins * bins].reshape(-1, bins)
    window = np.hanning(bins)
    powers = np.mean(np.abs(np.fft.fft(segments * window)) ** 2, axis=0) / (bins * np.sum(window**2))
    assert spectrum_db(samples, bins) == pytest.approx(10 * np.log10(np.fft.fftshift(powers)), abs=1e-3)
