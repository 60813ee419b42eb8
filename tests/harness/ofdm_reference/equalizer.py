"""A second look at damaged frames of PHY `ofdm`, with an equaliser for paths of any delay within the cyclic prefix.

Read first: `format.py`; J.-J. van de Beek et al., "On channel estimation in OFDM systems", VTC 1995 (the channel
as so many taps); docs/ofdm.md, "Several paths".

liquid's equaliser is a polynomial of order 4 over frequency: little noise, but of a channel longer than a sample it
knows nothing. Here the channel is estimated from S1 as `cyclic_prefix` taps, the frame is decided with that, and then
the decisions are the pilots for the channel of every subcarrier and the gain of every symbol, with which it is decided
again.

Rules kept: a frame is good only if its CRC says so, so a second look loses none. The work is some twenty operations on
arrays of the frame's size, no loop over symbols.

Left out: a channel that changes its shape within a frame, and clocks so far apart that the symbols' timing moves.
"""

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flowgraphs.phy import Samples
from tests.harness.ofdm_reference.format import (
    MODULATIONS,
    Modulation,
    OfdmFormat,
    crc_number,
    encoded_bytes,
    fec_number,
    modulation_number,
)
from tests.harness.ofdm_reference.liquid import ffi, liquid

#: the pilot sequence: an m-sequence of 8 bits
_PILOT_BITS = 8
_HEADER_MODULATION = MODULATIONS["bpsk"]


class Look(NamedTuple):
    """A frame that came through at the second look."""

    payload: bytes
    #: signal to noise in the active subcarriers
    snr_db: float
    evm_db: float


class Equalizer:
    """Decodes frames of one format; `training` is the training of a burst as it is transmitted."""

    def __init__(self, of: OfdmFormat, training: Samples) -> None:
        self._of = of
        at = 2 * of.symbol_samples + of.cyclic_prefix
        self._s1 = np.fft.fft(training[at : at + of.subcarriers])[of.active]
        self._amplitude = np.float32(np.mean(np.abs(self._s1)))
        self._data = np.searchsorted(of.active, of.data)
        self._pilots = np.searchsorted(of.active, of.pilots)
        # the projection on what `cyclic_prefix` taps can be, as seen by the active subcarriers
        taps = np.exp(-2j * np.pi / of.subcarriers * np.outer(of.active, np.arange(of.cyclic_prefix)))
        self._projection = (taps @ np.linalg.pinv(taps, rcond=1e-3)).astype(np.complex64)

    def look(self, samples: Samples, cfo: float, nbytes: int, name: str, fec: int) -> Look | None:
        """Return the frame if it can be decoded: its samples from its first, and what its header says.

        `cfo` in radians per sample, `name` is of the modulation, `fec` liquid's number of the code.
        """
        of, modulation = self._of, MODULATIONS[name]
        samples = samples * np.exp(-1j * cfo * np.arange(len(samples))).astype(np.complex64)
        symbols = samples.reshape(-1, of.symbol_samples)[2:]
        at = of.cyclic_prefix - self._advance(symbols[0])
        carriers = np.fft.fft(symbols[:, at : at + of.subcarriers], axis=1)[:, of.active]
        channel = self._projection @ (carriers[0] / self._s1).astype(np.complex64)
        heard = carriers[1:].astype(np.complex64) / self._amplitude

        sent = np.empty_like(heard)
        sent[:, self._pilots] = pilots = self._pilot_values(len(heard))
        gain = _over_carriers(heard[:, self._pilots] * pilots, np.conj(channel[self._pilots]))
        gain /= np.maximum(np.abs(gain), 1e-20)
        sent[:, self._data] = self._decide(heard, channel, gain, modulation)[1]

        match = np.conj(sent) * heard
        power = sent.real**2 + sent.imag**2
        gain = _over_carriers(match, np.conj(channel)) / _floored(_over_carriers(power, _power(channel)))
        channel = _over_symbols(match, np.conj(gain)) / _floored(_over_symbols(power, _power(gain)))
        equalised, decided = self._decide(heard, channel, gain, modulation)
        payload = self._decode(decided[of.header_symbols :], nbytes, name, fec)
        if payload is None:
            return None
        sent[:, self._data] = decided
        expected = gain[:, np.newaxis] * channel * sent
        return Look(
            payload,
            _ratio_db(expected, heard - expected),
            -_ratio_db(decided[of.header_symbols :], (equalised - decided)[of.header_symbols :]),
        )

    def _advance(self, s1: Samples) -> int:
        """Return how long before the strongest path a symbol is best cut, so that all paths' symbols are in."""
        of = self._of
        response = np.zeros(of.subcarriers, np.complex128)
        response[of.active] = np.fft.fft(s1[of.cyclic_prefix :])[of.active] / self._s1
        profile = _power(np.fft.ifft(response))
        usable = of.cyclic_prefix - of.taper
        energy = [profile[np.arange(-advance, usable - advance)].sum() for advance in range(usable)]
        return int(np.argmax(energy))

    def _decide(
        self, heard: Samples, channel: Samples, gain: Samples, modulation: Modulation
    ) -> tuple[Samples, Samples]:
        """Return the data symbols as they came through the channel and back, and the points nearest to them."""
        equalised = np.take(heard, self._data, axis=1)
        equalised *= (np.conj(channel) / _floored(_power(channel)))[self._data]
        equalised *= (np.conj(gain) / _floored(_power(gain)))[:, np.newaxis]
        values = equalised.view(np.float32)
        header = self._of.header_symbols
        points = [_HEADER_MODULATION.nearest(values[:header]), modulation.nearest(values[header:])]
        return equalised, np.concatenate(points).view(np.complex64)

    def _decode(self, points: Samples, nbytes: int, name: str, fec: int) -> bytes | None:
        """Return the octets of a payload, or None when their CRC is wrong."""
        modulation = MODULATIONS[name]
        index = np.rint(points.view(np.float32) / np.float32(2 * modulation.unit) + (modulation.levels - 1) / 2)
        i, q = index[:, 0::2].astype(np.intp), index[:, 1::2].astype(np.intp)
        bits = self._labels[name][i, q if modulation.axes == 2 else 0]
        coded = np.packbits(bits.reshape(-1)[: 8 * encoded_bytes(nbytes, fec)])
        library = liquid()
        packetizer = library.packetizer_create(nbytes, crc_number(), fec, fec_number("none"))
        payload = ffi.new("unsigned char[]", nbytes)
        good = library.packetizer_decode(packetizer, ffi.from_buffer("unsigned char[]", coded), payload)
        library.packetizer_destroy(packetizer)
        return bytes(payload) if good else None

    def _pilot_values(self, symbols: int) -> NDArray[np.float32]:
        """Return the pilots of so many symbols, of shape (symbols, pilots)."""
        count = len(self._pilots)
        return np.resize(self._pilot_sequence, (symbols, count))

    @cached_property
    def _pilot_sequence(self) -> NDArray[np.float32]:
        library = liquid()
        generator = library.msequence_create_default(_PILOT_BITS)
        bits = [library.msequence_advance(generator) for _ in range((1 << _PILOT_BITS) - 1)]
        library.msequence_destroy(generator)
        return np.where(bits, 1, -1).astype(np.float32)

    @cached_property
    def _labels(self) -> dict[str, NDArray[np.uint8]]:
        """Bits of the points, by modulation: shape (levels of I, levels of Q, bits)."""
        return {name: _labels(name, modulation) for name, modulation in MODULATIONS.items()}


def _labels(name: str, modulation: Modulation) -> NDArray[np.uint8]:
    library = liquid()
    modem = library.modemcf_create(modulation_number(name))
    labels = np.empty((modulation.levels, modulation.levels ** (modulation.axes - 1), modulation.bits), np.uint8)
    point = ffi.new("float[2]")
    for symbol in range(1 << modulation.bits):
        library.modemcf_modulate(modem, symbol, point)
        i, q = (round((value / modulation.unit + modulation.levels - 1) / 2) for value in point)
        labels[i, q if modulation.axes == 2 else 0] = [symbol >> bit & 1 for bit in reversed(range(modulation.bits))]
    library.modemcf_destroy(modem)
    return labels


def _power(values: NDArray[Any]) -> NDArray[Any]:
    return values.real**2 + values.imag**2


def _over_carriers(values: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
    """Return a weighted sum for each symbol. Not by `@`: BLAS takes all processors for matrices of this size."""
    sums: NDArray[Any] = np.einsum("sc,c->s", values, weights)
    return sums


def _over_symbols(values: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
    """Return a weighted sum for each carrier."""
    sums: NDArray[Any] = np.einsum("sc,s->c", values, weights)
    return sums


def _floored(values: NDArray[Any]) -> NDArray[Any]:
    """Return the values kept away from 0, to divide by."""
    return np.maximum(values, np.float32(1e-20))


def _ratio_db(signal: Samples, noise: Samples) -> float:
    over, under = (max(float(_power(values).sum()), 1e-20) for values in (signal, noise))
    return 10 * math.log10(over / under)
