"""A PHY in plain Python: a modulator and a demodulator, and GNU Radio's blocks around them.

Rules kept: the frames of a demodulator do not depend on the division of samples into calls of `feed`.
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

#: approximate duration of the samples that a receiver takes at a time
_LOT_S = 0.5e-3


class Modulator(Protocol):
    """Turns link frames into bursts, numbering them from 0."""

    def modulate(self, frame: bytes) -> Samples:
        """Return the burst of a frame: complex64. Raises PhyError for frames that are too long."""


class Demodulator(Protocol):
    """Finds the frames in a stream of samples, which may come in pieces of any size."""

    def feed(self, samples: Samples) -> list[Received]:
        """Take the next samples (complex64); return the frames that ended in them or just before."""


class PlainPhy(Phy):
    """A PHY with a modulator and a demodulator in plain Python."""

    @abstractmethod
    def modulator(self) -> Modulator:
        """Return a new modulator."""

    @abstractmethod
    def demodulator(self) -> Demodulator:
        """Return a new demodulator. Its attribute `constellation`, if any, holds the newest symbols."""

    def transmitter(self) -> "Transmitter":
        return Transmitter(self)

    def receiver(self) -> "Receiver":
        return Receiver(self)

    def decode(self, blocks: Iterable[Samples]) -> Iterator[Received]:
        demodulator = self.demodulator()
        for block in blocks:
            yield from demodulator.feed(block)


class Transmitter(gr.sync_block):
    """GNU Radio's side of a modulator: message port "frames" in, bursts with the tag "packet_len" out."""

    def __init__(self, phy: PlainPhy) -> None:
        gr.sync_block.__init__(self, f"{phy.name} tx", in_sig=None, out_sig=[np.complex64])
        # room for a whole burst and the next one, so that the device does not run dry while Python waits for its turn
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
                # the next message wakes this block; waiting here would block its message handler
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
        """The symbols of the newest frame, or None without any."""
        constellation: Constellation | None = getattr(self._demodulator, "constellation", None)
        return constellation
