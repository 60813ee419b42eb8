"""Silence between bursts, for flowgraphs without a radio.

Read first: GNU Radio's manual on tagged streams. A PHY's transmitter makes samples only for frames, but its receiver
needs a continuous stream. A radio fills the gaps; in a flowgraph without one, this block does.

Rules kept: a burst is passed on without gaps. A block behind this one, such as a throttle, must set the pace, since
silence has no limit.
"""

import numpy as np
import pmt
from gnuradio import gr
from numpy.typing import NDArray

_LENGTH = pmt.intern("packet_len")


class IdleFiller(gr.basic_block):
    """Bursts (complex, tagged "packet_len") in, a continuous stream out; up to `lot` zeros at a time between bursts."""

    def __init__(self, lot: int = 1024) -> None:
        gr.basic_block.__init__(self, "idle filler", in_sig=[np.complex64], out_sig=[np.complex64])
        # the default policy would misplace the tags of bursts
        self.set_tag_propagation_policy(gr.TPP_DONT)
        self._lot = lot
        #: samples of the present burst that have not come yet
        self._left = 0

    def forecast(self, noutput_items: int, ninputs: int) -> list[int]:
        return [1 if self._left else 0] * ninputs

    def general_work(self, input_items: list[NDArray[np.complex64]], output_items: list[NDArray[np.complex64]]) -> int:
        samples, out = input_items[0], output_items[0]
        if not len(samples) and not self._left:
            n = min(len(out), self._lot)
            out[:n] = 0
            return n
        if not self._left:
            self._left = pmt.to_long(self.get_tags_in_window(0, 0, 1, _LENGTH)[0].value)
        n = min(len(samples), len(out), self._left)
        out[:n] = samples[:n]
        self._left -= n
        self.consume(0, n)
        return n
