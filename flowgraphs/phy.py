"""The interface of PHYs, the received frame, and the GNU Radio messages for both.

Read first: GNU Radio's manual on message passing and on PDUs (a pair of a dictionary and a u8vector).

A PHY has two blocks, which stations, GNU Radio Companion and the tests use:

    "frames" ─► transmitter ─► bursts of samples          samples ─► receiver ─► "frames"

- The transmitter takes a PDU per frame on its message port "frames" and makes one burst of each, in order; the first
  sample of a burst carries the tag "packet_len" (a long: its samples), from which gr-uhd's sink makes SOB and EOB.
- The receiver emits a PDU per frame on its message port "frames". The keys of the dictionary are the fields of
  `Received`; a figure that the PHY does not have is absent. The block's attribute `constellation`, if any, holds the
  symbols of the newest frame.

Left out: the choice of a PHY (`phys/`). A PHY in plain Python needs no blocks of its own (`plain_phy.py`).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pmt
from numpy.typing import NDArray

Samples = NDArray[np.complex64]

_SEQUENCES = 1 << 32
#: keys of a received PDU's dictionary: mandatory, then optional
_OK, *_WHOLE = (pmt.intern(name) for name in ("crc_ok", "sequence", "sample", "nsamples"))
_MODE = pmt.intern("mode")
_REAL = {name: pmt.intern(name) for name in ("snr_db", "evm_db", "cfo_hz", "rssi_db")}


class PhyError(RuntimeError):
    """An unknown PHY, or an option that it does not have; one line."""


@dataclass(frozen=True, slots=True)
class Received:
    """One frame as a receiver decoded it; figures that the PHY does not have are None."""

    #: the link frame, with damaged octets when `crc_ok` is False
    payload: bytes
    crc_ok: bool
    #: counts the frames of a transmitter, modulo 2^32
    sequence: int
    #: index in the received stream of the frame's first sample
    sample: int
    #: airtime in samples
    nsamples: int
    #: signal to noise per sample, over the whole sampled band
    snr_db: float | None = None
    #: error vector magnitude, relative to the symbols' mean power
    evm_db: float | None = None
    #: carrier frequency of the transmitter minus the receiver's
    cfo_hz: float | None = None
    #: mean power over the frame, noise included, relative to full scale
    rssi_db: float | None = None
    #: modulation and code of the frame, as in "qpsk", "qpsk golay2412" or "qam16-3/4"
    mode: str | None = None


@dataclass(frozen=True, slots=True)
class Constellation:
    """Equalised payload symbols of one frame (complex64); the ideal points have mean power 1."""

    symbols: Samples
    modulation: str


@dataclass(frozen=True, slots=True)
class PhyMode:
    """A mode of a PHY whose receivers decode all of them, and the loss of its frames of 1500 octets over SNR."""

    phy: "Phy"
    #: SNR per sample (dB) at which 10 % are lost
    snr_db: float
    #: from 90 to 10 % loss (dB)
    width_db: float


class Phy(ABC):
    """One way to turn link frames into samples and back."""

    #: the name in scenarios
    name: ClassVar[str]
    #: the longest frame it carries
    max_frame_bytes: ClassVar[int]
    #: complex samples per second
    rate_sps: float
    #: root mean square of the samples of a burst; full scale is 1
    rms: float

    @abstractmethod
    def mode(self) -> str:
        """Return a short name of modulation and code, as in `Received.mode`."""

    @abstractmethod
    def frame_samples(self, nbytes: int) -> int:
        """Return the airtime of a frame of `nbytes` in samples; raises PhyError for frames that are too long."""

    @abstractmethod
    def transmitter(self) -> Any:
        """Return a new GNU Radio block: message port "frames" in, one stream of complex samples out."""

    @abstractmethod
    def receiver(self) -> Any:
        """Return a new GNU Radio block: one stream of complex samples in, message port "frames" out."""

    def denser(self) -> "Iterator[tuple[str, str, Phy]]":
        """Yield the same PHY in modes with more bits per symbol, in ascending order: option, value, PHY."""
        return iter(())

    def modes(self) -> "Sequence[PhyMode]":
        """Return the modes among which a station may choose frame by frame, the sturdiest first; none: it cannot."""
        return ()

    def decode(self, blocks: Iterable[Samples]) -> Iterator[Received]:
        """Return the frames that a receiver decodes in the given samples (complex64)."""
        from flowgraphs.offline import decode

        return map(received_from_pdu, decode(self.receiver(), blocks))

    def describe(self) -> str:
        """Return a short name of the PHY and its mode."""
        return f"{self.name} {self.mode()}".rstrip()


def frame_from_pdu(pdu: Any) -> bytes:
    """Return the frame in a PDU; raises PhyError for any other message."""
    if not (pmt.is_pair(pdu) and pmt.is_u8vector(pmt.cdr(pdu))):
        raise PhyError(
            "a message that is no PDU of octets came to port frames: send pairs of a dictionary and a u8vector"
        )
    return bytes(pmt.u8vector_elements(pmt.cdr(pdu)))


def received_pdu(received: Received) -> Any:
    """Return the PDU of a received frame."""
    about = pmt.dict_add(pmt.make_dict(), _OK, pmt.from_bool(received.crc_ok))
    whole = pmt.from_long(received.sequence), pmt.from_uint64(received.sample), pmt.from_uint64(received.nsamples)
    for key, value in zip(_WHOLE, whole, strict=True):
        about = pmt.dict_add(about, key, value)
    for name, key in _REAL.items():
        real = getattr(received, name)
        if real is not None:
            about = pmt.dict_add(about, key, pmt.from_double(real))
    if received.mode is not None:
        about = pmt.dict_add(about, _MODE, pmt.intern(received.mode))
    return pmt.cons(about, pmt.init_u8vector(len(received.payload), list(received.payload)))


def received_from_pdu(pdu: Any) -> Received:
    """Return the frame in a receiver's PDU; raises PhyError for any other message."""
    payload = frame_from_pdu(pdu)
    about = pmt.car(pdu)
    if not (pmt.is_dict(about) and all(pmt.dict_has_key(about, key) for key in (_OK, *_WHOLE))):
        raise PhyError("a PDU without sequence, sample, nsamples and crc_ok is no received frame: connect a receiver")
    crc_ok = pmt.to_bool(pmt.dict_ref(about, _OK, pmt.PMT_F))
    sequence, sample, nsamples = (pmt.to_python(pmt.dict_ref(about, key, pmt.PMT_NIL)) for key in _WHOLE)
    reals = {name: pmt.to_python(pmt.dict_ref(about, key, pmt.PMT_NIL)) for name, key in _REAL.items()}
    mode = pmt.to_python(pmt.dict_ref(about, _MODE, pmt.PMT_NIL))
    return Received(payload, crc_ok, sequence, sample, nsamples, **reals, mode=mode)


class SequenceGaps:
    """Counts the frames that a receiver has missed, by the sequence numbers of received ones.

    Rules kept: a core. A link keeps the order of frames, so a number that is not ahead of the last one is either equal
    (an echo, counted as duplicate) or of a transmitter that has restarted. Ahead means by less than 2^31.

    Left out: frames missed before the first and after the last received frame.
    """

    def __init__(self) -> None:
        self._last: int | None = None
        self.missed = 0
        self.duplicates = 0
        self.restarts = 0

    def handle(self, sequence: int) -> int:
        """Take the number of a received frame; return the number of frames missed right before it."""
        last, self._last = self._last, sequence
        if last is None:
            return 0
        ahead = (sequence - last) % _SEQUENCES
        if ahead == 0:
            self.duplicates += 1
            return 0
        if ahead >= _SEQUENCES // 2:
            self.restarts += 1
            return 0
        self.missed += ahead - 1
        return ahead - 1
