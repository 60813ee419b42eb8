"""PHY ofdm as GNU Radio blocks: frames as messages, bursts with tags, nothing lost or out of order."""

import time
from collections.abc import Sequence

import numpy as np
import pmt
import pytest
from gnuradio import blocks, gr

from flowgraphs import offline
from flowgraphs.phy import Samples, received_from_pdu
from flowgraphs.phys.ofdm.modem import MAX_FRAME_BYTES, Demodulator, Modulator, OfdmPhy
from tests.harness.awgn import air
from tests.harness.bursts import sending

PHY = OfdmPhy(2e6)


def sizes(rng: np.random.Generator, count: int) -> list[bytes]:
    return [rng.bytes(int(size)) for size in rng.integers(1, 1500, count)]


def bursts(frames: Sequence[bytes]) -> list[Samples]:
    modulator = Modulator(PHY)
    return [modulator.modulate(frame) for frame in frames]


def test_frames_become_tagged_bursts_in_their_order() -> None:
    frames = sizes(np.random.default_rng(1), 50)
    wanted = bursts(frames)
    with sending(PHY) as running:
        for frame in frames:
            running.mailbox.post(frame)
        running.wait(sum(map(len, wanted)))
        samples = np.array(running.sink.data(), np.complex64)
        tags = [(tag.offset, pmt.symbol_to_string(tag.key), pmt.to_long(tag.value)) for tag in running.sink.tags()]
    assert np.array_equal(samples, np.concatenate(wanted))
    starts = np.cumsum([0, *map(len, wanted)])
    assert tags == [(start, "packet_len", len(burst)) for start, burst in zip(starts.tolist(), wanted, strict=False)]


def test_each_frame_may_have_a_mode_of_its_own() -> None:
    """Frames of unknown modes are left out; those without a mode have the transmitter's."""
    frames = sizes(np.random.default_rng(4), 12)
    modes = [mode.phy for mode in PHY.modes()]
    # liquid's fill depends on the number of the frame only
    sent = [
        (phy.mode(), phy.frame_samples(len(frame)), frame) for phy, frame in zip(reversed(modes), frames, strict=True)
    ]
    with sending(PHY) as running:
        for mode, _, frame in sent:
            running.mailbox.post(frame, mode)
            for unknown in ("qpsk none", "qam256", "qpsk golay", " ", "golay2412"):
                running.mailbox.post(frame, unknown)
        running.mailbox.post(b"own")
        running.wait(sum(samples for _, samples, _ in sent) + PHY.frame_samples(3))
        samples = np.array(running.sink.data(), np.complex64)
        lengths = [pmt.to_long(tag.value) for tag in running.sink.tags()]
    assert lengths == [*(samples for _, samples, _ in sent), PHY.frame_samples(3)]
    heard = Demodulator(PHY).feed(np.concatenate([samples, np.zeros(1000, np.complex64)]))
    assert [(frame.mode, frame.nsamples, frame.payload) for frame in heard] == [
        *sent,
        ("qpsk", PHY.frame_samples(3), b"own"),
    ]
    assert [frame.sequence for frame in heard] == list(range(len(sent) + 1))


def test_a_transmitter_without_frames_leaves_the_processor_alone() -> None:
    with sending(PHY) as running:
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
    heard = [received_from_pdu(pdu) for pdu in offline.decode(PHY.receiver(), [received])]
    assert len(heard) == 60
    assert {frame.crc_ok for frame in heard} == {True, False}
    assert heard == Demodulator(PHY).feed(received)


def test_a_receiver_waits_for_half_a_millisecond_of_samples() -> None:
    for rate_sps, lot in ((250e3, 256), (1e6, 512), (2e6, 1024), (5e6, 2048), (40e6, 4096)):
        assert OfdmPhy(rate_sps).receiver().output_multiple() == lot


def test_a_receiver_hears_again_right_behind_a_gap() -> None:
    """The device loses the longest frame but for its beginning, after which shorter ones follow."""
    slow, rng = OfdmPhy(2e6, modulation="bpsk", fec="rep5"), np.random.default_rng(3)
    long, *rest = (Modulator(slow).modulate(bytes(MAX_FRAME_BYTES)), *bursts(sizes(rng, 5)))
    ends = air([*bursts(sizes(rng, 1)), long], rng, rms=PHY.rms, snr_db=25.0)
    kept = ends.samples[: ends.starts[1] + 20_000]
    after = air(rest, rng, rms=PHY.rms, snr_db=25.0, tail=20_000)
    receiver, frames, top = PHY.receiver(), offline._Frames(), gr.top_block()
    tags = [gr.tag_utils.python_to_tag((at, pmt.intern("rx_time"), pmt.PMT_NIL, pmt.PMT_F)) for at in (0, len(kept))]
    samples = np.concatenate([kept, after.samples])
    top.connect(blocks.vector_source_c(samples.tolist(), False, 1, tags), receiver)
    top.msg_connect((receiver, "frames"), (frames, "frames"))
    top.run()
    heard = [received_from_pdu(pdu) for pdu in frames.received]
    assert all(frame.crc_ok for frame in heard)
    assert [frame.sample for frame in heard] == [ends.starts[0], *(len(kept) + start for start in after.starts)]


def test_a_frame_that_ends_at_a_gap_is_heard() -> None:
    burst = Modulator(PHY).modulate(bytes(300))
    samples = np.concatenate([np.zeros(500, np.complex64), burst, np.zeros(5000, np.complex64)])
    end = 500 + len(burst) - PHY.taper
    receiver, frames, top = PHY.receiver(), offline._Frames(), gr.top_block()
    tags = [gr.tag_utils.python_to_tag((end, pmt.intern("rx_time"), pmt.PMT_NIL, pmt.PMT_F))]
    top.connect(blocks.vector_source_c(samples.tolist(), False, 1, tags), receiver)
    top.msg_connect((receiver, "frames"), (frames, "frames"))
    top.run()
    (heard,) = map(received_from_pdu, frames.received)
    assert (heard.payload, heard.crc_ok, heard.sample) == (bytes(300), True, 500)
