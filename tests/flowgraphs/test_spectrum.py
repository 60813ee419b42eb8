"""The spectrum: power is where numpy finds it."""

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
