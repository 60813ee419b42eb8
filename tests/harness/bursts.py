"""GNU Radio's side of a PHY at work: messages to a flowgraph and from it, and a transmitter with its samples."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pmt
from gnuradio import blocks, gr

from flowgraphs.phy import Phy, Received, Samples, received_from_pdu
from tests.harness.waiting import wait_for


def frame_pdu(frame: bytes, mode: str = "") -> object:
    """Return the PDU that makes a transmitter send `frame`, in a mode other than its own."""
    about = pmt.dict_add(pmt.make_dict(), pmt.intern("mode"), pmt.intern(mode)) if mode else pmt.PMT_NIL
    return pmt.cons(about, pmt.init_u8vector(len(frame), list(frame)))


class Mailbox(gr.basic_block):
    """Gives frames to a flowgraph and takes messages from it."""

    def __init__(self) -> None:
        gr.basic_block.__init__(self, "mailbox", in_sig=None, out_sig=None)
        self.taken: list[object] = []
        self.message_port_register_out(pmt.intern("out"))
        self.message_port_register_in(pmt.intern("in"))
        self.set_msg_handler(pmt.intern("in"), self._take)

    def post(self, frame: bytes, mode: str = "") -> None:
        self.message_port_pub(pmt.intern("out"), frame_pdu(frame, mode))

    def _take(self, message: object) -> None:
        self.taken.append(message)

    @property
    def heard(self) -> list[Received]:
        return [received_from_pdu(message) for message in self.taken]


class Sender:
    def __init__(self, phy: Phy) -> None:
        # kept, since GNU Radio keeps no Python block alive
        self.mailbox, self.transmitter, self.sink = Mailbox(), phy.transmitter(), blocks.vector_sink_c()
        self.top = gr.top_block()
        self.top.connect(self.transmitter, self.sink)
        self.top.msg_connect((self.mailbox, "out"), (self.transmitter, "frames"))

    def wait(self, samples: int) -> None:
        wait_for(lambda: self.sink.nitems_read(0) >= samples)


@contextmanager
def sending(phy: Phy) -> Iterator[Sender]:
    made = Sender(phy)
    made.top.start()
    try:
        yield made
    finally:
        made.top.stop()
        made.top.wait()


def modulated(phy: Phy, frames: Sequence[bytes]) -> list[Samples]:
    with sending(phy) as sender:
        for frame in frames:
            sender.mailbox.post(frame)
        sender.wait(sum(phy.frame_samples(len(frame)) for frame in frames))
    samples = np.array(sender.sink.data(), np.complex64)
    tags = sorted((tag.offset, pmt.to_long(tag.value)) for tag in sender.sink.tags() if str(tag.key) == "packet_len")
    assert sum(length for _, length in tags) == len(samples)
    return [samples[offset : offset + length] for offset, length in tags]
