"""PHY wifi: frames in 802.11 frames, through gr-ieee802-11 and back."""

import ctypes
import sys
import zlib
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import pmt
import pytest
from gnuradio import blocks, gr

from flowgraphs import offline
from flowgraphs.frontend import RadioSettings
from flowgraphs.native import native
from flowgraphs.phy import PhyError, Received, received_from_pdu
from flowgraphs.phys import make_phy
from flowgraphs.phys.wifi.modem import MAX_FRAME_BYTES, WifiPhy, zeroed_memory
from flowgraphs.phys.wifi.options import ENCODINGS
from flowgraphs.transceiver import Transceiver
from tests.harness.awgn import Samples, air
from tests.harness.bursts import modulated
from tests.harness.radios import RATE_SPS, needs_vusrp, needs_wifi, on, quiet_air
from tests.harness.waiting import wait_for

RMS = 0.25
#: sizes around those that fill OFDM symbols, and the largest
SIZES = (0, 1, 40, 41, 42, 43, 44, 45, 46, 47, 48, 300, 1400, MAX_FRAME_BYTES)


@needs_wifi
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
    heard = list(phy.decode([sent.samples]))
    assert [received.payload for received in heard] == frames
    assert [received.sequence for received in heard] == list(range(len(frames)))
    assert [received.sample for received in heard] == list(sent.starts)
    assert [received.nsamples for received in heard] == [len(burst) for burst in bursts]
    assert all(received.crc_ok for received in heard)
    assert {received.mode for received in heard} == {encoding}
    for received in heard:
        # five deviations of one frame's estimates
        assert received.snr_db == pytest.approx(30, abs=3)
        assert received.cfo_hz == pytest.approx(5e-4 * RATE_SPS, abs=40)
        assert received.rssi_db == pytest.approx(20 * np.log10(0.1 * RMS), abs=0.5)


@needs_wifi
def test_a_receiver_hears_every_encoding() -> None:
    rng = np.random.default_rng(31)
    frames = [rng.bytes(200) for _ in ENCODINGS]
    bursts = []
    for encoding, frame in zip(ENCODINGS, frames, strict=True):
        bursts += modulated(WifiPhy(rate_sps=RATE_SPS, encoding=encoding), [frame])
    sent = air(bursts, rng, rms=RMS, snr_db=30)
    heard = list(WifiPhy(rate_sps=RATE_SPS).decode([sent.samples]))
    assert [received.payload for received in heard] == frames
    assert [received.nsamples for received in heard] == [len(burst) for burst in bursts]


@needs_wifi
@pytest.mark.parametrize(("encoding", "snr_db"), [("bpsk-1/2", 8), ("qam64-3/4", 27)])
def test_no_size_of_frame_is_lost_more_often(encoding: str, snr_db: float) -> None:
    """With the upstream decoder alone one size in three (bpsk-1/2) or in 27 (qam64-3/4) loses a tenth to a third."""
    phy = WifiPhy(rate_sps=RATE_SPS, encoding=encoding)
    rng = np.random.default_rng(33)
    sizes = [*range(40, 67), 600] * 12
    bursts = modulated(phy, [rng.bytes(n) for n in sizes])
    sent = air(bursts, rng, rms=RMS, snr_db=snr_db, gaps=[300] * len(bursts))
    heard = {received.sequence for received in phy.decode([sent.samples])}
    lost = [n for sequence, n in enumerate(sizes) if sequence not in heard]
    assert len(lost) <= 3, lost


def test_decoders_are_made_in_cleared_memory() -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    nbytes = 100_000

    def used() -> bytes:
        block = ctypes.c_void_p(libc.malloc(ctypes.c_size_t(nbytes)))
        assert block.value is not None
        octets = ctypes.string_at(block.value, nbytes)
        ctypes.memset(block, 0xAA, nbytes)
        libc.free(block)
        return octets

    used()
    with zeroed_memory():
        assert used() == bytes(nbytes)
    assert used() != bytes(nbytes)


@needs_wifi
def test_the_same_samples_give_the_same_frames() -> None:
    """At an SNR where half of the frames are lost: which half is no accident."""
    phy = WifiPhy(rate_sps=RATE_SPS, encoding="bpsk-1/2")
    rng = np.random.default_rng(34)
    bursts = modulated(phy, [rng.bytes(300) for _ in range(30)])
    sent = air(bursts, rng, rms=RMS, snr_db=3)
    first, *others = ([r.sequence for r in phy.decode([sent.samples])] for _ in range(4))
    assert 3 < len(first) < 27
    assert all(other == first for other in others)


@needs_wifi
def test_frames_behind_gaps_are_decoded() -> None:
    """The device stops in training, SIGNAL and data of a frame, and goes on where another one begins."""
    phy, rng = WifiPhy(rate_sps=RATE_SPS, encoding="qpsk-1/2"), np.random.default_rng(39)
    kept, tags, expected, n = [], [0], [], 0
    for cut in (30, 100, 150, 200, 330, 390, 450, 3000, 7000):
        frames = [rng.bytes(size) for size in (500, 20)]
        whole, cut_off = modulated(phy, frames)
        sent = air(
            [whole, cut_off if cut < 450 else modulated(phy, [rng.bytes(900)])[0]],
            rng,
            rms=RMS,
            snr_db=25,
            gaps=[20, 300],
        )
        kept.append(sent.samples[: sent.starts[1] + cut])
        expected.append((n + sent.starts[0], frames[0]))
        n += len(kept[-1])
        tags.append(n)
    receiver, mailbox, top = phy.receiver(), offline._Frames(), gr.top_block()
    samples = np.concatenate([*kept, np.zeros(5000, np.complex64)]).tolist()
    marks = [gr.tag_utils.python_to_tag((at, pmt.intern("rx_time"), pmt.PMT_NIL, pmt.PMT_F)) for at in tags]
    top.connect(blocks.vector_source_c(samples, False, 1, marks), receiver)
    top.msg_connect((receiver, "frames"), (mailbox, "frames"))
    top.run()
    heard = [received_from_pdu(pdu) for pdu in mailbox.received]
    assert [(frame.sample, frame.payload) for frame in heard] == expected


@needs_wifi
def test_the_waterfall_is_where_it_was_measured() -> None:
    """docs/wifi.md: QPSK 1/2 loses a tenth of its frames at 9 dB."""
    phy = WifiPhy(rate_sps=RATE_SPS, encoding="qpsk-1/2")
    rng = np.random.default_rng(35)
    bursts = modulated(phy, [rng.bytes(1000) for _ in range(60)])
    heard = {}
    for snr_db in (6.5, 11):
        sent = air(bursts, rng, rms=RMS, snr_db=snr_db)
        heard[snr_db] = len(list(phy.decode([sent.samples])))
    assert heard[6.5] < 30
    assert heard[11] > 54


@needs_wifi
def test_sta_follows_a_channel_that_changes_during_a_frame() -> None:
    """Two paths; the weaker one turns by half a circle during the frame, as far as moving 6 cm does at 2.4 GHz."""
    rng = np.random.default_rng(36)
    phy = WifiPhy(rate_sps=RATE_SPS, encoding="qpsk-1/2")
    bursts = []
    for burst in modulated(phy, [rng.bytes(1400) for _ in range(20)]):
        echo = 0.6 * burst * np.exp(1j * (np.linspace(0, np.pi, len(burst)) + 2 * np.pi * rng.random()))
        bursts.append((np.pad(burst, (0, 4)) + np.pad(echo, (4, 0))).astype(np.complex64))
    sent = air(bursts, rng, rms=RMS, snr_db=25)
    heard = {name: len(list(replace(phy, equalizer=name).decode([sent.samples]))) for name in ("ls", "sta")}
    assert heard["ls"] < 10
    assert heard["sta"] > 16


@needs_wifi
@pytest.mark.parametrize("ppm", [-15, 15])
@pytest.mark.parametrize("equalizer", ["ls", "sta"])
def test_a_sample_clock_that_is_off_is_followed(ppm: float, equalizer: str) -> None:
    """Over the longest frame 15 ppm move the samples by 0.6 of one, as well as turning the carrier."""
    phy = WifiPhy(rate_sps=RATE_SPS, encoding="bpsk-1/2", carrier_hz=1e9, equalizer=equalizer)
    rng = np.random.default_rng(38)
    frames = [rng.bytes(MAX_FRAME_BYTES) for _ in range(5)]
    bursts = [played_faster(burst, ppm * 1e-6) for burst in modulated(phy, frames)]
    sent = air(bursts, rng, rms=RMS, snr_db=10, cfo=ppm * 1e-6 * phy.carrier_hz / RATE_SPS)
    assert [received.payload for received in phy.decode([sent.samples])] == frames


def played_faster(samples: Samples, excess: float) -> Samples:
    """Return samples taken again at 1 + excess of their distance (windowed sinc, 32 wide)."""
    padded = np.pad(samples, 20)
    at = 16 + np.arange(len(samples) + 8) * (1 + excess)
    near = np.floor(at).astype(int)[:, None] + np.arange(-15, 17)
    offsets = at[:, None] - near
    taps = np.sinc(offsets) * np.cos(np.pi * offsets / 34) ** 2
    return (taps * padded[np.clip(near, 0, len(padded) - 1)]).sum(axis=1).astype(np.complex64)


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("encoding", "qam256", "encoding is 'qam256': input should be 'bpsk-1/2', "),
        ("equalizer", "zf", "equalizer is 'zf': input should be 'ls', 'lms', 'comb' or 'sta'"),
        ("carrier_hz", -1.0, "carrier_hz is -1.0: it must be positive"),
    ],
)
def test_options_that_are_none_are_refused(option: str, value: Any, said: str) -> None:
    with pytest.raises(PhyError, match=said):
        make_phy("wifi", **{"rate_sps": RATE_SPS, option: value})


def test_without_gr_ieee802_11_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ieee802_11", None)
    with pytest.raises(PhyError, match=r"https://github\.com/bastibl/gr-ieee802-11") as caught:
        WifiPhy(rate_sps=RATE_SPS)
    assert "\n" not in str(caught.value)


def test_the_native_blocks_know_the_same_encodings() -> None:
    assert native().WIFI_ENCODINGS == ENCODINGS
    assert native().WIFI_MAX_FRAME_BYTES == MAX_FRAME_BYTES


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_mac_frames_give_back_the_link_frame(encoding: str) -> None:
    for n in (0, 1, 2, 3, 100, 101, 102, MAX_FRAME_BYTES):
        psdu = native().wifi_mac_frame(bytes(n), 0xFFFFFFFF - n, 7, encoding)
        assert len(psdu) <= 1528
        assert psdu[-4:] == zlib.crc32(psdu[:-4]).to_bytes(4, "little")
        assert native().wifi_link_frame(psdu[:-4], 7) == (0xFFFFFFFF - n, bytes(n))
        assert native().wifi_link_frame(psdu[:-4], 8) is None
        # docs/wifi.md: so many pad bits at least, in whole OFDM symbols
        data_bits = ENCODINGS[encoding]
        assert -(16 + 6 + 8 * len(psdu)) % data_bits >= 18
        symbols = -(-(16 + 6 + 8 * len(psdu)) // data_bits)
        assert native().wifi_frame_samples(n, encoding) == 401 + 80 * symbols


def test_a_mac_frame_is_a_data_frame_of_an_ibss_to_everybody() -> None:
    psdu = native().wifi_mac_frame(b"frame", 0x12345, 0x0708, "bpsk-1/2")
    ours = b"\x02fad\x07\x08"
    # IEEE 802.11-2016, 9.2.4.1
    assert psdu[:24] == b"\x08\x00\x00\x00" + b"\xff" * 6 + ours + ours + b"\x50\x34"
    assert psdu[24:29] == b"frame"
    filler = psdu[-5]
    assert psdu[29:-4] == bytes(filler) + b"\x00\x01\x23\x45" + bytes([filler])


def test_what_is_no_frame_of_ours_is_none() -> None:
    mpdu = native().wifi_mac_frame(b"frame", 5, 7, "qpsk-1/2")[:-4]
    beacon = b"\x80" + mpdu[1:]
    other_count = mpdu[:22] + b"\x00\x00" + mpdu[24:]
    for octets in (b"", mpdu[:20], beacon, other_count, mpdu[:-1] + b"\xff"):
        assert native().wifi_link_frame(octets, 7) is None


@needs_wifi
@needs_vusrp
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_encoding_passes_over_virtual_usrps(encoding: str) -> None:
    phy = WifiPhy(rate_sps=RATE_SPS, encoding=encoding)
    rng = np.random.default_rng(37)
    frames = [rng.bytes(n) for n in (0, 60, 61, 62, MAX_FRAME_BYTES)]
    with quiet_air(clock="lockstep") as quiet:
        heard = carried(on(quiet, "V1"), on(quiet, "V2"), phy, frames)
    assert [received.payload for received in heard] == frames
    assert [received.sequence for received in heard] == list(range(len(frames)))


def carried(sender: RadioSettings, hearer: RadioSettings, phy: WifiPhy, frames: Sequence[bytes]) -> list[Received]:
    """Return as many frames as were sent from one radio to the other."""
    with closing(Transceiver(hearer, phy)) as there, closing(Transceiver(sender, phy)) as here:
        for transceiver in (there, here):
            transceiver.start()
        wait_for(lambda: len(there._meter.newest))
        for frame in frames:
            here.send(frame)
        return [wait_for(there.receive) for _ in frames]
