"""PHY wifi: frames in 802.11 frames, through gr-ieee802-11 and back."""

import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
import pmt
import pytest
from gnuradio import blocks, gr

from flowgraphs.phy import PhyError, Received, frame_pdu
from flowgraphs.wifi import ENCODINGS, MAX_FRAME_BYTES, WifiPhy, link_frame, mac_frame
from tests.flowgraphs.awgn import Samples, air

RATE_SPS = 2e6
RMS = 0.25
#: sizes around those that fill OFDM symbols, and the largest
SIZES = (0, 1, 40, 41, 42, 43, 44, 45, 46, 47, 48, 300, 1400, MAX_FRAME_BYTES)
PATIENCE_S = 30

try:
    import ieee802_11  # noqa: F401
except ImportError:
    HAVE_IT = False
else:
    HAVE_IT = True

needs_it = pytest.mark.skipif(
    not HAVE_IT, reason="gr-ieee802-11 is not installed: https://github.com/bastibl/gr-ieee802-11, branch maint-3.10"
)


class Sender(gr.basic_block):
    """Gives messages to a flowgraph."""

    def __init__(self) -> None:
        gr.basic_block.__init__(self, "sender", in_sig=None, out_sig=None)
        self.message_port_register_out(pmt.intern("out"))

    def send(self, message: object) -> None:
        self.message_port_pub(pmt.intern("out"), message)


def modulated(phy: WifiPhy, frames: Sequence[bytes]) -> list[Samples]:
    """Return the bursts of frames, as their tags part them."""
    top, sender, transmitter, sink = gr.top_block(), Sender(), phy.transmitter(), blocks.vector_sink_c()
    top.msg_connect(sender, "out", transmitter, "frames")
    top.connect(transmitter, sink)
    top.start()
    try:
        for frame in frames:
            sender.send(frame_pdu(frame))
        wanted = sum(phy.frame_samples(len(frame)) for frame in frames)
        _wait(lambda: len(sink.data()) >= wanted)
    finally:
        top.stop()
        top.wait()
    samples = np.array(sink.data(), np.complex64)
    tags = sorted((tag.offset, pmt.to_long(tag.value)) for tag in sink.tags() if str(tag.key) == "packet_len")
    assert sum(length for _, length in tags) == len(samples)
    return [samples[offset : offset + length] for offset, length in tags]


def demodulated(phy: WifiPhy, samples: Samples) -> list[Received]:
    """Return the frames a receiver finds."""
    return list(phy.decode([samples]))


@needs_it
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_encoding_brings_frames_of_every_size(encoding: str) -> None:
    phy = WifiPhy(rate_sps=RATE_SPS, encoding=encoding)
    rng = np.random.default_rng(30)
    frames = [rng.bytes(n) for n in SIZES]
    bursts = modulated(phy, frames)
    assert [len(burst) for burst in bursts] == [phy.frame_samples(n) for n in SIZES]
    power = np.mean(np.abs(np.concatenate(bursts)) ** 2)
    assert power == pytest.approx(RMS**2, rel=0.03)
    sent = air(bursts, rng, rms=RMS, snr_db=30, cfo=5e-4, level=0.1)
    heard = demodulated(phy, sent.samples)
    assert [received.payload for received in heard] == frames
    assert [received.sequence for received in heard] == list(range(len(frames)))
    assert [received.sample for received in heard] == list(sent.starts)
    assert [received.nsamples for received in heard] == [len(burst) for burst in bursts]
    assert all(received.crc_ok for received in heard)
    for received in heard:
        # five deviations of one frame's estimates
        assert received.snr_db == pytest.approx(30, abs=3)
        assert received.cfo_hz == pytest.approx(5e-4 * RATE_SPS, abs=80)
        assert received.rssi_db == pytest.approx(20 * np.log10(0.1 * RMS), abs=0.5)


@needs_it
def test_a_receiver_hears_every_encoding() -> None:
    rng = np.random.default_rng(31)
    frames = [rng.bytes(200) for _ in ENCODINGS]
    bursts = []
    for encoding, frame in zip(ENCODINGS, frames, strict=True):
        bursts += modulated(WifiPhy(rate_sps=RATE_SPS, encoding=encoding), [frame])
    sent = air(bursts, rng, rms=RMS, snr_db=30)
    heard = demodulated(WifiPhy(rate_sps=RATE_SPS), sent.samples)
    assert [received.payload for received in heard] == frames
    assert [received.nsamples for received in heard] == [len(burst) for burst in bursts]


@needs_it
def test_frames_of_another_network_are_passed_over() -> None:
    rng = np.random.default_rng(32)
    bursts = [
        *modulated(WifiPhy(rate_sps=RATE_SPS, network=1), [b"theirs"]),
        *modulated(WifiPhy(rate_sps=RATE_SPS, network=2), [b"ours"]),
    ]
    sent = air(bursts, rng, rms=RMS, snr_db=30)
    assert [received.payload for received in demodulated(WifiPhy(rate_sps=RATE_SPS, network=2), sent.samples)] == [
        b"ours"
    ]


@needs_it
@pytest.mark.parametrize(("encoding", "snr_db"), [("bpsk-1/2", 8), ("qam64-3/4", 27)])
def test_no_size_of_frame_is_lost_more_often(encoding: str, snr_db: float) -> None:
    """With the upstream decoder alone one size in three (bpsk-1/2) or in 27 (qam64-3/4) loses a tenth to a third."""
    phy = WifiPhy(rate_sps=RATE_SPS, encoding=encoding)
    rng = np.random.default_rng(33)
    sizes = [*range(40, 67), 600] * 12
    bursts = modulated(phy, [rng.bytes(n) for n in sizes])
    sent = air(bursts, rng, rms=RMS, snr_db=snr_db, gaps=[300] * len(bursts))
    heard = {received.sequence for received in demodulated(phy, sent.samples)}
    lost = [n for sequence, n in enumerate(sizes) if sequence not in heard]
    assert len(lost) <= 3, lost


@needs_it
def test_the_same_samples_give_the_same_frames() -> None:
    """At an SNR where half of the frames are lost: which half is no accident."""
    phy = WifiPhy(rate_sps=RATE_SPS, encoding="bpsk-1/2")
    rng = np.random.default_rng(34)
    bursts = modulated(phy, [rng.bytes(300) for _ in range(30)])
    sent = air(bursts, rng, rms=RMS, snr_db=3)
    first, *others = ([r.sequence for r in demodulated(phy, sent.samples)] for _ in range(5))
    assert 3 < len(first) < 27
    assert all(other == first for other in others)


@needs_it
def test_frames_pass_at_2_db_more_than_where_most_are_lost() -> None:
    """QPSK 1/2, 1000 bytes: the waterfall is where docs/wifi.md has it."""
    phy = WifiPhy(rate_sps=RATE_SPS, encoding="qpsk-1/2")
    rng = np.random.default_rng(35)
    bursts = modulated(phy, [rng.bytes(1000) for _ in range(60)])
    heard = {}
    for snr_db in (6, 11):
        sent = air(bursts, rng, rms=RMS, snr_db=snr_db)
        heard[snr_db] = len(demodulated(phy, sent.samples))
    assert heard[6] < 30
    assert heard[11] > 54


@needs_it
def test_an_encoding_that_is_not_there_is_refused() -> None:
    with pytest.raises(PhyError, match="encoding is 'qam256': choose from bpsk-1/2, "):
        WifiPhy(rate_sps=RATE_SPS, encoding="qam256")


def test_without_gr_ieee802_11_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ieee802_11", None)
    with pytest.raises(PhyError, match=r"https://github\.com/bastibl/gr-ieee802-11") as caught:
        WifiPhy(rate_sps=RATE_SPS)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_mac_frames_give_back_the_link_frame(encoding: str) -> None:
    for n in (0, 1, 2, 3, 100, 101, 102, MAX_FRAME_BYTES):
        psdu = mac_frame(bytes(range(256)) * 6 if n > 1536 else bytes(n), 0xFFFFFFFF - n, 7, encoding)
        assert len(psdu) <= 1528
        assert link_frame(psdu[:-4], 7) == (0xFFFFFFFF - n, bytes(n))
        assert link_frame(psdu[:-4], 8) is None


def test_what_is_no_frame_of_ours_is_none() -> None:
    mpdu = mac_frame(b"frame", 5, 7, "qpsk-1/2")[:-4]
    beacon = b"\x80" + mpdu[1:]
    other_count = mpdu[:22] + b"\x00\x00" + mpdu[24:]
    for octets in (b"", mpdu[:20], beacon, other_count, mpdu[:-1] + b"\xff"):
        assert link_frame(octets, 7) is None


def _wait(done: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < end, "the flowgraph does not come to an end"
        time.sleep(0.01)
