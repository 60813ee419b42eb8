"""PHY `wifi`: link frames in IEEE 802.11 data frames, by the blocks of gr-ieee802-11.

Read first: IEEE 802.11-2016, clause 17 (the OFDM PHY) and 9.2 (MAC frames); B. Bloessl, M. Segata, C. Sommer,
F. Dressler, "An IEEE 802.11a/g/p OFDM Receiver for GNU Radio", SRIF 2013; docs/wifi.md.

    frames ─► MAC header, FCS ─► mapper ─► SIGNAL, carriers, IFFT, guard ─► bursts
    samples ─► synchronizer, FFT ─► equalizer ─► Viterbi, FCS ─► MAC header ─► frames

Rules kept: what is on the air is 802.11 as clause 17 has it, only at the radio's sample rate instead of 20 Msps. The
encoding stands in SIGNAL, so a receiver hears all eight, whatever its own transmitter uses. Frames of another network,
and frames that are none of ours, are passed over.

Left out: damaged frames, since gr-ieee802-11 gives a frame away only when its FCS holds: they show as gaps in the
sequence. And the EVM, which it does not measure.
"""

import ctypes
import math
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pmt
from gnuradio import blocks, digital, fft, gr

from flowgraphs.phy import Phy, PhyError, Received, Samples, frame_from_pdu, received_pdu
from flowgraphs.phys.wifi import ENCODINGS, WifiOptions
from flowgraphs.phys.wifi.sync import (
    CARRIERS,
    GUARD,
    LONG_TRAINING,
    MAX_SYMBOLS,
    PREAMBLE_SAMPLES,
    SYMBOL_SAMPLES,
    Preamble,
    Symbols,
    Synchronizer,
)

_DATA_BITS = tuple(ENCODINGS.values())

#: frame control, duration, receiver, transmitter, BSSID, sequence control (9.2.4.1)
_HEADER = struct.Struct("<HH6s6s6sH")
_DATA_FRAME = 0x0008
_EVERYBODY = b"\xff" * 6
#: ours, at the end of the frame body: the whole sequence number, and how many octets of filler are before it
_TRAILER = struct.Struct(">IB")
_FCS = struct.Struct("<I")
_OVERHEAD = _HEADER.size + _TRAILER.size + _FCS.size
#: sequence control: 12 bits of sequence number above 4 of fragment number
_SEQUENCE_MASK, _FRAGMENT_BITS = 0xFFF, 4

#: around the PSDU in the data bits (17.3.5.2, 17.3.5.3)
_SERVICE_AND_TAIL_BITS = 16 + 6
#: gr-ieee802-11's Viterbi decoder does not know where a frame ends: with fewer pad bits behind the tail it loses up to
#: a third of the frames at any SNR (docs/wifi.md), so that the frame body is filled up until there are as many
_LEAST_PAD_BITS = 18
_MOST_FILLER = 2
#: gr-ieee802-11 decodes no PSDU of more octets
_MAX_PSDU = 1528
MAX_FRAME_BYTES: Final = _MAX_PSDU - _OVERHEAD - _MOST_FILLER
#: a symbol's flanks of two samples (17.3.2.6): one is the neighbour's too, so that a burst is longer by one
_FLANK = 2
_PILOTS = (-21, -7, 7, 21)
_DATA_CARRIERS = [k for k in range(-26, 27) if k != 0 and k not in _PILOTS]
_USED_CARRIERS = len(_DATA_CARRIERS) + len(_PILOTS)
#: equation 17-6: the short training on these carriers, times (1 + j) and a factor for the power of 52 carriers
_SHORT_TRAINING = {-24: 1, -20: -1, -16: 1, -12: -1, -8: -1, -4: 1, 4: -1, 8: -1, 12: 1, 16: 1, 20: 1, 24: 1}

_FRAMES = "frames"
_BURST_TAG = "packet_len"
#: preambles remembered until their frame is decoded; most never are, being another's or noise
_PREAMBLES = 64


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

    def frame_samples(self, nbytes: int) -> int:
        """Return how many samples a frame of `nbytes` takes on the air; raises PhyError if it carries none so long."""
        if not 0 <= nbytes <= MAX_FRAME_BYTES:
            raise PhyError(f"PHY wifi carries frames of up to {MAX_FRAME_BYTES} bytes, not of {nbytes}")
        data_bits = ENCODINGS[self.encoding]
        return _burst_samples(nbytes + _OVERHEAD + _filler(nbytes, data_bits), data_bits)

    def denser(self) -> "Iterator[tuple[str, str, WifiPhy]]":
        """The same PHY in denser encodings, sparsest first."""
        known = list(ENCODINGS)
        for encoding in known[known.index(self.encoding) + 1 :]:
            yield "encoding", encoding, replace(self, encoding=encoding)

    def transmitter(self) -> "Transmitter":
        """Return a new GNU Radio block: message port "frames" in, one stream of complex samples out."""
        return Transmitter(self)

    def receiver(self) -> "Receiver":
        """Return a new GNU Radio block: one stream of complex samples in, message port "frames" out."""
        return Receiver(self)


# -- without GNU Radio -----------------------------------------------------------------------------------------


def mac_frame(frame: bytes, sequence: int, network: int, encoding: str) -> bytes:
    """Return the PSDU of a link frame: a data frame of an IBSS to everybody, which nobody acknowledges."""
    address = network_address(network)
    control = (sequence & _SEQUENCE_MASK) << _FRAGMENT_BITS
    filler = _filler(len(frame), ENCODINGS[encoding])
    header = _HEADER.pack(_DATA_FRAME, 0, _EVERYBODY, address, address, control)
    mpdu = header + frame + bytes(filler) + _TRAILER.pack(sequence, filler)
    return mpdu + _FCS.pack(zlib.crc32(mpdu))


def link_frame(mpdu: bytes, network: int) -> tuple[int, bytes] | None:
    """Return the sequence number and the link frame in an MPDU without its FCS; None when it is not ours."""
    if len(mpdu) < _HEADER.size + _TRAILER.size:
        return None
    kind, _, _, _, address, control = _HEADER.unpack_from(mpdu)
    body, trailer = mpdu[_HEADER.size : -_TRAILER.size], mpdu[-_TRAILER.size :]
    sequence, filler = _TRAILER.unpack(trailer)
    if (kind, address, control) != (
        _DATA_FRAME,
        network_address(network),
        (sequence & _SEQUENCE_MASK) << _FRAGMENT_BITS,
    ):
        return None
    return (sequence, body[: len(body) - filler]) if filler <= len(body) else None


def network_address(network: int) -> bytes:
    """Return the MAC address that stands for a network (16 bits): locally administered."""
    return b"\x02fad" + network.to_bytes(2, "big")


def _filler(nbytes: int, data_bits: int) -> int:
    """Return how many octets more a link frame needs."""
    filled = _SERVICE_AND_TAIL_BITS + 8 * (nbytes + _OVERHEAD)
    return next(n for n in range(_MOST_FILLER + 1) if -(filled + 8 * n) % data_bits >= _LEAST_PAD_BITS)


def _burst_samples(psdu_bytes: int, data_bits: int) -> int:
    data_symbols = -(-(_SERVICE_AND_TAIL_BITS + 8 * psdu_bytes) // data_bits)
    return PREAMBLE_SAMPLES + (1 + data_symbols) * SYMBOL_SAMPLES + _FLANK - 1


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


# -- GNU Radio's blocks ----------------------------------------------------------------------------------------


class Transmitter(gr.hier_block2):
    """Message port "frames" in, bursts with the tag "packet_len" out."""

    def __init__(self, phy: WifiPhy) -> None:
        gr.hier_block2.__init__(self, "wifi tx", gr.io_signature(0, 0, 0), gr.io_signature(1, 1, gr.sizeof_gr_complex))
        self.message_port_register_hier_in(_FRAMES)
        ieee802_11 = _ieee802_11()
        # attributes, since GNU Radio does not keep Python's blocks and formatters alive
        self._framer = _Framer(phy)
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
        self.msg_connect(self, _FRAMES, self._framer, _FRAMES)
        self.msg_connect(self._framer, "psdus", mapper, "in")
        self.connect(mapper, signal, signal_points, (points, 0))
        self.connect(mapper, data_points, (points, 1))
        self.connect(points, carriers, ifft, guard, self)


class _Framer(gr.basic_block):
    """Link frames into PSDUs."""

    def __init__(self, phy: WifiPhy) -> None:
        gr.basic_block.__init__(self, "wifi framer", in_sig=None, out_sig=None)
        self._phy = phy
        self._sequence = 0
        self.message_port_register_out(pmt.intern("psdus"))
        self.message_port_register_in(pmt.intern(_FRAMES))
        self.set_msg_handler(pmt.intern(_FRAMES), self._take)

    def _take(self, pdu: Any) -> None:
        frame = frame_from_pdu(pdu)
        if len(frame) > MAX_FRAME_BYTES:
            raise PhyError(f"PHY wifi carries frames of up to {MAX_FRAME_BYTES} bytes, not of {len(frame)}")
        psdu = mac_frame(frame, self._sequence, self._phy.network, self._phy.encoding)
        self._sequence = (self._sequence + 1) % (1 << 32)
        octets = pmt.init_u8vector(len(psdu), list(psdu))
        self.message_port_pub(pmt.intern("psdus"), pmt.cons(pmt.make_dict(), octets))


class Receiver(gr.hier_block2):
    """Samples in, message port "frames" out."""

    def __init__(self, phy: WifiPhy) -> None:
        gr.hier_block2.__init__(self, "wifi rx", gr.io_signature(1, 1, gr.sizeof_gr_complex), gr.io_signature(0, 0, 0))
        self.message_port_register_hier_out(_FRAMES)
        ieee802_11 = _ieee802_11()
        self._front = _Front(phy)
        self._unframer = _Unframer(phy, self._front)
        with zeroed_memory():
            algorithm = getattr(ieee802_11, phy.equalizer.upper())
            # it corrects the sample clock the wrong way: a sender whose carrier is high sends its samples faster too
            equalizer = ieee802_11.frame_equalizer(algorithm, -phy.carrier_hz, phy.rate_sps, False, False)
            decoder = ieee802_11.decode_mac(False, False)
        self.connect(self, self._front, equalizer, decoder)
        self.msg_connect(decoder, "out", self._unframer, "mpdus")
        self.msg_connect(self._unframer, _FRAMES, self, _FRAMES)


class _Front(gr.basic_block):
    """Samples into OFDM symbols, with a tag on the first of each frame as gr-ieee802-11's equalizer wants it.

    The tag's value is the frequency offset in radians per sample. In Hz it comes back with the decoded frame, to the
    last bit as it is computed here, and so tells which preamble was this frame's.
    """

    def __init__(self, phy: WifiPhy) -> None:
        gr.basic_block.__init__(self, "wifi synchronizer", in_sig=[np.complex64], out_sig=[(np.complex64, CARRIERS)])
        self._phy = phy
        self._synchronizer = Synchronizer()
        self._waiting: list[Symbols] = []
        #: by frequency offset in Hz, the oldest first
        self._preambles: dict[float, Preamble] = {}

    def preamble(self, cfo_hz: float) -> Preamble:
        """Return the preamble that had this offset."""
        return self._preambles.pop(cfo_hz)

    def forecast(self, noutput_items: int, ninputs: int) -> list[int]:
        return [1] * ninputs

    def general_work(self, input_items: list[Samples], output_items: list[Samples]) -> int:
        out, made = output_items[0], 0
        if not self._waiting:
            self._waiting = self._synchronizer.feed(input_items[0])
            self.consume(0, len(input_items[0]))
        while self._waiting and made < len(out):
            preamble, carriers = self._waiting.pop(0)
            if preamble is not None:
                self._tag(self.nitems_written(0) + made, preamble)
            fitting = carriers[: len(out) - made]
            out[made : made + len(fitting)] = fitting
            made += len(fitting)
            if len(fitting) < len(carriers):
                self._waiting.insert(0, Symbols(None, carriers[len(fitting) :]))
        return made

    def _tag(self, item: int, preamble: Preamble) -> None:
        cfo = preamble.cfo
        # the equalizer's own sum; two frames never share a value
        while (cfo_hz := cfo * self._phy.rate_sps / (2 * math.pi)) in self._preambles:
            cfo = math.nextafter(cfo, math.inf)
        self._preambles[cfo_hz] = preamble
        if len(self._preambles) > _PREAMBLES:
            del self._preambles[next(iter(self._preambles))]
        self.add_item_tag(0, item, pmt.intern("wifi_start"), pmt.from_double(cfo))


class _Unframer(gr.basic_block):
    """MPDUs, and what gr-ieee802-11 says of them, into link frames and what a PHY says of them."""

    def __init__(self, phy: WifiPhy, front: _Front) -> None:
        gr.basic_block.__init__(self, "wifi unframer", in_sig=None, out_sig=None)
        self._phy = phy
        self._front = front
        self.message_port_register_out(pmt.intern(_FRAMES))
        self.message_port_register_in(pmt.intern("mpdus"))
        self.set_msg_handler(pmt.intern("mpdus"), self._take)

    def _take(self, pdu: Any) -> None:
        heard = link_frame(frame_from_pdu(pdu), self._phy.network)
        if heard is None:
            return
        sequence, payload = heard
        cfo_hz, encoding, octets = (
            pmt.to_python(pmt.dict_ref(pmt.car(pdu), pmt.intern(key), pmt.PMT_NIL))
            for key in ("frequency offset", "encoding", "frame bytes")
        )
        preamble = self._front.preamble(cfo_hz)
        received = Received(
            payload=payload,
            crc_ok=True,
            sequence=sequence,
            sample=preamble.sample,
            nsamples=_burst_samples(octets, _DATA_BITS[encoding]),
            snr_db=10 * math.log10(preamble.snr) if preamble.snr else None,
            cfo_hz=cfo_hz,
            rssi_db=10 * math.log10(preamble.power),
            mode=list(ENCODINGS)[encoding],
        )
        self.message_port_pub(pmt.intern(_FRAMES), received_pdu(received))


@contextmanager
def zeroed_memory() -> Iterator[None]:
    """Let the C library clear large pieces of memory that it hands out.

    The Viterbi decoders of gr-ieee802-11 read on past a frame's end, in memory that was never written: what stood there
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
