"""Runs a GNU Radio receiver on given samples.

For PHYs with receivers of GNU Radio blocks; a PHY in plain Python needs no flowgraph.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pmt
from gnuradio import gr

if TYPE_CHECKING:
    from flowgraphs.phy import Samples

#: silence behind the last frame (samples), enough to flush the blocks and the flowgraph's messages
_SILENCE = 1 << 20


def decode(receiver: Any, blocks: "Iterable[Samples]") -> Iterator[object]:
    """Return the PDUs of the frames that a PHY's receiver block decodes in samples (complex64), followed by silence."""
    top = gr.top_block("offline", catch_exceptions=False)
    # held by names, since GNU Radio keeps no Python block alive
    playback, frames = _Playback(blocks), _Frames()
    top.connect(playback, receiver)
    top.msg_connect((receiver, "frames"), (frames, "frames"))
    top.run()
    yield from frames.received


class _Playback(gr.sync_block):
    """A source of the samples, then of silence, then the end."""

    def __init__(self, blocks: "Iterable[Samples]") -> None:
        gr.sync_block.__init__(self, "playback", in_sig=None, out_sig=[np.complex64])
        silence = np.zeros(_SILENCE, np.complex64)
        self._blocks = chain(blocks, [silence])
        self._rest = silence[:0]

    def work(self, input_items: object, output_items: "list[Samples]") -> int:
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
    def __init__(self) -> None:
        gr.basic_block.__init__(self, "frames", in_sig=None, out_sig=None)
        self.received: list[object] = []
        self.message_port_register_in(pmt.intern("frames"))
        self.set_msg_handler(pmt.intern("frames"), self.handle_frame)

    def handle_frame(self, pdu: object) -> None:
        self.received.append(pdu)
