"""Recording from a virtual USRP, and transmitting a recording, over an air without noise.

What one radio transmits and another records is known but for when it begins.
"""

import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pmt
import pytest
from gnuradio import blocks, gr

from flowgraphs import frontend, recorder, replayer
from flowgraphs.air import Air
from flowgraphs.frontend import FrontEndError, RadioSettings, Receiver, Transmitter
from flowgraphs.phy import Samples
from flowgraphs.recorder import record
from flowgraphs.recording import Recording, RecordingError, meta_path
from flowgraphs.replayer import transmit
from tests.harness.radios import CARRIER_HZ, RATE_SPS, needs_vusrp, on, quiet_air
from tests.harness.recordings import write

pytestmark = [needs_vusrp, pytest.mark.realtime, pytest.mark.light]

#: tx 30 dB - 40 dBm less 40 dB is full scale at rx gain 40 dB
PATH_GAIN_DB, TX_GAIN_DB, RX_GAIN_DB = -40.0, 30.0, 40.0


@pytest.fixture
def air() -> Iterator[Air]:
    with quiet_air() as air:
        yield air


def transmitted(
    sent: Path, target: Path, progress: Callable[[float], None] = lambda share: None, *, profile: str = "ideal"
) -> Samples:
    """What one radio records while another transmits `sent`; the air's time waits for both."""
    with quiet_air(clock="lockstep", wait_streams=1) as air:
        air.set_link("*", "*", gain_db=PATH_GAIN_DB)
        settings = on(air, f"TX,profile={profile}", tx_gain_db=TX_GAIN_DB)
        thread = threading.Thread(target=transmit, args=(Recording.read(sent), settings, progress))
        thread.start()
        try:
            meta = record(on(air, "RX", rx_gain_db=RX_GAIN_DB), target, 0.4)
        finally:
            thread.join()
    return Recording.read(meta).samples()


def heard(samples: Samples) -> Samples:
    """What lies between the silence before and after it."""
    first, *_, last = np.flatnonzero(np.abs(samples) > 1e-3)
    return samples[first : last + 1]


class Unplugged(Receiver):
    samples = 5000
    gain_db = 0.0

    def __init__(self, settings: RadioSettings) -> None:
        self.block = blocks.vector_source_c([1j] * self.samples)


class _TakesNothing(gr.sync_block):
    def __init__(self) -> None:
        gr.sync_block.__init__(self, "takes nothing", in_sig=[np.complex64], out_sig=None)
        self.message_port_register_out(pmt.intern("async_msgs"))

    def work(self, input_items: object, output_items: object) -> int:
        return 0


class Full(Transmitter):
    def __init__(self, settings: RadioSettings) -> None:
        self.block = _TakesNothing()

    def now_s(self) -> float:
        return 0.0


def about(target: Path, samples: Samples, datatype: str = "cf32_le") -> Path:
    """A recording of the test's own."""
    return write(
        target,
        samples,
        datatype=datatype,
        rate_sps=RATE_SPS,
        frequency_hz=CARRIER_HZ,
        started=datetime(2026, 1, 2, tzinfo=UTC),
        hardware="none",
    )


# -- recording -----------------------------------------------------------------------------------------------


def test_a_recording_has_the_asked_length_and_says_what_it_is(air: Air, tmp_path: Path) -> None:
    shares: list[float] = []
    meta = record(on(air, "V1", rx_gain_db=12.5), tmp_path / "quiet", 0.123457, shares.append)
    assert meta == meta_path(tmp_path / "quiet")
    recording = Recording.read(meta)
    assert len(recording) == 123_457
    assert (recording.rate_sps, recording.frequency_hz, recording.gaps) == (RATE_SPS, CARRIER_HZ, 0)
    assert recording.hardware == f"type=vusrp,air={air.name},serial=V1, gain 12.5 dB"
    assert (recording.phy, recording.annotations) == (None, ())
    assert not recording.samples().any()
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_an_interrupted_recording_keeps_what_there_was(air: Air, tmp_path: Path) -> None:
    def interrupt(share: float) -> None:
        if share > 0.01:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record(on(air, "V1"), tmp_path / "cut", 10.0, interrupt)
    assert 0.1 < Recording.read(tmp_path / "cut").duration_s < 9.0
    assert json.loads(meta_path(tmp_path / "cut").read_text())["global"]["core:recorder"] == "fadelab"


def test_a_radio_that_stops_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frontend, "_STALL_S", 0.3)
    monkeypatch.setattr(recorder, "Receiver", Unplugged)
    with pytest.raises(FrontEndError, match=r"^USRP 'serial=1': no samples for .*: check that it is still connected$"):
        record(RadioSettings("serial=1", RATE_SPS, CARRIER_HZ, CARRIER_HZ), tmp_path / "stopped", 1.0)
    # what it gave before that is kept
    assert len(Recording.read(tmp_path / "stopped")) == Unplugged.samples


def test_a_place_that_cannot_be_written_to_is_an_error(air: Air, tmp_path: Path) -> None:
    target = tmp_path / "no" / "lab"
    with pytest.raises(RecordingError) as caught:
        record(on(air, "V1"), target, 0.1)
    assert str(caught.value).startswith(f"{target}.sigmf-data: No such file or directory; choose")


# -- replaying -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("datatype", ["cf32_le", "ci16_le"])
def test_what_is_replayed_is_recorded_sample_by_sample(tmp_path: Path, datatype: str) -> None:
    rng = np.random.default_rng(5)
    parts = rng.uniform(-0.6, 0.6, (2, 100_000))
    samples = (parts[0] + 1j * parts[1]).astype(np.complex64)
    sent = about(tmp_path / "sent", samples, datatype)
    shares: list[float] = []
    got = heard(transmitted(sent, tmp_path / "heard", shares.append))
    assert len(got) == len(samples)
    # half a step of 16 bits at either end
    assert np.abs(got.view(np.float32) - samples.view(np.float32)).max() < 2 / 32767
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_a_device_with_filters_transmits_a_recording_to_its_last_sample(tmp_path: Path) -> None:
    tone = 0.5 * np.exp(2j * np.pi * np.arange(100_000) / 8)
    sent = about(tmp_path / "sent", tone.astype(np.complex64))
    got = np.abs(transmitted(sent, tmp_path / "heard", profile="b200"))
    # at half its height an edge is where it was without filters
    assert np.count_nonzero(got > got.max() / 2) == 100_000


def test_a_radio_that_takes_nothing_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frontend, "_STALL_S", 0.3)
    monkeypatch.setattr(replayer, "Transmitter", Full)
    sent = about(tmp_path / "sent", np.zeros(100_000, np.complex64))
    with pytest.raises(FrontEndError, match=r"^USRP 'serial=1': takes no samples for "):
        transmit(Recording.read(sent), RadioSettings("serial=1", RATE_SPS, CARRIER_HZ, CARRIER_HZ))
