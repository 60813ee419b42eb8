"""An air of plain arithmetic for PHYs: bursts, silence between them, carrier offset, level and white noise."""

from collections.abc import Sequence
from typing import NamedTuple

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
