"""PHY ofdm as GNU Radio blocks: frames as messages, bursts with tags, nothing lost or out of order."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pmt
import pytest
from gnuradio import blocks, gr

from flowgraphs import offline
from flowgraphs.phy import Received, Samples, frame_pdu, received_from_pdu
from flowgraphs.phys.ofdm.modem import Demodulator, Modulator, OfdmPhy
from tests.flowgraphs.awgn import air

PHY = OfdmPhy(2e6)
#: a flowgraph that takes longer than this hangs
PATIENCE_S = 60.0


class Mailbox(gr.basic_block):
    """Gives frames to a flowgraph and takes them from it."""

    def __init__(self) -> None:
        gr.basic_block.__init__(self, "mailbox", in_sig=None, out_sig=None)
        self.heard: list[Received] = []
        self.message_port_register_out(pmt.intern("out"))
        self.message_port_register_in(pmt.intern("in"))
        self.set_msg_handler(pmt.intern("in"), self._take)

    def post(self, frame: bytes) -> None:
        self.message_port_pub(pmt.intern("out"), frame_pdu(frame))

    def _take(self, pdu: object) -> None:
        self.heard.append(received_from_pdu(pdu))


class Sender:
    """A running transmitter, and what it has put out."""

    def __init__(self) -> None:
        self.mailbox, self.block, self.sink = Mailbox(), PHY.transmitter(), blocks.vector_sink_c()
        self.top = gr.top_block()
        self.top.connect(self.block, self.sink)
        self.top.msg_connect((self.mailbox, "out"), (self.block, "frames"))

    def wait(self, samples: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while self.sink.nitems_read(0) < samples:
            assert time.monotonic() < deadline, "the transmitter gave nothing"
            time.sleep(0.001)


@contextmanager
def sender() -> Iterator[Sender]:
    made = Sender()
    made.top.start()
    try:
        yield made
    finally:
        made.top.stop()
        made.top.wait()


def sizes(rng: np.random.Generator, count: int) -> list[bytes]:
    return [rng.bytes(int(size)) for size in rng.integers(1, 1500, count)]


def bursts(frames: Sequence[bytes]) -> list[Samples]:
    modulator = Modulator(PHY)
    return [modulator.modulate(frame) for frame in frames]


def test_frames_become_tagged_bursts_in_their_order() -> None:
    frames = sizes(np.random.default_rng(1), 50)
    wanted = bursts(frames)
    with sender() as running:
        for frame in frames:
            running.mailbox.post(frame)
        running.wait(sum(map(len, wanted)))
        samples = np.array(running.sink.data(), np.complex64)
        tags = [(tag.offset, pmt.symbol_to_string(tag.key), pmt.to_long(tag.value)) for tag in running.sink.tags()]
    assert np.array_equal(samples, np.concatenate(wanted))
    starts = np.cumsum([0, *map(len, wanted)])
    assert tags == [(start, "packet_len", len(burst)) for start, burst in zip(starts.tolist(), wanted, strict=False)]


def test_a_frame_that_comes_later_is_sent_too() -> None:
    with sender() as running:
        for count in (1, 2, 3):
            running.mailbox.post(bytes(100))
            running.wait(count * PHY.frame_samples(100))


def test_a_transmitter_without_frames_leaves_the_processor_alone() -> None:
    with sender() as running:
        running.mailbox.post(bytes(100))
        running.wait(PHY.frame_samples(100))
        wall, busy = time.monotonic(), time.process_time()
        time.sleep(0.5)
        wall, busy = time.monotonic() - wall, time.process_time() - busy
    assert busy < 0.1 * wall


@pytest.fixture(scope="module")
def received() -> Samples:
    rng = np.random.default_rng(2)
    return air(bursts(sizes(rng, 60)), rng, rms=PHY.rms, snr_db=11.5, cfo=0.001, tail=20_000).samples


def test_a_receiver_block_hears_what_the_demodulator_hears(received: Samples) -> None:
    heard = list(offline.decode(PHY.receiver(), [received]))
    assert len(heard) == 60
    assert {frame.crc_ok for frame in heard} == {True, False}
    assert heard == Demodulator(PHY).feed(received)


def test_blocks_of_any_size_are_heard_alike(received: Samples) -> None:
    parts = np.split(received, np.sort(np.random.default_rng(3).integers(0, len(received), 40)))
    assert list(offline.decode(PHY.receiver(), parts)) == list(PHY.decode(parts)) == Demodulator(PHY).feed(received)


def test_a_receiver_waits_for_half_a_millisecond_of_samples() -> None:
    for rate_sps, lot in ((250e3, 256), (1e6, 512), (2e6, 1024), (5e6, 2048), (40e6, 4096)):
        assert OfdmPhy(rate_sps).receiver().output_multiple() == lot


def test_a_link_through_gnu_radio() -> None:
    rng = np.random.default_rng(4)
    frames = sizes(rng, 40)
    mailbox, transmitter, receiver = Mailbox(), PHY.transmitter(), PHY.receiver()
    top = gr.top_block()
    noise = blocks.vector_source_c((1e-3 * rng.standard_normal(2 << 20)).astype(np.float32).view(np.complex64), True)
    adder = blocks.add_cc()
    top.msg_connect((mailbox, "out"), (transmitter, "frames"))
    top.connect(transmitter, (adder, 0))
    top.connect(noise, (adder, 1))
    top.connect(adder, receiver)
    top.msg_connect((receiver, "frames"), (mailbox, "in"))
    top.start()
    try:
        for frame in frames:
            mailbox.post(frame)
        # pushes the last ones through
        mailbox.post(bytes(1400))
        deadline = time.monotonic() + PATIENCE_S
        while len(mailbox.heard) < len(frames):
            assert time.monotonic() < deadline, f"{len(mailbox.heard)} of {len(frames)} frames came"
            time.sleep(0.01)
    finally:
        top.stop()
        top.wait()
    assert [frame.payload for frame in mailbox.heard[: len(frames)]] == frames
    assert all(frame.crc_ok for frame in mailbox.heard)
