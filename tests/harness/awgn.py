"""An air of plain arithmetic for PHYs: bursts, silence between them, carrier offset, level and white noise."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.complex64]


class Air(NamedTuple):
    """What a receiver gets, and where in it the bursts begin."""

    samples: Samples
    starts: tuple[int, ...]


def air(
    bursts: Sequence[Samples],
    rng: np.random.Generator,
    *,
    rms: float,
    snr_db: float = np.inf,
    cfo: float = 0.0,
    level: float = 1.0,
    gaps: Sequence[int] | None = None,
    tail: int = 400,
) -> Air:
    """Return bursts of amplitude `rms` as received at an SNR per sample, with a random phase each.

    `cfo` in cycles per sample, `level` is the path's amplitude gain. The gaps before the bursts are 200 to 599 samples
    by default; `tail` samples follow the last one.
    """
    if gaps is None:
        gaps = rng.integers(200, 600, len(bursts)).tolist()
    starts = []
    pieces: list[NDArray[np.complex64]] = []
    at = 0
    for gap, burst in zip(gaps, bursts, strict=True):
        starts.append(at + gap)
        pieces += [np.zeros(gap, np.complex64), burst * np.complex64(np.exp(2j * np.pi * rng.random()))]
        at += gap + len(burst)
    clean = np.concatenate([*pieces, np.zeros(tail, np.complex64)])
    if cfo:
        clean = clean * np.exp(2j * np.pi * cfo * np.arange(len(clean)))
    noise = rng.standard_normal(2 * len(clean), np.float32).view(np.complex64)
    received = level * (clean + np.float32(rms * 10 ** (-snr_db / 20) / np.sqrt(2)) * noise)
    return Air(received.astype(np.complex64), tuple(starts))


def clocked(samples: NDArray[Any], ppm: float) -> NDArray[np.complex128]:
    """Return samples as a receiver takes them whose clock is faster than the sender's by so many parts per million.

    Interpolated by a sinc over 32 samples under a Hann window; of band-limited samples -50 dB are wrong.
    """
    at = np.arange(round(len(samples) * (1 + ppm * 1e-6))) / (1 + ppm * 1e-6)
    whole = np.floor(at).astype(int)
    padded = np.concatenate([np.zeros(15), samples, np.zeros(17)])
    taken = np.zeros(len(at), np.complex128)
    for tap in range(-15, 17):
        distance = at - whole - tap
        taken += padded[whole + tap + 15] * np.sinc(distance) * (0.5 + 0.5 * np.cos(np.pi * distance / 17))
    return taken
