"""A PHY in plain Python: a modulator and a demodulator, and GNU Radio's blocks around them.

Rules kept: what a demodulator gives does not depend on how the samples were cut into calls of `feed`.
"""

import math
from abc import abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
import pmt
from gnuradio import gr

from flowgraphs.phy import Constellation, Phy, Received, Samples, frame_from_pdu, received_pdu

#: a receiver takes samples in lots of about this long
_LOT_S = 0.5e-3


class Modulator(Protocol):
    """Turns link frames into bursts, numbering them from 0."""

    def modulate(self, frame: bytes) -> Samples:
        """Return the burst of a frame: complex64. Raises PhyError for a length the PHY does not carry."""


class Demodulator(Protocol):
    """Finds the frames in a stream of samples, which may come in pieces of any size."""

    def feed(self, samples: Samples) -> list[Received]:
        """Take the next samples (complex64); return the frames that ended in them or just before."""


class PlainPhy(Phy):
    """A PHY whose samples are made and read by plain Python."""

    @abstractmethod
    def modulator(self) -> Modulator:
        """Return a new modulator."""

    @abstractmethod
    def demodulator(self) -> Demodulator:
        """Return a new demodulator. Where it has symbols to show, its attribute `constellation` holds them."""

    def transmitter(self) -> "Transmitter":
        """Return a new GNU Radio block: message port "frames" in, one stream of complex samples out."""
        return Transmitter(self)

    def receiver(self) -> "Receiver":
        """Return a new GNU Radio block: one stream of complex samples in, message port "frames" out."""
        return Receiver(self)

    def decode(self, blocks: Iterable[Samples]) -> Iterator[Received]:
        """Return the frames in samples that are there already."""
        demodulator = self.demodulator()
        for block in blocks:
            yield from demodulator.feed(block)


class Transmitter(gr.sync_block):
    """GNU Radio's side of a modulator: message port "frames" in, bursts with the tag "packet_len" out."""

    def __init__(self, phy: PlainPhy) -> None:
        gr.sync_block.__init__(self, f"{phy.name} tx", in_sig=None, out_sig=[np.complex64])
        # a burst leaves whole, or the device runs dry while Python waits for its turn; the next one fits beside it
        self.set_min_output_buffer(2 * phy.frame_samples(phy.max_frame_bytes))
        self._modulator = phy.modulator()
        self._bursts: deque[Samples] = deque()
        self._rest: Samples = np.empty(0, np.complex64)
        self.message_port_register_in(pmt.intern("frames"))
        self.set_msg_handler(pmt.intern("frames"), self._take)

    def _take(self, pdu: Any) -> None:
        self._bursts.append(self._modulator.modulate(frame_from_pdu(pdu)))

    def work(self, input_items: object, output_items: list[Samples]) -> int:
        if not len(self._rest):
            if not self._bursts:
                # the next message wakes this block; waiting here would keep its own handler from running
                return 0
            self._rest = self._bursts.popleft()
            length = pmt.from_long(len(self._rest))
            self.add_item_tag(0, self.nitems_written(0), pmt.intern("packet_len"), length)
        out = output_items[0]
        n = min(len(out), len(self._rest))
        out[:n] = self._rest[:n]
        self._rest = self._rest[n:]
        return n


class Receiver(gr.sync_block):
    """GNU Radio's side of a demodulator: samples in, message port "frames" out."""

    def __init__(self, phy: PlainPhy) -> None:
        gr.sync_block.__init__(self, f"{phy.name} rx", in_sig=[np.complex64], out_sig=None)
        self._demodulator = phy.demodulator()
        self._port = pmt.intern("frames")
        self.message_port_register_out(self._port)
        self.set_output_multiple(min(max(1 << round(math.log2(phy.rate_sps * _LOT_S)), 256), 4096))

    def work(self, input_items: list[Samples], output_items: object) -> int:
        for received in self._demodulator.feed(input_items[0]):
            self.message_port_pub(self._port, received_pdu(received))
        return len(input_items[0])

    @property
    def constellation(self) -> Constellation | None:
        """The symbols of the newest frame, or None where the PHY has none to show."""
        constellation: Constellation | None = getattr(self._demodulator, "constellation", None)
        return constellation
