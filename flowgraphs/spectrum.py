"""The power spectrum of samples, for display."""

import numpy as np
from numpy.typing import NDArray

from flowgraphs.phy import Samples

#: power of an empty bin, in dB of full scale
FLOOR_DB = -200.0


def spectrum_db(samples: Samples, bins: int) -> NDArray[np.float64]:
    """Return the mean power in each of `bins` bins, lowest frequency first, in dB of full scale (amplitude 1).

    Welch's method without overlap, Hann window; the bins' powers add up to that of the samples. Raises ValueError for
    fewer samples than bins.
    """
    segments = len(samples) // bins
    if segments < 1:
        raise ValueError(f"{len(samples)} samples are too few for {bins} bins")
    window = np.hanning(bins).astype(np.float32)
    spectra = np.fft.fft(samples[: segments * bins].reshape(segments, bins) * window)
    power = np.mean(spectra.real**2 + spectra.imag**2, axis=0) / (bins * float(np.sum(window**2)))
    decibels: NDArray[np.float64] = 10 * np.log10(np.maximum(np.fft.fftshift(power), 10 ** (FLOOR_DB / 10)))
    return decibels
