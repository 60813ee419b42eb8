"""The frame of PHY `ofdm`: its symbols, its modes, its lengths.

Read first: docs/ofdm.md; https://liquidsdr.org/doc/ofdmflexframe.

    │ S0 │ S0 │ S1 │ header: BPSK, Golay (24,12), CRC-32 │ payload: any mode, CRC-32 │
    └ detection, ┘ └ channel                             └ one OFDM symbol is a cyclic prefix and `subcarriers` samples
      carrier offset

Rules kept: what liquid decides (which subcarriers are pilots, how long a coded frame is) is asked of liquid.
"""

import math
import struct
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from flowgraphs.phys.ofdm.options import MODULATIONS as NAMES
from tests.harness.ofdm_reference.liquid import ffi, liquid

#: longest frame: an IP packet of 9000 octets and any link header
MAX_FRAME_BYTES = 10_000
#: our names of the codes, with liquid's
FEC = {
    "none": "none",
    "rep3": "rep3",
    "rep5": "rep5",
    "hamming74": "h74",
    "hamming84": "h84",
    "hamming128": "h128",
    "golay2412": "g2412",
    "secded2216": "secded2216",
    "secded3932": "secded3932",
    "secded7264": "secded7264",
}
#: our part of the header: sequence number, network
HEADER = struct.Struct(">IH")
#: S0 twice, S1 once
TRAINING_SYMBOLS = 3

#: liquid's part of the header: version, payload length, modulation, codes
_LIQUID_HEADER_BYTES = 6
#: kinds of subcarriers (liquid.h: OFDMFRAME_SCTYPE)
_NULL, _DATA = 0, 2


class Modulation(NamedTuple):
    """A constellation: on each axis the odd numbers up to `levels` - 1, scaled to a mean power of 1."""

    bits: int
    levels: int
    axes: int

    @property
    def unit(self) -> float:
        """Half the distance between two points."""
        return math.sqrt(3 / (self.axes * (self.levels**2 - 1)))

    def nearest(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the points nearest to `values`; both are I and Q by turns along the last axis."""
        points: NDArray[np.float32] = np.floor(values * np.float32(0.5 / self.unit)) * 2 + 1
        np.clip(points, 1 - self.levels, self.levels - 1, out=points)
        points *= np.float32(self.unit)
        if self.axes == 1:
            points[..., 1::2] = 0
        return points


_CONSTELLATIONS = (Modulation(1, 2, 1), Modulation(2, 2, 2), Modulation(4, 4, 2), Modulation(6, 8, 2))
MODULATIONS = dict(zip(NAMES, _CONSTELLATIONS, strict=True))


@dataclass(frozen=True)
class OfdmFormat:
    """What does not depend on a frame's mode."""

    subcarriers: int
    cyclic_prefix: int
    taper: int

    @property
    def symbol_samples(self) -> int:
        """Samples of an OFDM symbol and its cyclic prefix."""
        return self.subcarriers + self.cyclic_prefix

    @cached_property
    def header_symbols(self) -> int:
        """OFDM symbols of the header."""
        header_bits = 8 * encoded_bytes(_LIQUID_HEADER_BYTES + HEADER.size, fec_number("golay2412"))
        return -(-header_bits // len(self.data))

    @cached_property
    def active(self) -> NDArray[np.intp]:
        """Subcarriers that carry data or are pilots, in the order of the FFT."""
        return np.flatnonzero(self._allocation != _NULL)

    @cached_property
    def data(self) -> NDArray[np.intp]:
        """Subcarriers that carry data."""
        return np.flatnonzero(self._allocation == _DATA)

    @cached_property
    def pilots(self) -> NDArray[np.intp]:
        """Subcarriers that are pilots, from the lowest frequency to the highest: the order of the pilot sequence."""
        half = self.subcarriers // 2
        pilots = np.setdiff1d(self.active, self.data)
        return np.concatenate([pilots[pilots >= half], pilots[pilots < half]])

    def symbols(self, nbytes: int, modulation: Modulation, fec: int) -> int:
        """Return the OFDM symbols of a frame of `nbytes` with liquid's code number `fec`, all included."""
        payload_bits = 8 * encoded_bytes(nbytes, fec)
        return TRAINING_SYMBOLS + self.header_symbols + -(-payload_bits // (modulation.bits * len(self.data)))

    @cached_property
    def _allocation(self) -> NDArray[np.uint8]:
        allocation = np.empty(self.subcarriers, np.uint8)
        liquid().ofdmframe_init_default_sctype(self.subcarriers, ffi.from_buffer("unsigned char[]", allocation))
        return allocation


def modulation_number(name: str) -> int:
    """Return liquid's number of a modulation."""
    return int(liquid().liquid_getopt_str2mod(name.encode()))


def fec_number(name: str) -> int:
    """Return liquid's number of a code."""
    return int(liquid().liquid_getopt_str2fec(FEC[name].encode()))


def crc_number() -> int:
    """Return liquid's number of CRC-32."""
    return int(liquid().liquid_getopt_str2crc(b"crc32"))


def encoded_bytes(nbytes: int, fec: int) -> int:
    """Return how many octets `nbytes` and their CRC become in liquid's code number `fec`."""
    return int(liquid().packetizer_compute_enc_msg_len(nbytes, crc_number(), fec, fec_number("none")))
