"""A PHY's transmitter block at work: frames in, bursts out."""

import time
from collections.abc import Sequence

import numpy as np
import pmt
from gnuradio import blocks, gr

from flowgraphs.phy import Phy, Samples, frame_pdu

PATIENCE_S = 60


class Sender(gr.basic_block):
    """Gives messages to a flowgraph."""

    def __init__(self) -> None:
        gr.basic_block.__init__(self, "sender", in_sig=None, out_sig=None)
        self.message_port_register_out(pmt.intern("out"))

    def send(self, message: object) -> None:
        self.message_port_pub(pmt.intern("out"), message)


def modulated(phy: Phy, frames: Sequence[bytes]) -> list[Samples]:
    """Return the bursts of frames, as their tags part them. Raises TimeoutError when samples are missing."""
    top, sender, transmitter, sink = gr.top_block(), Sender(), phy.transmitter(), blocks.vector_sink_c()
    top.msg_connect(sender, "out", transmitter, "frames")
    top.connect(transmitter, sink)
    top.start()
    try:
        for frame in frames:
            sender.send(frame_pdu(frame))
        wanted = sum(phy.frame_samples(len(frame)) for frame in frames)
        end = time.monotonic() + PATIENCE_S
        while sink.nitems_read(0) < wanted:
            if time.monotonic() > end:
                raise TimeoutError(f"{sink.nitems_read(0)} samples of {wanted} came")
            time.sleep(0.01)
    finally:
        top.stop()
        top.wait()
    samples = np.array(sink.data(), np.complex64)
    tags = sorted((tag.offset, pmt.to_long(tag.value)) for tag in sink.tags() if str(tag.key) == "packet_len")
    assert sum(length for _, length in tags) == len(samples)
    return [samples[offset : offset + length] for offset, length in tags]
