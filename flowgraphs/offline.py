"""A GNU Radio receiver on samples that are there already.

For a PHY whose receiver exists as GNU Radio blocks only; one in plain Python needs no flowgraph.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np
import pmt
from gnuradio import gr

from flowgraphs.phy import Received, Samples, received_from_pdu

#: so many samples after the last frame, no block holds it back and it has long crossed the flowgraph's messages
_SILENCE = 1 << 20


def decode(receiver: Any, blocks: Iterable[Samples]) -> Iterator[Received]:
    """Return what a PHY's receiver block hears in samples (complex64), followed by silence."""
    top = gr.top_block("offline", catch_exceptions=False)
    # named, since GNU Radio keeps no Python block alive
    playback, frames = _Playback(blocks), _Frames()
    top.connect(playback, receiver)
    top.msg_connect((receiver, "frames"), (frames, "frames"))
    top.run()
    yield from frames.heard


class _Playback(gr.sync_block):
    """Gives samples, then silence, then ends."""

    def __init__(self, blocks: Iterable[Samples]) -> None:
        gr.sync_block.__init__(self, "playback", in_sig=None, out_sig=[np.complex64])
        silence = np.zeros(_SILENCE, np.complex64)
        self._blocks = chain(blocks, [silence])
        self._rest = silence[:0]

    def work(self, input_items: object, output_items: list[Samples]) -> int:
        while not len(self._rest):
            block = next(self._blocks, None)
            if block is None:
                return -1
            self._rest = block
        out = output_items[0]
        n = min(len(out), len(self._rest))
        out[:n] = self._rest[:n]
        self._rest = self._rest[n:]
        return n


class _Frames(gr.basic_block):
    """Keeps the frames that come."""

    def __init__(self) -> None:
        gr.basic_block.__init__(self, "frames", in_sig=None, out_sig=None)
        self.heard: list[Received] = []
        self.message_port_register_in(pmt.intern("frames"))
        self.set_msg_handler(pmt.intern("frames"), self.hear)

    def hear(self, pdu: object) -> None:
        self.heard.append(received_from_pdu(pdu))
