"""PHY `wifi`: link frames in IEEE 802.11 data frames, by the blocks of gr-ieee802-11.

Read first: IEEE 802.11-2016, clause 17 (the OFDM PHY) and 9.2 (MAC frames); B. Bloessl, M. Segata, C. Sommer,
F. Dressler, "An IEEE 802.11a/g/p OFDM Receiver for GNU Radio", SRIF 2013; docs/wifi.md.

    frames ─► framer: MAC header, FCS ─► mapper ─► SIGNAL, carriers, IFFT, guard ─► bursts
    samples ─► synchronizer, FFT ─► equalizer ─► Viterbi, FCS ─► unframer: MAC header ─► frames

Framer, synchronizer and unframer are ours, native blocks (`native/wifi/`), the others gr-ieee802-11's and GNU Radio's.

Rules kept: the signal is that of 802.11, clause 17, but at the radio's sample rate instead of 20 Msps. The
encoding stands in SIGNAL, so a receiver hears all eight encodings, not only its own. Frames of another network,
and frames that are none of ours, are passed over.

Left out: damaged frames, since gr-ieee802-11 gives a frame away only when its FCS holds: they show as gaps in the
sequence. And the EVM, which it does not measure.
"""

import ctypes
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from gnuradio import blocks, digital, fft, gr

from flowgraphs.native import native
from flowgraphs.phy import Phy, PhyError
from flowgraphs.phys.wifi.options import ENCODINGS, WifiOptions

#: the longest link frame: gr-ieee802-11 decodes no PSDU of more than 1528 octets
MAX_FRAME_BYTES: Final = 1493
CARRIERS: Final = 64
GUARD: Final = 16
SYMBOL_SAMPLES: Final = CARRIERS + GUARD
#: short and long training
PREAMBLE_SAMPLES: Final = 320
#: SIGNAL and the 511 symbols of the longest frame that gr-ieee802-11 decodes
MAX_SYMBOLS: Final = 512

#: IEEE 802.11-2016, equation 17-8: the long training on carriers -26 to -1 and 1 to 26
_LONG_LEFT = (1, 1, -1, -1, 1, 1, -1, 1, -1, 1, 1, 1, 1, 1, 1, -1, -1, 1, 1, -1, 1, -1, 1, 1, 1, 1)
_LONG_RIGHT = (1, -1, -1, 1, 1, -1, 1, -1, 1, -1, -1, -1, -1, -1, 1, 1, -1, -1, 1, -1, 1, -1, 1, 1, 1, 1)
#: the same on carriers -32 to 31
LONG_TRAINING = np.array([0] * 6 + [*_LONG_LEFT, 0, *_LONG_RIGHT] + [0] * 5, np.float64)

#: a symbol's flanks of two samples (17.3.2.6): one is the neighbour's too, so that a burst is longer by one
_FLANK = 2
_PILOTS = (-21, -7, 7, 21)
_DATA_CARRIERS = [k for k in range(-26, 27) if k != 0 and k not in _PILOTS]
_USED_CARRIERS = len(_DATA_CARRIERS) + len(_PILOTS)
#: equation 17-6: the short training on these carriers, times (1 + j) and a factor for the power of 52 carriers
_SHORT_TRAINING = {-24: 1, -20: -1, -16: 1, -12: -1, -8: -1, -4: 1, 4: -1, 8: -1, 12: 1, 16: 1, 20: 1, 24: 1}

_FRAMES = "frames"
_BURST_TAG = "packet_len"


@dataclass(frozen=True)
class WifiPhy(WifiOptions, Phy):
    """The PHY; `make_phy` checks its options. Raises PhyError when gr-ieee802-11 is missing.

    `carrier_hz` lets a receiver follow the sender's sample clock, which is off by as many parts per million as its
    carrier.
    """

    rate_sps: float
    carrier_hz: float = 2.4e9

    name = "wifi"
    max_frame_bytes = MAX_FRAME_BYTES

    def __post_init__(self) -> None:
        _ieee802_11()
        native()

    def frame_samples(self, nbytes: int) -> int:
        if not 0 <= nbytes <= MAX_FRAME_BYTES:
            raise PhyError(f"PHY wifi carries frames of up to {MAX_FRAME_BYTES} bytes, not of {nbytes}")
        samples: int = native().wifi_frame_samples(nbytes, self.encoding)
        return samples

    def denser(self) -> "Iterator[tuple[str, str, WifiPhy]]":
        known = list(ENCODINGS)
        for encoding in known[known.index(self.encoding) + 1 :]:
            yield "encoding", encoding, replace(self, encoding=encoding)

    def transmitter(self) -> "Transmitter":
        return Transmitter(self)

    def receiver(self) -> "Receiver":
        return Receiver(self)


def _preamble() -> list[list[complex]]:
    """Return the preamble as four symbols of carriers -32 to 31, each to be sent with a guard like any other."""
    short = np.zeros(CARRIERS, np.complex128)
    for carrier, sign in _SHORT_TRAINING.items():
        short[carrier + CARRIERS // 2] = sign * (1 + 1j) * math.sqrt(13 / 6)
    # the long training has one guard of double length: as two symbols, the first begins a guard earlier in its period
    carriers = np.arange(CARRIERS) - CARRIERS // 2
    early = LONG_TRAINING * np.exp(-2j * np.pi * carriers * GUARD / CARRIERS)
    return [short.tolist(), short.tolist(), early.tolist(), LONG_TRAINING.astype(np.complex128).tolist()]


def _pilots() -> list[list[complex]]:
    """Return the pilots of 127 symbols, SIGNAL first (17.3.5.10); the scrambler's output from all ones turns them."""
    register = [1] * 7
    rows = []
    for _ in range(127):
        bit = register[3] ^ register[6]
        register = [bit, *register[:-1]]
        sign = 1 - 2 * bit
        rows.append([complex(sign * pilot) for pilot in (1, 1, 1, -1)])
    return rows


class Transmitter(gr.hier_block2):
    """Message port "frames" in, bursts with the tag "packet_len" out."""

    def __init__(self, phy: WifiPhy) -> None:
        gr.hier_block2.__init__(self, "wifi tx", gr.io_signature(0, 0, 0), gr.io_signature(1, 1, gr.sizeof_gr_complex))
        self.message_port_register_hier_in(_FRAMES)
        ieee802_11 = _ieee802_11()
        framer = native().wifi_framer(phy.encoding, phy.network)
        # an attribute, since GNU Radio does not keep formatters alive
        self._signal_field = ieee802_11.signal_field()
        mapper = ieee802_11.mapper(ieee802_11.Encoding(list(ENCODINGS).index(phy.encoding)), False)
        signal = digital.packet_headergenerator_bb(self._signal_field.formatter(), _BURST_TAG)
        signal_points = digital.chunks_to_symbols_bc([-1, 1], 1)
        data_points = ieee802_11.chunks_to_symbols()
        points = blocks.tagged_stream_mux(gr.sizeof_gr_complex, _BURST_TAG, 1)
        carriers = digital.ofdm_carrier_allocator_cvc(
            CARRIERS, [_DATA_CARRIERS], [_PILOTS], _pilots(), _preamble(), _BURST_TAG, True
        )
        window = [phy.rms / math.sqrt(_USED_CARRIERS)] * CARRIERS
        ifft = fft.fft_vcc(CARRIERS, False, window, True, 1)
        guard = digital.ofdm_cyclic_prefixer(CARRIERS, SYMBOL_SAMPLES, _FLANK, _BURST_TAG)
        # these take whole frames: room for two, so that one is made while the other leaves
        data = MAX_SYMBOLS * len(_DATA_CARRIERS)
        symbols = MAX_SYMBOLS + PREAMBLE_SAMPLES // SYMBOL_SAMPLES
        for block, items in (
            (mapper, data),
            (data_points, data),
            (points, data),
            (carriers, symbols),
            (ifft, symbols),
            (guard, symbols * SYMBOL_SAMPLES + 1),
        ):
            block.set_min_output_buffer(2 * items)
        self.msg_connect(self, _FRAMES, framer, _FRAMES)
        self.msg_connect(framer, "psdus", mapper, "in")
        self.connect(mapper, signal, signal_points, (points, 0))
        self.connect(mapper, data_points, (points, 1))
        self.connect(points, carriers, ifft, guard, self)


class Receiver(gr.hier_block2):
    """Samples in, message port "frames" out."""

    def __init__(self, phy: WifiPhy) -> None:
        gr.hier_block2.__init__(self, "wifi rx", gr.io_signature(1, 1, gr.sizeof_gr_complex), gr.io_signature(0, 0, 0))
        self.message_port_register_hier_out(_FRAMES)
        ieee802_11 = _ieee802_11()
        synchronizer = native().wifi_synchronizer(phy.rate_sps)
        unframer = native().wifi_unframer(synchronizer, phy.network)
        with zeroed_memory():
            algorithm = getattr(ieee802_11, phy.equalizer.upper())
            # it corrects the sample clock the wrong way: a sender whose carrier is high sends its samples faster too
            equalizer = ieee802_11.frame_equalizer(algorithm, -phy.carrier_hz, phy.rate_sps, False, False)
            decoder = ieee802_11.decode_mac(False, False)
        self.connect(self, synchronizer, equalizer, decoder)
        self.msg_connect(decoder, "out", unframer, "mpdus")
        self.msg_connect(unframer, _FRAMES, self, _FRAMES)


@contextmanager
def zeroed_memory() -> Iterator[None]:
    """Let the C library clear large pieces of memory that it hands out.

    The Viterbi decoders of gr-ieee802-11 read on past a frame's end, in memory that was never written: its content
    would decide whether some weak frames decode.
    """
    perturb = -6
    libc = ctypes.CDLL(None)
    # mallopt(3): memory is filled with the value's complement
    libc.mallopt(perturb, 0xFF)
    try:
        yield
    finally:
        libc.mallopt(perturb, 0)


def _ieee802_11() -> Any:
    try:
        import ieee802_11
    except ImportError as error:
        raise PhyError(
            f"PHY wifi needs gr-ieee802-11 ({error}): build and install gr-foo and gr-ieee802-11, branch maint-3.10, "
            "from https://github.com/bastibl/gr-ieee802-11, or take PHY ofdm"
        ) from None
    return ieee802_11
