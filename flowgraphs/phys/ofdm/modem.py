"""PHY `ofdm`: link frames in liquid-dsp's OFDM flexible frames.

Read first: docs/ofdm.md, and `flowgraphs/native/README.md`, where the signal processing is.

Our part of the header is six octets: the frame's sequence number and a network's id. liquid's part holds the payload's
length, modulation and code, so that a receiver hears all modes, not only its own.

Rules kept: the frames of a demodulator do not depend on the division of samples into calls of `feed`. Frames of another
network, and those of other programs, are passed over. Equal frames make equal samples.

Left out: convolutional and Reed-Solomon codes, which need libfec and are not in Debian's liquid.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from flowgraphs.native import native
from flowgraphs.phy import Constellation, Phy, PhyError, PhyMode, Received, Samples
from flowgraphs.phys.ofdm.options import LADDER, MODULATIONS, OfdmOptions

#: between a transmitter and a receiver: 2.5 ppm each, as of the USRPs' own oscillators
OFFSET_PPM = 5.0
#: carrier offset (subcarriers) that a receiver without a reach takes
_WITHOUT_REACH = 0.45
#: and one with a reach, beyond that
_BEYOND_REACH = 0.3
#: longest frame: an IP packet of 9000 octets and any link header
MAX_FRAME_BYTES = 10_000


@dataclass(frozen=True)
class OfdmPhy(OfdmOptions, Phy):
    """The PHY; `make_phy` checks its options. Raises PhyError when the native module is missing.

    `carrier_hz` tells how many subcarriers the other station's carrier may be off.
    """

    rate_sps: float
    carrier_hz: float = 2.4e9

    name = "ofdm"
    max_frame_bytes = MAX_FRAME_BYTES

    def __post_init__(self) -> None:
        super().__post_init__()
        native()

    def frame_samples(self, nbytes: int) -> int:
        if not 1 <= nbytes <= MAX_FRAME_BYTES:
            raise PhyError(f"PHY ofdm carries frames of 1 to {MAX_FRAME_BYTES} bytes, not of {nbytes}")
        samples: int = self.format.frame_samples(nbytes, self.modulation, self.fec)
        return samples

    def denser(self) -> "Iterator[tuple[str, str, OfdmPhy]]":
        for modulation in MODULATIONS[MODULATIONS.index(self.modulation) + 1 :]:
            yield "modulation", modulation, replace(self, modulation=modulation)

    def modes(self) -> tuple[PhyMode, ...]:
        return tuple(
            PhyMode(replace(self, modulation=modulation, fec=fec), snr_db, width_db)
            for modulation, fec, snr_db, width_db in LADDER
        )

    @cached_property
    def format(self) -> Any:
        """The frame's shape: the native module's OfdmFormat."""
        return native().OfdmFormat(self.subcarriers, self.cyclic_prefix, self.taper)

    @property
    def reach(self) -> int:
        """Carrier offsets that a receiver seeks, in whole subcarriers."""
        offset = OFFSET_PPM * 1e-6 * self.carrier_hz * self.subcarriers / self.rate_sps
        return 0 if offset <= _WITHOUT_REACH else min(math.ceil(offset - _BEYOND_REACH), self.subcarriers // 4)

    def transmitter(self) -> Any:
        return native().ofdm_transmitter(
            modulation=self.modulation,
            fec=self.fec,
            subcarriers=self.subcarriers,
            cyclic_prefix=self.cyclic_prefix,
            taper=self.taper,
            rms=self.rms,
            network=self.network,
        )

    def receiver(self) -> Any:
        return native().ofdm_receiver(
            rate_sps=self.rate_sps,
            subcarriers=self.subcarriers,
            cyclic_prefix=self.cyclic_prefix,
            taper=self.taper,
            network=self.network,
            reach=self.reach,
        )

    def modulator(self) -> "Modulator":
        """Return a new modulator."""
        return Modulator(self)

    def demodulator(self) -> "Demodulator":
        """Return a new demodulator."""
        return Demodulator(self)

    def decode(self, blocks: Iterable[Samples]) -> Iterator[Received]:
        demodulator = self.demodulator()
        for block in blocks:
            yield from demodulator.feed(block)


class Modulator:
    """Turns link frames into bursts, numbering them from 0, without a flowgraph."""

    def __init__(self, phy: OfdmPhy) -> None:
        self._phy = phy
        self._native = native().OfdmModulator(phy.format, phy.modulation, phy.fec, phy.rms, phy.network)

    def modulate(self, frame: bytes) -> Samples:
        """Return the burst of a frame: complex64. Raises PhyError for a length the PHY does not carry."""
        # refuses other lengths
        self._phy.frame_samples(len(frame))
        burst: Samples = self._native.modulate(frame)
        return burst


class Demodulator:
    """Finds the frames in a stream of samples, which may come in pieces of any size, without a flowgraph."""

    def __init__(self, phy: OfdmPhy) -> None:
        self._rate_sps = phy.rate_sps
        self._native = native().OfdmDemodulator(phy.format, phy.network, phy.reach)

    def feed(self, samples: Samples) -> list[Received]:
        """Take the next samples (complex64); return the frames that ended in them or just before."""
        return [Received(*fields) for fields in self._native.feed(samples, self._rate_sps)]

    @property
    def constellation(self) -> Constellation | None:
        """The symbols of the newest frame, or None without any."""
        newest = self._native.constellation
        return None if newest is None else Constellation(newest.symbols, newest.modulation)
