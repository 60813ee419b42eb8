"""Modulator and demodulator of PHY `ofdm` in plain Python: what the native ones are held to, sample by sample.

Read first: docs/ofdm.md, and `format.py` for the frame.
"""

import math
from collections import deque
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flowgraphs.phy import Constellation, Received, Samples
from flowgraphs.phys.ofdm.modem import OfdmPhy
from flowgraphs.phys.ofdm.options import mode
from tests.harness.ofdm_reference.equalizer import Equalizer
from tests.harness.ofdm_reference.format import (
    FEC,
    HEADER,
    MAX_FRAME_BYTES,
    MODULATIONS,
    TRAINING_SYMBOLS,
    Modulation,
    OfdmFormat,
    crc_number,
    fec_number,
    modulation_number,
)
from tests.harness.ofdm_reference.liquid import LOCK, ffi, liquid, make

#: symbols of a payload from which its EVM says more than that of the header
_MANY_SYMBOLS = 256
#: symbols of a payload that are kept to be looked at
_SHOWN_SYMBOLS = 256
#: amplitude and phase over frequency are polynomials of order 4
_POLYNOMIAL = 5
_SEQUENCES = 1 << 32
#: samples a demodulator works on at a time
_STEP = 1 << 14


def _format(phy: OfdmPhy) -> OfdmFormat:
    return OfdmFormat(phy.subcarriers, phy.cyclic_prefix, phy.taper)


def _evm_at_0_db(of: OfdmFormat) -> float:
    """Return the EVM (dB) that an SNR per sample of 0 dB makes.

    Noise is in all subcarriers, the signal in the active ones; the equaliser, of so many parameters, is as noisy as
    what it is taken from, one symbol, and so is the phase that the pilots give every symbol.
    """
    active, pilots = len(of.active), len(of.pilots)
    return 10 * math.log10(active / of.subcarriers * (1 + _POLYNOMIAL / active + 1 / (2 * pilots)))


class Modulator:
    """Turns link frames into bursts, numbering them from 0."""

    def __init__(self, phy: OfdmPhy) -> None:
        self._phy = phy
        self._liquid = liquid()
        properties = ffi.new(
            "ofdmflexframegenprops_s *",
            {
                "check": crc_number(),
                "fec0": fec_number(phy.fec),
                "fec1": fec_number("none"),
                "mod_scheme": modulation_number(phy.modulation),
            },
        )
        self._generator = make(
            self._liquid.ofdmflexframegen_create,
            self._liquid.ofdmflexframegen_destroy,
            *(phy.subcarriers, phy.cyclic_prefix, phy.taper, ffi.NULL, properties),
        )
        self._liquid.ofdmflexframegen_set_header_len(self._generator, HEADER.size)
        self._sequence = 0

    def _samples(self, nbytes: int) -> int:
        phy, of = self._phy, _format(self._phy)
        symbols = of.symbols(nbytes, MODULATIONS[phy.modulation], fec_number(phy.fec))
        return symbols * of.symbol_samples + of.taper

    def modulate(self, frame: bytes) -> Samples:
        """Return the burst of a frame: complex64."""
        burst = np.empty(self._samples(len(frame)), np.complex64)
        header = HEADER.pack(self._sequence, self._phy.network)
        self._sequence = (self._sequence + 1) % _SEQUENCES
        self._liquid.ofdmflexframegen_assemble(self._generator, header, frame, len(frame))
        with LOCK:
            self._liquid.srand(1)
            self._liquid.ofdmflexframegen_write(
                self._generator, ffi.from_buffer("float[]", burst, require_writable=True), len(burst)
            )
        burst *= self._phy.rms
        return burst


class Demodulator:
    """Finds the frames in a stream of samples, which may come in pieces of any size."""

    def __init__(self, phy: OfdmPhy) -> None:
        self._phy = phy
        self._liquid = liquid()
        self._decoded: list[_DecodedFrame] = []
        self._shown: deque[Constellation] = deque(maxlen=1)
        callback = _callback(phy.network, self._decoded, self._shown)
        self._callback = ffi.callback("framesync_callback", callback, error=0)
        self._synchronizer = make(
            self._liquid.ofdmflexframesync_create,
            self._liquid.ofdmflexframesync_destroy,
            *(phy.subcarriers, phy.cyclic_prefix, phy.taper, ffi.NULL, self._callback, ffi.NULL),
        )
        self._liquid.ofdmflexframesync_set_header_len(self._synchronizer, HEADER.size)
        # no two frames end in one block, and the training of one that ends in it lies before it, wherever it is sought
        of = self._of = _format(phy)
        shortest = of.symbols(1, MODULATIONS["qam64"], fec_number("none"))
        self._block = (shortest - TRAINING_SYMBOLS) * of.symbol_samples - 2 * of.cyclic_prefix
        longest = of.symbols(MAX_FRAME_BYTES, MODULATIONS["bpsk"], fec_number("rep5"))
        self._history = _History(longest * of.symbol_samples + self._block + _STEP)
        #: samples liquid has seen; it lags behind by so many, so that a frame's last ones are there when it is measured
        self._seen = 0
        self._lag = of.cyclic_prefix
        self._training = Modulator(phy).modulate(b"\0")[: TRAINING_SYMBOLS * of.symbol_samples]
        self._equalizer = Equalizer(of, self._training)
        #: our names of the codes, by liquid's numbers
        self._codes = {fec_number(name): name for name in FEC}

    def feed(self, samples: Samples) -> list[Received]:
        """Take the next samples (complex64); return the frames that ended in them or just before."""
        found = []
        for at in range(0, len(samples), _STEP):
            self._history.append(samples[at : at + _STEP])
            while (ready := self._history.end - self._lag - self._seen) > 0:
                block_start = self._seen // self._block * self._block
                stop = min(block_start + self._block, self._seen + ready)
                for part in self._history.parts(self._seen, stop):
                    self._liquid.ofdmflexframesync_execute(
                        self._synchronizer, ffi.from_buffer("float[]", part), len(part)
                    )
                self._seen = stop
                found += [self._measure(frame, block_start) for frame in self._decoded]
                self._decoded.clear()
        return found

    @property
    def constellation(self) -> Constellation | None:
        """The symbols of the newest frame."""
        return self._shown[0] if self._shown else None

    def _measure(self, frame: "_DecodedFrame", block_start: int) -> Received:
        """Add sample index, levels and SNR to a frame that ended in the block that starts at `block_start`."""
        phy, of = self._phy, self._of
        symbols = of.symbols(len(frame.payload), MODULATIONS[frame.modulation], frame.fec)
        nsamples = symbols * of.symbol_samples
        start = self._find(block_start - nsamples, frame.cfo)
        samples = self._history.read(start, start + nsamples)
        # not by `vdot`: BLAS takes all processors for so many
        power = 2 * float(np.mean(np.square(samples.view(np.float32))))
        received = Received(
            frame.payload,
            frame.crc_ok,
            frame.sequence,
            start,
            nsamples + phy.taper,
            snr_db=_evm_at_0_db(of) - frame.noise_db,
            evm_db=frame.evm_db,
            cfo_hz=frame.cfo / (2 * math.pi) * phy.rate_sps,
            rssi_db=10 * math.log10(max(power, 1e-20)),
            mode=mode(frame.modulation, self._codes.get(frame.fec, f"code {frame.fec}")),
        )
        if frame.crc_ok:
            return received
        look = self._equalizer.look(samples, frame.cfo, len(frame.payload), frame.modulation, frame.fec)
        if look is None:
            return received
        snr_db = look.snr_db + 10 * math.log10(len(of.active) / of.subcarriers)
        return replace(received, payload=look.payload, crc_ok=True, snr_db=snr_db, evm_db=look.evm_db)

    def _find(self, earliest: int, cfo: float) -> int:
        """Return where the training that starts in the block at `earliest` fits best; `cfo` in radians per sample."""
        slack = self._phy.cyclic_prefix
        first = max(earliest - slack, 0)
        count = earliest + self._block + slack - first
        training = self._training * np.exp(1j * cfo * np.arange(len(self._training))).astype(np.complex64)
        samples = self._history.read(first, first + count - 1 + len(training))
        energy = np.convolve(samples.real**2 + samples.imag**2, np.ones(len(training), np.float32), "valid")
        match = np.abs(np.correlate(samples, training, "valid")) ** 2
        return first + int(np.argmax(match / np.maximum(energy, 1e-20)))


class _DecodedFrame(NamedTuple):
    """A frame as liquid decodes it."""

    payload: bytes
    crc_ok: bool
    sequence: int
    modulation: str
    #: liquid's number
    fec: int
    evm_db: float
    #: EVM over symbols with reliable decisions
    noise_db: float
    #: radians per sample
    cfo: float


def _callback(network: int, frames: list[_DecodedFrame], shown: deque[Constellation]) -> Any:
    """Return liquid's callback for decoded frames; those of our network go to `frames`, their symbols to `shown`."""
    names = {modulation_number(name): name for name in MODULATIONS}

    def decoded(
        header: Any, header_ok: int, payload: Any, nbytes: int, crc_ok: int, stats: Any, userdata: object
    ) -> int:
        if not header_ok or not 1 <= nbytes <= MAX_FRAME_BYTES or stats.mod_scheme not in names:
            return 0
        sequence, of = HEADER.unpack(ffi.buffer(header, HEADER.size))
        if of != network:
            return 0
        name = names[stats.mod_scheme]
        symbols = np.frombuffer(ffi.buffer(stats.framesyms, 8 * stats.num_framesyms), np.float32)
        shown.append(Constellation(symbols[: 2 * _SHOWN_SYMBOLS].copy().view(np.complex64), name))
        evm_db = _evm_db(symbols, MODULATIONS[name])
        # else the header's, whose BPSK is decided rightly for sure
        noise_db = evm_db if crc_ok and stats.num_framesyms >= _MANY_SYMBOLS else stats.evm
        octets = bytes(ffi.buffer(payload, nbytes))
        frames.append(_DecodedFrame(octets, bool(crc_ok), sequence, name, stats.fec0, evm_db, noise_db, stats.cfo))
        return 0

    return decoded


def _evm_db(symbols: NDArray[np.float32], modulation: Modulation) -> float:
    """Return the mean power of what the nearest points leave of `symbols` (I and Q by turns), in dB of theirs."""
    error = symbols - modulation.nearest(symbols)
    return 10 * math.log10(max(2 * float(np.mean(np.square(error))), 1e-20))


class _History:
    """The newest samples of a stream, found again by their index; at least `size` of them."""

    def __init__(self, size: int) -> None:
        self._ring: Samples = np.zeros(1 << (size - 1).bit_length(), np.complex64)
        #: samples so far
        self.end = 0

    def append(self, samples: Samples) -> None:
        at = 0
        for part in self.parts(self.end, self.end + len(samples)):
            part[:] = samples[at : at + len(part)]
            at += len(part)
        self.end += len(samples)

    def read(self, start: int, stop: int) -> Samples:
        return np.concatenate(self.parts(start, stop))

    def parts(self, start: int, stop: int) -> list[Samples]:
        """Return the places of samples: one array, or two where the ring closes."""
        at = start % len(self._ring)
        first = self._ring[at : at + stop - start]
        rest = stop - start - len(first)
        return [first, self._ring[:rest]] if rest else [first]
