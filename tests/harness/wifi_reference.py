"""PHY wifi's synchronizer in plain Python, which the native one (`flowgraphs/native/wifi/`) is held to.

Read first: IEEE 802.11-2016, 17.3.3 (the preamble) and 17.3.2.5 (symbols); T. M. Schmidl, D. C. Cox, "Robust frequency
and timing synchronization for OFDM", IEEE Trans. Commun. 1997.

A frame is 160 samples of short training (ten times the same 16), 160 of long training (a guard of 32, twice the same
64), then symbols of 80 (a guard of 16, then 64). It is looked for in three steps, each in what the one before let by:

1. samples 16 apart are alike over 96 of them, looked at every 16 samples: the short training;
2. the best two peaks, 64 apart, of the correlation with the long training: the timing;
3. samples 64 apart are alike there.

Rules kept: a core (no GNU Radio, no clock). What is found does not depend on how the samples were cut into calls of
`feed`: work is done in blocks that lie on a fixed grid. A new preamble ends the frame before it. The channel's phase is
taken out of every carrier, since gr-ieee802-11's equalizer adds up the four pilots before it knows the channel.

Left out: the frame's length. It stands in the SIGNAL field, which the decoder reads; symbols go on until the longest
frame would have ended. A steady carrier stronger than a frame hides it.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

CARRIERS = 64
GUARD = 16
SYMBOL_SAMPLES = CARRIERS + GUARD
#: short and long training
PREAMBLE_SAMPLES = 320
#: symbols after the long training: SIGNAL and the 511 of the longest frame that gr-ieee802-11 decodes
MAX_SYMBOLS = 512

#: IEEE 802.11-2016, equation 17-8: the long training on carriers -26 to -1 and 1 to 26
_LONG_LEFT = (1, 1, -1, -1, 1, 1, -1, 1, -1, 1, 1, 1, 1, 1, 1, -1, -1, 1, 1, -1, 1, -1, 1, 1, 1, 1)
_LONG_RIGHT = (1, -1, -1, 1, 1, -1, 1, -1, 1, -1, -1, -1, -1, -1, 1, 1, -1, -1, 1, -1, 1, -1, 1, 1, 1, 1)
#: the same on carriers -32 to 31
LONG_TRAINING = np.array([0] * 6 + [*_LONG_LEFT, 0, *_LONG_RIGHT] + [0] * 5, np.float64)

_PERIOD = 16
_WINDOW = 6
#: least likeness of samples 16 and 64 apart: S/(S+N) of the weakest frame, -1 dB, less what the estimate scatters
_LIKENESS = 0.35
#: least share of the long training's energy in the best peaks; what is no preamble stays below 0.1
_PEAK = 0.12
#: where the long training is looked for, from where the short one was noticed, and where to look on if it is not there
_SEARCH_FROM, _SEARCH_TO, _SEARCH_STEP = 128, 304, 128
#: symbols are cut this early, into their guard, so that paths before the strongest do no harm
_EARLY = 3
#: samples worked on at a time, those kept from before, and those that must follow where a frame is noticed
_BLOCK = 2048
_HISTORY = 512
_LOOKAHEAD = _SEARCH_TO + 2 * CARRIERS

#: what stands for no noise at all
_TINY = 1e-30

_TEMPLATE = np.fft.ifft(np.fft.ifftshift(LONG_TRAINING)).astype(np.complex64)
_TEMPLATE /= np.linalg.norm(_TEMPLATE)


@dataclass(frozen=True, slots=True)
class Preamble:
    """Where a frame begins and how it is heard."""

    #: index of its first sample in the stream, on its strongest path
    sample: int
    #: carrier frequency offset, radians per sample
    cfo: float
    #: mean of |x|^2 over the preamble
    power: float
    #: signal to noise per sample, as a ratio; 0 when the noise is all there is
    snr: float


class Symbols(NamedTuple):
    """OFDM symbols in order: complex64 [n, 64], carriers -32 to 31; `preamble` when a frame begins with the first.

    A frame's first two symbols are its long training, the third is SIGNAL.
    """

    preamble: Preamble | None
    carriers: NDArray[np.complex64]


class Synchronizer:
    """Takes samples with `feed`, returns the symbols of the frames in them."""

    def __init__(self) -> None:
        self._buffer = np.zeros(_HISTORY + _BLOCK, np.complex64)
        self._filled = _HISTORY
        #: index in the stream of the buffer's first sample; before the stream there is silence
        self._start = -_HISTORY
        #: where in the stream to look on
        self._cursor = 0
        self._frame: _Frame | None = None

    def feed(self, samples: NDArray[np.complex64]) -> list[Symbols]:
        """Take the next samples (complex64 [n]); return the symbols that are complete by now."""
        out: list[Symbols] = []
        while len(samples):
            taken = samples[: len(self._buffer) - self._filled]
            self._buffer[self._filled : self._filled + len(taken)] = taken
            self._filled += len(taken)
            samples = samples[len(taken) :]
            if self._filled == len(self._buffer):
                out += self._work()
                self._buffer[:_HISTORY] = self._buffer[-_HISTORY:]
                self._filled = _HISTORY
                self._start += _BLOCK
        return out

    def _work(self) -> list[Symbols]:
        """Look through a full buffer."""
        x, start = self._buffer, self._start
        alike, noticed = _short_training(x)
        out: list[Symbols] = []
        for at in noticed:
            if start + at < self._cursor:
                continue
            found = _long_training(x, at, alike)
            if found is None:
                self._cursor = start + at + _SEARCH_STEP
                continue
            first, cfo = found
            begin = first + 2 * CARRIERS - PREAMBLE_SAMPLES
            if self._frame is not None:
                out.append(Symbols(None, self._frame.take(x, start, start + begin + SYMBOL_SAMPLES)))
            self._frame = _Frame(start + first - _EARLY, cfo)
            power = float(np.mean(np.abs(x[begin : begin + PREAMBLE_SAMPLES]) ** 2))
            training = self._frame.take_long_training(x, start)
            out.append(Symbols(Preamble(start + begin, cfo, power, _snr(training)), training))
            self._cursor = start + first + 2 * CARRIERS
        if self._frame is not None:
            out.append(Symbols(None, self._frame.take(x, start, start + len(x))))
        return [symbols for symbols in out if len(symbols.carriers)]


class _Frame:
    """A frame that is being received; `at` is where its long training begins in the stream."""

    def __init__(self, at: int, cfo: float) -> None:
        self._at = at
        self._cfo = cfo
        self._taken = 0
        # pi per sample moves carrier -32 to the front
        self._within = np.exp(1j * (np.pi - cfo) * np.arange(CARRIERS))
        self._turn = np.ones(CARRIERS, np.complex128)

    def take_long_training(self, x: NDArray[np.complex64], start: int) -> NDArray[np.complex64]:
        """Return the two symbols of the long training; `x` begins at `start` in the stream."""
        first = self._at - start
        symbols = self._fft(x[first : first + 2 * CARRIERS].reshape(2, CARRIERS), np.array([0, CARRIERS]))
        self._turn = np.exp(-1j * np.angle(symbols.sum(axis=0) * LONG_TRAINING))
        return (symbols * self._turn).astype(np.complex64)

    def take(self, x: NDArray[np.complex64], start: int, end: int) -> NDArray[np.complex64]:
        """Return the symbols not yet taken that end by `end`; `x` begins at `start` (both in the stream)."""
        after = 2 * CARRIERS + SYMBOL_SAMPLES * self._taken
        count = max(min((end - self._at - after) // SYMBOL_SAMPLES, MAX_SYMBOLS - self._taken), 0)
        self._taken += count
        first = self._at + after - start
        rows = x[first : first + count * SYMBOL_SAMPLES].reshape(count, SYMBOL_SAMPLES)[:, GUARD:]
        symbols = self._fft(rows, after + GUARD + SYMBOL_SAMPLES * np.arange(count))
        return (symbols * self._turn).astype(np.complex64)

    def _fft(self, rows: NDArray[np.complex64], begins: NDArray[np.int_]) -> NDArray[np.complex128]:
        """Return carriers -32 to 31 of rows of 64 samples that begin so far into the frame, without the offset."""
        return np.fft.fft(rows * self._within * np.exp(-1j * self._cfo * begins)[:, None])


def _snr(training: NDArray[np.complex64]) -> float:
    """Return the ratio of signal to noise per sample from the two symbols of the long training."""
    used = training[:, LONG_TRAINING != 0]
    same, different = (float(np.sum(np.abs(part) ** 2)) for part in (used[0] + used[1], used[0] - used[1]))
    # same is 4 S + 2 N on every carrier, different 2 N
    return max((same / max(different, _TINY) - 1) / 2, 0.0) * used.shape[1] / CARRIERS


def _short_training(x: NDArray[np.complex64]) -> tuple[NDArray[np.complex128], NDArray[np.int_]]:
    """Return the correlation of samples 16 apart, every 16 samples, and where it is strong enough to look closer."""
    periods = x.reshape(-1, _PERIOD)
    parts = periods.view(np.float32)
    alike = _windows(np.einsum("ij,ij->i", periods[1:], periods[:-1].conj()), _WINDOW)
    energy = _windows(np.einsum("ij,ij->i", parts, parts), _WINDOW + 1) * (_WINDOW / (_WINDOW + 1))
    last = (len(x) - _LOOKAHEAD) // _PERIOD
    (strong,) = np.nonzero(np.abs(alike[:last]) > _LIKENESS * energy[:last])
    return alike, strong * _PERIOD


def _windows(values: NDArray[Any], n: int) -> NDArray[Any]:
    """Return the sums of every n values in a row, in double precision."""
    sums: NDArray[Any] = np.cumsum(values, dtype=np.result_type(values, np.float64))
    sums[n:] -= sums[:-n].copy()
    return sums[n - 1 :]


def _long_training(x: NDArray[np.complex64], at: int, alike: NDArray[np.complex128]) -> tuple[int, float] | None:
    """Return where the long training begins and the frequency offset (rad/sample), or None when it is not there."""
    near = alike[at // _PERIOD : (at + _SEARCH_FROM) // _PERIOD]
    coarse = float(np.angle(near[np.argmax(np.abs(near))])) / _PERIOD
    # that much of the guard before the long training is like it too
    before = GUARD + _EARLY
    y = x[at + _SEARCH_FROM - before : at + _LOOKAHEAD]
    y = y * np.exp(-1j * coarse * np.arange(len(y))).astype(np.complex64)
    peaks = np.abs(np.correlate(y[before:], _TEMPLATE, "valid"))
    best = int(np.argmax(peaks[:-CARRIERS] + peaks[CARRIERS:]))
    first, second = y[best : best + SYMBOL_SAMPLES], y[best + CARRIERS : best + CARRIERS + SYMBOL_SAMPLES]
    energy = np.sqrt(np.vdot(first, first).real * np.vdot(second, second).real)
    if peaks[best] ** 2 + peaks[best + CARRIERS] ** 2 <= _PEAK * 2 * energy * CARRIERS / SYMBOL_SAMPLES:
        return None
    likeness = np.vdot(first, second)
    if abs(likeness) <= _LIKENESS * energy:
        return None
    return at + _SEARCH_FROM + best, coarse + float(np.angle(likeness)) / CARRIERS
