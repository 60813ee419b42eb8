"""The burst of the cable check, and what a receiver's samples of it tell. Pure numpy.

A burst is a tone, then noise that fills most of the band. The tone shows level, carrier offset, image and DC. The noise
shows the error vector: the part of what was received that no linear channel makes of what was sent.

Rules kept: powers are in dBFS, relative to a tone of amplitude 1; no PHY is involved.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.complex64]

TONE_SAMPLES = 8192
NOISE_SAMPLES = 16384
#: of a sampled band
_FILLED = 0.8
#: level of a burst, as the receive gain is set to
TARGET_DBFS = (-20.0, -15.0)
#: root mean square of both parts; the noise's peaks stay below 1
AMPLITUDE = 0.2
#: of the sample rate: the tone's frequency
TONE = 1 / 8
#: a linear channel of so many taps is fitted to blocks of so many samples, in which clocks drift little
_TAPS = 17
_BLOCK = 2048
#: correlation coefficient below which there is no burst: with noise alone it stays below 0.05
_SEEN = 0.1
#: settling of filters at the ends of the tone
_EDGE = 256


@dataclass(frozen=True, slots=True)
class Measured:
    """One burst at a receiver."""

    level_dbfs: float
    #: of the loudest sample
    peak_dbfs: float
    #: signal over noise in the whole sampled band
    snr_db: float
    cfo_hz: float
    #: mirror of the tone at the carrier, relative to the tone: of transmitter and receiver, the stronger
    image_dbc: float
    #: rest of the carrier, relative to the tone: of transmitter and receiver, the stronger
    dc_dbc: float
    #: error vector, relative to the signal
    evm_db: float


@dataclass(frozen=True, slots=True)
class Direction:
    """What one radio hears of the other."""

    rx_gain_db: float
    silence_dbfs: float
    #: rise of the transmitter's own receiver while it transmits
    leakage_db: float
    #: transmit gain and burst, the highest gain last
    steps: tuple[tuple[float, Measured], ...]


def burst() -> Samples:
    """Return the burst, the same every time."""
    tone = np.exp(2j * np.pi * TONE * np.arange(TONE_SAMPLES))
    rng = np.random.default_rng(1)
    half = round(NOISE_SAMPLES * _FILLED / 2)
    spectrum = np.zeros(NOISE_SAMPLES, np.complex128)
    phases = rng.uniform(0, 2 * np.pi, 2 * half)
    spectrum[1 : half + 1], spectrum[-half:] = np.exp(1j * phases[:half]), np.exp(1j * phases[half:])
    noise = np.fft.ifft(spectrum)
    noise /= np.sqrt(np.mean(np.abs(noise) ** 2))
    both: Samples = (AMPLITUDE * np.concatenate((tone, noise))).astype(np.complex64)
    return both


def measure(samples: Samples, rate_sps: float, silence: Samples) -> Measured | None:
    """Return what a burst in `samples` shows; None where there is none. `silence` is the receiver without a burst."""
    sent = burst()
    start = _find(samples, sent)
    if start is None:
        return None
    got = samples[start : start + len(sent)].astype(np.complex128)
    tone = got[_EDGE : TONE_SAMPLES - _EDGE]
    hz = _frequency(tone)
    cfo = hz - TONE
    carrier = _power(tone, hz)
    noise = float(np.mean(np.abs(silence) ** 2))
    signal = max(float(np.mean(np.abs(tone) ** 2)) - noise, 1e-30)
    # the transmitter's faults have its carrier, the receiver's have its own
    image = max(_power(tone, cfo - TONE), _power(tone, -hz))
    rest = max(_power(tone, cfo), _power(tone, 0.0))
    turned = got * np.exp(-2j * np.pi * cfo * np.arange(len(got)))
    return Measured(
        level_dbfs=_db(signal),
        peak_dbfs=_db(float(np.max(np.abs(got)) ** 2)),
        snr_db=_db(signal / max(noise, 1e-30)),
        cfo_hz=cfo * rate_sps,
        image_dbc=_db(image / carrier),
        dc_dbc=_db(rest / carrier),
        evm_db=_evm_db(turned, sent),
    )


def level_dbfs(samples: Samples) -> float:
    """Return the power of samples."""
    return _db(float(np.mean(np.abs(samples) ** 2)))


def _find(samples: Samples, sent: Samples) -> int | None:
    """Return where the burst begins, found by the turns from sample to sample: an offset adds one angle to all."""
    turns, template = samples[1:] * np.conj(samples[:-1]), sent[TONE_SAMPLES + 1 :] * np.conj(sent[TONE_SAMPLES:-1])
    size = 1 << (len(turns) + len(template)).bit_length()
    # a template without a mean does not see the tone, whose turns are all the same
    template = template - np.mean(template)
    spectrum = np.fft.fft(turns, size) * np.conj(np.fft.fft(template, size))
    likeness = np.abs(np.fft.ifft(spectrum))[TONE_SAMPLES : TONE_SAMPLES + len(samples) - len(sent)]
    if not len(likeness):
        return None
    best = int(np.argmax(likeness))
    heard = turns[TONE_SAMPLES + best :][: len(template)]
    coefficient = likeness[best] / max(float(np.linalg.norm(heard) * np.linalg.norm(template)), 1e-30)
    return best if coefficient > _SEEN else None


def _frequency(tone: NDArray[np.complex128]) -> float:
    """Return the frequency of a tone, in parts of the sample rate."""
    window = np.hanning(len(tone))
    size = 8 * len(tone)
    spectrum = np.abs(np.fft.fft(tone * window, size))
    best = int(np.argmax(spectrum))
    # a parabola through the logarithms of the peak and its neighbours
    below, at, above = np.log(spectrum[[best - 1, best, (best + 1) % size]] + 1e-30)
    exact = best + 0.5 * (below - above) / (below - 2 * at + above)
    return float((exact / size + 0.5) % 1 - 0.5)


def _power(tone: NDArray[np.complex128], frequency: float) -> float:
    """Return the power at one frequency; the window keeps the tone itself out of it."""
    window = np.blackman(len(tone))
    turned = tone * np.exp(-2j * np.pi * frequency * np.arange(len(tone)))
    return float(np.abs(np.sum(turned * window) / np.sum(window)) ** 2)


def _evm_db(got: NDArray[np.complex128], sent: Samples) -> float:
    """Return the error left by the best linear channel, block by block."""
    errors = signals = 0.0
    half = _TAPS // 2
    for first in range(TONE_SAMPLES + _BLOCK, len(sent) - _BLOCK - half, _BLOCK):
        rows = np.lib.stride_tricks.sliding_window_view(sent[first - half : first + _BLOCK + half], _TAPS)
        block = got[first : first + _BLOCK]
        taps, *_ = np.linalg.lstsq(rows.astype(np.complex128), block, rcond=1e-6)
        fitted = rows @ taps
        # the fit takes as many dimensions of the error as it has taps
        errors += float(np.sum(np.abs(block - fitted) ** 2)) * _BLOCK / (_BLOCK - _TAPS)
        signals += float(np.sum(np.abs(fitted) ** 2))
    return _db(errors / max(signals, 1e-30))


def _db(power: float) -> float:
    return float(10 * np.log10(max(power, 1e-30)))
